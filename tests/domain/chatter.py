"""The same afternoon's chatter in many languages, for measuring what text costs."""

CHATTER = {
    "English": """\
Good morning everyone, did the night build finish or is it still stuck on the import step?
It finished at four, but two tests failed because the printer on the second floor was offline again.
Can somebody send me the photo of the whiteboard from yesterday's meeting? I forgot to take one.
Sure, give me a minute. I think Anna also wrote down the numbers for the new budget.
Thanks! We should decide before Friday whether we want to move the office party to December.
I would rather keep the date, half of my family is visiting that week and I can't change the flights.
No problem, then let's just ask the restaurant if they have a bigger room for thirty people.
By the way, the coffee machine is broken, please don't try to repair it yourselves this time.
Who wants to join us for lunch at half past twelve? There is a new Vietnamese place around the corner.
Count me in, but I have to be back by two because the customer calls me about the invoice.
""",
    "German": """\
Guten Morgen zusammen, ist der nächtliche Lauf fertig geworden oder hängt er noch beim Import?
Er war um vier fertig, aber zwei Tests sind fehlgeschlagen, weil der Drucker im zweiten Stock wieder aus war.
Kann mir jemand das Foto vom Whiteboard aus der gestrigen Besprechung schicken? Ich habe keins gemacht.
Klar, gib mir eine Minute. Ich glaube, Anna hat auch die Zahlen für das neue Budget aufgeschrieben.
Danke! Wir sollten bis Freitag entscheiden, ob wir die Weihnachtsfeier in den Dezember verschieben.
Ich würde den Termin lieber behalten, meine halbe Familie ist in der Woche zu Besuch.
Kein Problem, dann fragen wir einfach das Restaurant, ob sie einen größeren Raum für dreißig Leute haben.
Übrigens ist die Kaffeemaschine kaputt, bitte versucht diesmal nicht, sie selbst zu reparieren.
Wer kommt um halb eins mit zum Mittagessen? Um die Ecke hat ein neuer Vietnamese aufgemacht.
Ich bin dabei, muss aber um zwei zurück sein, weil der Kunde wegen der Rechnung anruft.
""",
    "French": """\
Bonjour à tous, est-ce que la compilation de cette nuit est terminée ou toujours bloquée sur l'import ?
Elle s'est terminée à quatre heures, mais deux tests ont échoué parce que l'imprimante était encore éteinte.
Quelqu'un peut m'envoyer la photo du tableau de la réunion d'hier ? J'ai oublié d'en prendre une.
Bien sûr, laisse-moi une minute. Je crois qu'Anna a aussi noté les chiffres du nouveau budget.
Merci ! On devrait décider avant vendredi si on déplace la fête du bureau en décembre.
Je préférerais garder la date, la moitié de ma famille vient cette semaine-là et je ne peux pas changer les vols.
Pas de souci, demandons simplement au restaurant s'ils ont une salle plus grande pour trente personnes.
Au fait, la machine à café est en panne, n'essayez surtout pas de la réparer vous-mêmes cette fois.
Qui vient déjeuner avec nous à midi et demi ? Il y a un nouveau restaurant vietnamien au coin de la rue.
Je viens, mais je dois être de retour à deux heures parce que le client m'appelle pour la facture.
""",
    "Spanish": """\
Buenos días a todos, ¿terminó la compilación de anoche o sigue atascada en la importación?
Terminó a las cuatro, pero fallaron dos pruebas porque la impresora del segundo piso estaba apagada otra vez.
¿Alguien me puede mandar la foto de la pizarra de la reunión de ayer? Se me olvidó sacar una.
Claro, dame un minuto. Creo que Ana también apuntó los números del nuevo presupuesto.
¡Gracias! Deberíamos decidir antes del viernes si pasamos la fiesta de la oficina a diciembre.
Yo preferiría mantener la fecha, media familia viene esa semana y no puedo cambiar los vuelos.
No hay problema, entonces preguntemos al restaurante si tienen una sala más grande para treinta personas.
Por cierto, la cafetera está rota, por favor no intentéis arreglarla vosotros esta vez.
¿Quién viene a comer a las doce y media? Hay un vietnamita nuevo a la vuelta de la esquina.
Yo me apunto, pero tengo que volver a las dos porque el cliente me llama por la factura.
""",
    "Portuguese": """\
Bom dia a todos, a compilação desta noite terminou ou continua parada na importação?
Terminou às quatro, mas dois testes falharam porque a impressora do segundo andar estava desligada outra vez.
Alguém me pode mandar a foto do quadro da reunião de ontem? Esqueci-me de tirar uma.
Claro, dá-me um minuto. Acho que a Ana também anotou os números do novo orçamento.
Obrigado! Devíamos decidir até sexta-feira se mudamos a festa do escritório para dezembro.
Eu preferia manter a data, metade da minha família vem nessa semana e não posso mudar os voos.
Sem problema, então perguntamos ao restaurante se têm uma sala maior para trinta pessoas.
A propósito, a máquina de café está avariada, por favor não tentem arranjá-la desta vez.
Quem vem almoçar connosco ao meio-dia e meia? Abriu um vietnamita novo ao virar da esquina.
Eu vou, mas tenho de estar de volta às duas porque o cliente liga por causa da fatura.
""",
    "Polish": """\
Dzień dobry wszystkim, czy nocna kompilacja się skończyła, czy dalej wisi na imporcie?
Skończyła się o czwartej, ale dwa testy nie przeszły, bo drukarka na drugim piętrze znowu była wyłączona.
Czy ktoś może mi wysłać zdjęcie tablicy z wczorajszego spotkania? Zapomniałem zrobić.
Jasne, daj mi chwilę. Myślę, że Anna zapisała też liczby do nowego budżetu.
Dzięki! Powinniśmy zdecydować do piątku, czy przenosimy imprezę firmową na grudzień.
Wolałbym zostawić ten termin, połowa rodziny przyjeżdża w tym tygodniu i nie mogę zmienić lotów.
Nie ma sprawy, zapytajmy po prostu restaurację, czy mają większą salę na trzydzieści osób.
Przy okazji, ekspres do kawy jest zepsuty, proszę, nie próbujcie go tym razem sami naprawiać.
Kto idzie z nami na obiad o wpół do pierwszej? Za rogiem otworzyli nową wietnamską knajpę.
Idę, ale muszę wrócić przed drugą, bo klient dzwoni w sprawie faktury.
""",
    "Turkish": """\
Herkese günaydın, dün geceki derleme bitti mi yoksa hâlâ içe aktarmada mı takılı?
Saat dörtte bitti ama ikinci kattaki yazıcı yine kapalı olduğu için iki test başarısız oldu.
Dünkü toplantıdaki tahtanın fotoğrafını biri bana gönderebilir mi? Çekmeyi unutmuşum.
Tabii, bir dakika ver. Sanırım Anna yeni bütçenin rakamlarını da yazmıştı.
Teşekkürler! Ofis partisini aralığa alıp almayacağımıza cumaya kadar karar vermeliyiz.
Ben tarihi değiştirmemeyi tercih ederim, o hafta ailemin yarısı geliyor ve uçuşları değiştiremem.
Sorun değil, o zaman restorana otuz kişilik daha büyük bir salonları var mı diye soralım.
Bu arada kahve makinesi bozuldu, lütfen bu sefer kendiniz tamir etmeye çalışmayın.
Yarımda öğle yemeğine kim geliyor? Köşede yeni bir Vietnam lokantası açılmış.
Ben varım ama ikiye kadar dönmem lazım, müşteri fatura için arayacak.
""",
    "Vietnamese": """\
Chào buổi sáng mọi người, bản dựng đêm qua xong chưa hay vẫn kẹt ở bước nhập dữ liệu?
Nó xong lúc bốn giờ, nhưng hai bài kiểm tra bị lỗi vì máy in ở tầng hai lại bị tắt.
Ai đó gửi giúp tôi ảnh chụp bảng trắng của buổi họp hôm qua được không? Tôi quên chụp mất rồi.
Được, cho tôi một phút. Tôi nghĩ Anna cũng đã ghi lại các con số cho ngân sách mới.
Cảm ơn! Chúng ta nên quyết định trước thứ sáu xem có dời tiệc văn phòng sang tháng mười hai không.
Tôi muốn giữ nguyên ngày, tuần đó một nửa gia đình tôi đến chơi và tôi không đổi được vé máy bay.
Không sao, vậy thì hỏi nhà hàng xem họ có phòng lớn hơn cho ba mươi người không.
Nhân tiện, máy pha cà phê bị hỏng rồi, lần này xin đừng tự sửa nhé.
Ai đi ăn trưa lúc mười hai giờ rưỡi không? Có một quán mới mở ở góc đường.
Tôi đi, nhưng phải về trước hai giờ vì khách hàng gọi điện về hóa đơn.
""",
    "Russian": """\
Всем доброе утро, ночная сборка закончилась или всё ещё висит на импорте?
Закончилась в четыре, но два теста упали, потому что принтер на втором этаже опять был выключен.
Кто-нибудь может прислать мне фотографию доски со вчерашней встречи? Я забыл сфотографировать.
Конечно, дай мне минуту. Кажется, Анна ещё записала цифры по новому бюджету.
Спасибо! До пятницы надо решить, переносим ли мы корпоратив на декабрь.
Я бы оставил дату, на той неделе приезжает половина моей семьи, и билеты уже не поменять.
Не проблема, давайте просто спросим в ресторане, есть ли у них зал побольше на тридцать человек.
Кстати, кофемашина сломалась, пожалуйста, не пытайтесь в этот раз чинить её сами.
Кто пойдёт с нами обедать в половине первого? За углом открылось новое вьетнамское кафе.
Я пойду, но к двум мне надо вернуться, потому что клиент будет звонить насчёт счёта.
""",
    "Ukrainian": """\
Усім доброго ранку, нічна збірка закінчилася чи досі висить на імпорті?
Закінчилася о четвертій, але два тести впали, бо принтер на другому поверсі знову був вимкнений.
Чи може хтось надіслати мені фото дошки з учорашньої зустрічі? Я забув сфотографувати.
Звісно, дай мені хвилину. Здається, Анна ще записала цифри нового бюджету.
Дякую! До п'ятниці треба вирішити, чи переносимо ми свято в офісі на грудень.
Я б залишив дату, того тижня приїжджає половина моєї родини, і квитки вже не поміняти.
Не проблема, тоді просто запитаймо в ресторані, чи є в них більша зала на тридцять людей.
До речі, кавова машина зламалася, будь ласка, не намагайтеся цього разу лагодити її самі.
Хто піде з нами на обід о пів на першу? За рогом відкрили нове в'єтнамське кафе.
Я піду, але до другої маю повернутися, бо клієнт телефонуватиме щодо рахунку.
""",
    "Arabic": """\
صباح الخير جميعا، هل انتهى بناء الليلة الماضية أم ما زال عالقا في خطوة الاستيراد؟
انتهى في الرابعة، لكن فشل اختباران لأن الطابعة في الطابق الثاني كانت مطفأة مرة أخرى.
هل يمكن لأحد أن يرسل لي صورة السبورة من اجتماع أمس؟ نسيت أن ألتقط واحدة.
بالطبع، أعطني دقيقة. أظن أن آنا كتبت أيضا أرقام الميزانية الجديدة.
شكرا! يجب أن نقرر قبل يوم الجمعة هل ننقل حفلة المكتب إلى ديسمبر.
أفضل أن نبقي الموعد، نصف عائلتي ستزورني في ذلك الأسبوع ولا أستطيع تغيير الرحلات.
لا مشكلة، إذن لنسأل المطعم إن كان لديهم قاعة أكبر لثلاثين شخصا.
بالمناسبة، آلة القهوة معطلة، من فضلكم لا تحاولوا إصلاحها بأنفسكم هذه المرة.
من يريد أن يتناول الغداء معنا في الثانية عشرة والنصف؟ هناك مطعم فيتنامي جديد قريب.
أنا معكم، لكن يجب أن أعود قبل الثانية لأن الزبون سيتصل بي بخصوص الفاتورة.
""",
    "Hebrew": """\
בוקר טוב לכולם, הבנייה של הלילה הסתיימה או שהיא עדיין תקועה בשלב הייבוא?
היא הסתיימה בארבע, אבל שתי בדיקות נכשלו כי המדפסת בקומה השנייה הייתה שוב כבויה.
מישהו יכול לשלוח לי את התמונה של הלוח מהפגישה של אתמול? שכחתי לצלם.
בטח, תן לי דקה. אני חושב שאנה גם רשמה את המספרים של התקציב החדש.
תודה! כדאי שנחליט עד יום שישי אם להעביר את מסיבת המשרד לדצמבר.
אני מעדיף להשאיר את התאריך, חצי מהמשפחה שלי מגיעה באותו שבוע ואי אפשר לשנות את הטיסות.
אין בעיה, אז פשוט נשאל את המסעדה אם יש להם חדר גדול יותר לשלושים איש.
דרך אגב, מכונת הקפה מקולקלת, בבקשה אל תנסו לתקן אותה בעצמכם הפעם.
מי בא איתנו לארוחת צהריים בשתים עשרה וחצי? נפתחה מסעדה וייטנאמית חדשה מעבר לפינה.
אני בא, אבל אני חייב לחזור עד שתיים כי הלקוח מתקשר בקשר לחשבונית.
""",
    "Hindi": """\
सबको सुप्रभात, रात का बिल्ड पूरा हुआ या अब भी आयात पर अटका है?
चार बजे पूरा हुआ, लेकिन दो जाँचें विफल रहीं क्योंकि दूसरी मंज़िल का प्रिंटर फिर बंद था।
क्या कोई मुझे कल की बैठक के बोर्ड की तस्वीर भेज सकता है? मैं लेना भूल गया।
ज़रूर, एक मिनट दो। मुझे लगता है अन्ना ने नए बजट के आँकड़े भी लिखे थे।
धन्यवाद! हमें शुक्रवार तक तय करना चाहिए कि दफ़्तर की पार्टी दिसंबर में ले जाएँ या नहीं।
मैं तारीख़ नहीं बदलना चाहूँगा, उस हफ़्ते मेरा आधा परिवार आ रहा है और टिकट नहीं बदल सकते।
कोई बात नहीं, फिर रेस्तराँ से पूछ लेते हैं कि तीस लोगों के लिए बड़ा कमरा है या नहीं।
वैसे कॉफ़ी की मशीन ख़राब है, कृपया इस बार ख़ुद ठीक करने की कोशिश मत करना।
साढ़े बारह बजे खाने पर कौन चल रहा है? कोने पर एक नई दुकान खुली है।
मैं चलूँगा, लेकिन दो बजे तक लौटना है क्योंकि ग्राहक बिल के बारे में फ़ोन करेगा।
""",
    "Thai": """\
สวัสดีตอนเช้าทุกคน งานสร้างเมื่อคืนเสร็จแล้วหรือยังค้างอยู่ที่ขั้นตอนนำเข้า
เสร็จตอนตีสี่ แต่มีการทดสอบสองรายการล้มเหลวเพราะเครื่องพิมพ์ชั้นสองปิดอยู่อีกแล้ว
ใครช่วยส่งรูปกระดานจากการประชุมเมื่อวานให้หน่อยได้ไหม ฉันลืมถ่ายไว้
ได้เลย ขอเวลาหนึ่งนาที ฉันคิดว่าแอนนาจดตัวเลขงบประมาณใหม่ไว้ด้วย
ขอบคุณ เราควรตัดสินใจก่อนวันศุกร์ว่าจะย้ายงานเลี้ยงออฟฟิศไปเดือนธันวาคมหรือไม่
ฉันอยากให้คงวันเดิมไว้ ครอบครัวครึ่งหนึ่งจะมาเยี่ยมสัปดาห์นั้นและเปลี่ยนเที่ยวบินไม่ได้
ไม่มีปัญหา งั้นถามร้านอาหารว่ามีห้องใหญ่กว่านี้สำหรับสามสิบคนไหม
อีกอย่าง เครื่องชงกาแฟเสีย ครั้งนี้อย่าซ่อมเองนะ
ใครจะไปกินข้าวกลางวันตอนเที่ยงครึ่งบ้าง มีร้านใหม่เปิดตรงหัวมุม
ฉันไปด้วย แต่ต้องกลับก่อนบ่ายสองเพราะลูกค้าจะโทรมาเรื่องใบแจ้งหนี้
""",
    "Chinese": """\
大家早上好，昨晚的构建完成了吗，还是仍然卡在导入那一步？
四点就完成了，但是有两个测试失败，因为二楼的打印机又关机了。
谁能把昨天开会时白板的照片发给我？我忘记拍了。
好的，给我一分钟。我记得安娜也写下了新预算的数字。
谢谢！我们应该在星期五之前决定要不要把公司聚会改到十二月。
我希望保留原来的日期，那一周家里有一半人要来，机票也改不了。
没问题，那就问问餐厅有没有能坐三十个人的大包间。
顺便说一下，咖啡机坏了，这次请不要自己动手修。
十二点半谁一起去吃午饭？街角新开了一家越南餐馆。
我去，不过两点前必须回来，客户要打电话谈发票的事。
""",
    "Japanese": """\
皆さんおはようございます。昨夜のビルドは終わりましたか、それともまだインポートで止まっていますか。
四時に終わりましたが、二階のプリンターがまた切れていたのでテストが二つ失敗しました。
昨日の会議のホワイトボードの写真を誰か送ってもらえませんか。撮るのを忘れました。
いいですよ、少し待ってください。アンナさんが新しい予算の数字も書いていたと思います。
ありがとうございます。会社のパーティーを十二月に移すかどうか、金曜日までに決めましょう。
私は日付を変えたくないです。その週は家族の半分が来るし、飛行機も変更できません。
大丈夫です。三十人入れるもっと大きい部屋があるかレストランに聞いてみましょう。
ところで、コーヒーメーカーが壊れています。今回は自分たちで直そうとしないでください。
十二時半にお昼に行く人はいますか。角に新しいベトナム料理の店ができました。
行きます。でもお客様から請求書の件で電話があるので、二時までに戻らないといけません。
""",
    "Korean": """\
다들 좋은 아침이에요. 어젯밤 빌드는 끝났나요, 아니면 아직도 가져오기 단계에서 멈춰 있나요?
네 시에 끝났는데 이층 프린터가 또 꺼져 있어서 테스트 두 개가 실패했어요.
어제 회의 때 칠판 사진 좀 보내 주실 분 있나요? 제가 찍는 걸 깜빡했어요.
그럼요, 잠깐만요. 안나 씨가 새 예산 숫자도 적어 둔 것 같아요.
고마워요! 회사 파티를 십이월로 옮길지 금요일까지 정해야 해요.
저는 날짜를 그대로 두고 싶어요. 그 주에 가족 절반이 오고 비행기표도 바꿀 수 없거든요.
괜찮아요, 그럼 식당에 서른 명이 들어갈 더 큰 방이 있는지 물어봅시다.
그런데 커피 기계가 고장 났으니 이번에는 직접 고치려고 하지 마세요.
열두 시 반에 점심 같이 먹을 사람 있어요? 모퉁이에 새 베트남 식당이 생겼어요.
저도 갈게요. 그런데 고객이 청구서 때문에 전화한다고 해서 두 시까지는 돌아와야 해요.
""",
}

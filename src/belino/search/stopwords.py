"""Stopwords: words too common to search for, by language; they also identify the language of a text."""

_LISTS = {
    "english": """
        a about above after again against ah aha all am an and any anybody anyone anything are aren't around as at be
        been before being between both but by can can't cannot could couldn't did didn't do does doesn't doing don't
        down during each either else ever every everyone few for from had hadn't has hasn't have haven't having he he'd
        he'll he's her here here's hers herself hey hi him himself his hm hmm how how's huh i i'd i'll i'm i've if in
        into is isn't it it'd it'll it's its itself just let let's may me mhm might mm more most much must my myself no
        nor not now of off oh ok okay on once one ones only or other others our ours ourselves out over own please
        quite rather really same shall she she'd she'll she's should shouldn't since so some somebody someone something
        such than that that'd that'll that's the their theirs them themselves then there there's these they they'd
        they'll they're they've this those through thus to too uh um under until up upon us very was wasn't we we'd
        we'll we're we've were weren't what what's whatever when when's where where's whether which while who who's
        whom whose why why's will with within without won't would wouldn't yeah yes yet you you'd you'll you're you've
        your yours yourself yourselves dont doesnt didnt isnt cant wont im ive id youre thats whats lets gonna wanna
        gotta
    """,
    "german": """
        aber alle allem allen als also am an ander andere auch auf aus bei bin bis bist da damit dann das dass dein
        deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine
        einem einen einer eines er es euch euer für gegen hab habe haben hast hat hatte hatten hier hin hinter ich ihm
        ihn ihnen ihr ihre im in ist ja jede jeder jedes jetzt kann kannst kein keine können könnte machen man mein
        meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seit sich sie sind so
        soll sondern über um und uns unser unter vom von vor wann war waren warum was weil welche welcher wenn wer
        werden wie wieder will wir wird wirst wo wollen woher wohin würde zu zum zur zwischen gibt mal
    """,
    "french": """
        ai aie alors après as au aucun aussi autre aux avait avant avec avez avoir avons bien c'est ce ceci cela celle
        celui ces cet cette chez comme comment d'un d'une dans de des donc dont du elle elles en encore entre es est
        et étaient était êtes être eu fait faut il ils j'ai je jusque l'on la le les leur leurs lui ma mais me même mes
        moi mon n'a n'est ne ni nos notre nous on ont ou où par parce pas peu peut plus pour pourquoi qu'il qu'est-ce
        quand que quel quelle quelles quels qui quoi s'il sa sans se sera ses si soit son sont sous suis sur ta te tes
        toi ton tous tout toute toutes très tu un une va vers vos votre vous y ça
    """,
    "spanish": """
        a al algo algunos ante antes aquí así aún bien cada como cómo con contra cual cuál cuando cuándo de del desde
        donde dónde dos e el él ella ellas ellos en entre era eran eres es esa ese eso esta está están estas este esto
        estos estoy fue fueron ha había han has hasta hay he la las le les lo los más me mi mí mientras mis mucho muy
        nada ni no nos nosotros nuestra nuestro o os otra otro para pero poco por porque qué que quien quién se sea ser
        si sí sido sin sobre solo son soy su sus también tan tanto te tiene tienen todo todos tu tú tus un una uno unos
        usted y ya yo
    """,
    "portuguese": """
        a ao aos aquela aquele aqui as às até cada com como da das de dela dele deles depois do dos e é ela elas ele
        eles em entre era eram essa esse esta está estão estas este eu foi foram há isso isto já lhe mais mas me mesmo
        meu meus minha muito na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelo por porque qual
        quando que quem se sem ser será seu seus só sou sua suas também te tem têm tenho ter teu tu tua um uma você
        vocês vou
    """,
    "italian": """
        a ad agli ai al alla alle allo anche ancora c'è che chi ci co come con cosa così cui da dal dalla dei del della
        delle di do dove e è ed era erano essere fa fra gli ha hai hanno ho i il in io l'ho la le lei li lo loro lui ma
        me mi mia mio molto ne negli nei nel nella no noi non nostro o ogni per perché però più poi quale quando quanto
        quella quello questa questi questo qui sarà se sei si sì sia siamo solo sono sta su sua sul sulla suo te ti tra
        tu tua tuo tutti tutto un una uno vi voi
    """,
    "dutch": """
        aan al alles als altijd ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen geweest
        haar had heb hebben heeft hem het hier hij hoe hun ik in is ja je jij jullie kan kon kunnen maar me meer men met
        mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw
        van veel voor waar waarom wanneer want waren was wat we wel werd wie wij wil worden wordt zal ze zelf zich zij
        zijn zo zou
    """,
    "swedish": """
        alla allt att av blev bli blir då de dem den denna det detta dig din du där efter ej eller en er ett från för ha
        hade han har hennes hon honom hur här i icke inte jag ju kan kunde man med mellan men mig min mitt mot mycket ni
        nu när någon något och om oss på sig sin sina själv ska skulle som så till under upp ut utan vad var varför vart
        vem vi vid vilken vår än är åt över
    """,
    "norwegian": """
        alle at av bare begge ble bli blir da de deg dem den denne der dere deres det dette di din disse du eller en er
        et etter for fordi fra før ha hadde han hans har henne her hun hva hvem hvis hvor hvordan hvorfor i ikke inn
        jeg kan kunne man med meg mellom men min mot mye ned noe noen nå og også om opp oss på seg selv si sin skal
        skulle slik som så til um under ut uten vi vil ville vår være vært
    """,
    "danish": """
        ad af alle alt anden at blev bliver da de dem den denne der deres det dette dig din disse dog du efter eller en
        er et for fordi fra før gøre ham han hans har havde have hende hendes her hos hun hvad hvem hver hvis hvor
        hvordan hvorfor i ikke ind jeg jer jo kan kom kunne man mange med meget men mig min mine mit mod ned noget
        nogle nu når og også om op os over på selv sig sin skal skulle som sådan thi til ud under var vi vil ville vor
        være været
    """,
    "finnish": """
        ei eivät että en et emme ette hän he hänen heidän ja jo joka jos jotka kanssa kuin kuka kun me meidän mikä
        missä mitä mutta myös ne niin nyt nämä olen oli olivat olla olemme on ovat se sekä sen siellä sinä sitten tai
        te tämä tuo vai vain vaan vielä milloin miksi minä minun minulla meillä sinun teidän ole olet
    """,
    "polish": """
        a aby ale am bardzo bez bo być by był była było były ci co czy dla do gdy gdzie go i ich ile im ja jak jaki je
        jego jej jest jeszcze już każdy kiedy kto który która które lub ma mam mi mnie mój może my na nad nas nasz nie
        nich nie o od on ona oni po pod przez przy się są ta tak tam te tego tej ten to ty tylko tym u w we więc wy z za
        ze że
    """,
    "czech": """
        a aby aj ale ani asi až bez bude budou by byl byla byli bylo být co do dnes ho i já jak jako je jeho jej její
        jen ještě jsem jsi jsme jsou jste k kde kdo kdy když ke která které který ma mám má mě mi mít může na nad nám
        nás nebo než není o od on ona oni pak po pod podle pro proč protože před přes při s se si tak také tam ten to
        tu už v ve však všechno vy z za ze že
    """,
    "hungarian": """
        a az és hogy nem is ez egy csak még már mert ha vagy van volt lesz lett de meg mint mi ki kell kéne én te ő ti
        ők ezt azt ezek azok itt ott most majd minden nagyon sem se be le fel el össze után között alatt mellett nekem
        neked neki hol mikor miért hogyan milyen
    """,
    "romanian": """
        a ai al ale am ar are aș asta acest această ca că care ce cel cea cei cele cum când cu cât da dar de deci din
        după e ea ei el este eu fi fost în între îi îl își la le lor mai mea meu mi-a mult nici noi nu o or pe pentru
        poate prin sau să se și sunt suntem te toate tot tu un una unde unei unui va vă vom voi
    """,
    "indonesian": """
        ada adalah agar akan aku anda apa atau bagaimana bahwa banyak beberapa belum bisa bukan dalam dan dapat dari
        dengan di dia harus hanya ini itu jadi jika juga kalau kami kamu kapan karena ke kepada kita lagi mana masih
        mereka mau oleh pada saja sangat saya sebagai sedang sudah tapi telah tersebut tetapi tidak untuk yang
    """,
    "turkish": """
        acaba ama ben bana beni bir biz bu bunu çok çünkü da daha de değil diye en gibi hem hep her hiç için ile ise
        kadar ki kim mı mi mu mü nasıl ne neden nerede niye o olan olarak onlar onu sana sen siz şey şu ve veya ya yok
        var
    """,
    "russian": """
        а без бы был была были было быть в вам вас весь во вот все всё всего вы где да для до его ее её если есть еще
        ещё же за здесь и из или им их к как какая какой когда кто ли либо мне может мой мы на над надо наш не него нее
        нет ни них но ну о об он она они оно от очень по под при про с со так также такой там те тебя тем то того тоже
        той только том ты у уже хотя чего чей чем что чтобы эта эти это этот я
    """,
    "arabic": """
        في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي ما ماذا هل لا لم لن ان أن إن كان كانت هو هي هم نحن انا أنا انت
        أنت كل قد ثم أو او و كيف متى أين اين لماذا بعد قبل عند
    """,
    "hindi": "का की के को में से है हैं था थी थे और या यह वह ये वे पर भी ने एक कि जो तो ही क्या कब कहाँ कैसे क्यों कौन मैं हम आप तुम नहीं",
    "greek": """
        ο η το οι τα του της των τον την και κι να θα με σε για από είναι ήταν που πως τι ποιος πότε πού δεν μη ή αλλά
        αν ένα μια
    """,
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}

# A stop word of several languages counts for each of them.
LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _words in STOP_WORDS.items():
    for _word in sorted(_words):
        LANGUAGES_OF[_word] = (*LANGUAGES_OF.get(_word, ()), _language)

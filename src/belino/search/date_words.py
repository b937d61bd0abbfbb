"""Date words: the names of months, weekdays and times relative to a day, in several languages."""

_MONTHS = {
    1: """
        january jan januar janvier enero janeiro gennaio januari января январь январе січня stycznia styczniu
        ledna lednu ocak január tammikuu tammikuussa ianuarie ιανουαρίου ιανουάριο يناير ינואר जनवरी
    """,
    2: """
        february feb februar février fevrier febrero fevereiro febbraio februari февраля февраль феврале лютого
        lutego lutym února únoru şubat február helmikuu helmikuussa februarie φεβρουαρίου φεβρουάριο فبراير פברואר
        फरवरी फ़रवरी
    """,
    3: """
        march mar märz maerz mars marzo março maart maret марта март марте березня marca marcu března březnu mart
        március maaliskuu maaliskuussa martie μαρτίου μάρτιο مارس מרץ मार्च
    """,
    4: """
        april apr avril abril aprile апреля апрель апреле квітня kwietnia kwietniu dubna dubnu nisan április
        huhtikuu huhtikuussa aprilie απριλίου απρίλιο أبريل ابريل אפריל अप्रैल
    """,
    5: """
        may mai mayo maio maggio mei maj мая май мае травня maja maju května květnu mayıs május toukokuu
        toukokuussa μαΐου μάιο مايو מאי मई
    """,
    6: """
        june jun juni juin junio junho giugno июня июнь июне червня czerwca czerwcu června červnu haziran június
        kesäkuu kesäkuussa iunie ιουνίου ιούνιο يونيو יוני जून
    """,
    7: """
        july jul juli juillet julio julho luglio июля июль июле липня lipca lipcu července červenci temmuz július
        heinäkuu heinäkuussa iulie ιουλίου ιούλιο يوليو יולי जुलाई
    """,
    8: """
        august aug août aout agosto augustus augusti agustus августа август августе серпня sierpnia sierpniu srpna
        srpnu ağustos augusztus elokuu elokuussa αυγούστου αύγουστο أغسطس اغسطس אוגוסט अगस्त
    """,
    9: """
        september sept sep septembre septiembre setembro settembre сентября сентябрь сентябре вересня września
        wrześniu září eylül szeptember syyskuu syyskuussa septembrie σεπτεμβρίου σεπτέμβριο سبتمبر ספטמבר सितंबर
    """,
    10: """
        october oct oktober okt octobre octubre outubro ottobre октября октябрь октябре жовтня października
        październiku října říjnu ekim október lokakuu lokakuussa octombrie οκτωβρίου οκτώβριο أكتوبر اكتوبر
        אוקטובר अक्टूबर
    """,
    11: """
        november nov novembre noviembre novembro ноября ноябрь ноябре листопада listopada listopadzie listopadu
        kasım marraskuu marraskuussa noiembrie νοεμβρίου νοέμβριο نوفمبر נובמבר नवंबर
    """,
    12: """
        december dec dezember dez décembre decembre diciembre dezembro dicembre desember декабря декабрь декабре
        грудня grudnia grudniu prosince prosinci aralık joulukuu joulukuussa decembrie δεκεμβρίου δεκέμβριο ديسمبر
        דצמבר दिसंबर
    """,
}
_WEEKDAYS = (
    "monday montag lundi lunes lunedì segunda-feira maandag måndag mandag понедельник poniedziałek pazartesi maanantai "
    "maanantaina 星期一 周一 月曜日",
    "tuesday dienstag mardi martes martedì terça-feira dinsdag tisdag tirsdag вторник wtorek salı tiistai tiistaina "
    "星期二 周二 火曜日",
    "wednesday mittwoch mercredi miércoles mercoledì quarta-feira woensdag onsdag среду среда środę środa çarşamba "
    "keskiviikko keskiviikkona 星期三 周三 水曜日",
    "thursday donnerstag jeudi jueves giovedì quinta-feira donderdag torsdag четверг czwartek perşembe torstai "
    "torstaina 星期四 周四 木曜日",
    "friday freitag vendredi viernes venerdì sexta-feira vrijdag fredag пятницу пятница piątek cuma perjantai "
    "perjantaina 星期五 周五 金曜日",
    "saturday samstag samedi sábado sabato zaterdag lördag lørdag субботу суббота sobotę sobota cumartesi lauantai "
    "lauantaina 星期六 周六 土曜日",
    "sunday sonntag dimanche domingo domenica zondag söndag søndag воскресенье niedzielę niedziela pazar sunnuntai "
    "sunnuntaina 星期日 星期天 周日 日曜日",
)
_DAYS = {
    -2: """
        vorgestern avant-hier anteayer anteontem eergisteren позавчера przedwczoraj 前天 一昨日 おととい 그저께
        day_before_yesterday l'altro_ieri
    """,
    -1: """
        yesterday gestern hier ayer ontem ieri gisteren igår вчера wczoraj dün eilen včera tegnap χθες 昨天 昨日
        きのう 어제 أمس אתמול last_night i_går
    """,
    0: """
        today tonight heute hoy hoje oggi aujourd'hui vandaag idag сегодня dzisiaj dziś bugün tänään dnes σήμερα
        今天 今日 오늘 اليوم היום this_morning i_dag
    """,
    1: """
        tomorrow morgen demain mañana amanhã domani imorgon завтра jutro yarın huomenna zítra holnap αύριο 明天
        明日 내일 غدا מחר i_morgen
    """,
    2: """
        übermorgen après-demain overmorgen послезавтра pojutrze dopodomani 后天 後天 明後日 모레
        day_after_tomorrow pasado_mañana
    """,
}
_UNITS = {
    "day": """
        day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen dagar dage день дня дней 天
        日
    """,
    "week": """
        week weeks woche wochen semaine semaines semana semanas settimana settimane weken vecka veckor uge uger
        неделю недели недель неделе 周 星期 个星期 週 週間
    """,
    "month": """
        month months monat monate monaten mois mes meses mês mese mesi maand maanden månad månader måned måneder
        месяц месяца месяцев месяце 月 个月 個月 か月
    """,
    "year": "year years jahr jahre jahren ans année années año años ano anos anno anni jaar år год года лет году 年",
    "weekend": "weekend wochenende week-end finde выходные выходных",
}
_LAST = """
    last past previous letzte letzten letztes letzter vorige vorigen voriges dernier dernière passé passée pasado
    pasada passado passada scorso scorsa vorig förra sidste forrige прошлый прошлую прошлой прошлом прошлого
    zeszły zeszłym geçen 上 上个 上個 先
"""
_THIS = """
    this diese diesen dieses dieser ce cette este esta questo questa deze dit этот эту этой этом 本 这个 這個 今
"""
_NEXT = """
    next coming nächste nächsten nächstes nächster kommende kommenden prochain prochaine próximo próxima prossimo
    prossima volgende volgend nästa næste neste следующий следующую следующей следующем przyszły gelecek 下 下个
    下個 来 來
"""
_NUMBERS = (
    "one a an ein eine einem einer un une uno una een en один одну 一",
    "two zwei deux dos dois duas due twee två to два две 二 两",
    "three drei trois tres três tre drie три 三",
    "four vier quatre cuatro quatro quattro fyra fire четыре 四",
    "five fünf cinq cinco cinque vijf fem пять 五",
    "six sechs seis sei zes sex seks шесть 六",
    "seven sieben sept siete sete sette zeven sju syv семь 七",
    "eight acht huit ocho oito otto åtta otte восемь 八",
    "nine neun neuf nueve nove negen nio ni девять 九",
    "ten zehn dix diez dez dieci tien tio ti десять 十",
)


def _places(lists: dict[int, str]) -> dict[str, int]:
    return {word.replace("_", " "): place for place, words in lists.items() for word in words.split()}


MONTHS = _places(_MONTHS)
WEEKDAYS = _places(dict(enumerate(_WEEKDAYS)))
DAYS = _places(_DAYS)
"""Days from today."""
UNITS = {word: unit for unit, words in _UNITS.items() for word in words.split()}
SIDES = {word: side for side, words in ((-1, _LAST), (0, _THIS), (1, _NEXT)) for word in words.split()}
"""Last, this, next."""
NUMBERS = _places(dict(enumerate(_NUMBERS, 1)))
IN_GERMAN = frozenset(("hier",))
"""Words that name a day in one language and none in German, where they are common."""

"""Charset detection: by byte order mark or strict UTF, otherwise by the most common letters of languages.

Each legacy charset is listed with the common letters of its languages. A text is decoded in every charset that
accepts it; the one in which its letters cost the fewest bits is chosen.
"""

import codecs
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

EBCDIC = "cp037"
"""The charset of IBM's mainframes; its national variants have the same letters and digits."""
EBCDIC_MARKUP = re.compile(
    rb"[\x05\x0d\x15\x25\x40]*\x4c(?:\x5a\xc4\xd6\xc3|\x6f\xa7\x94\x93|\x88\xa3\x94\x93|\xc8\xe3\xd4\xd3)"
)
"""How `<!DOC`, `<?xml` and `<html` begin a file in EBCDIC."""
SAMPLE_BYTES = 8 * 1024
"""Enough for detection, and decoded in twenty charsets within some twenty milliseconds."""
BROKEN_AT_MOST = 0.02
"""Share of the characters beyond ASCII: a truncated or flipped byte does not make UTF-8 another charset."""

BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip

_HAN = (
    "的一是在不了有和人大中上到也生地出用分而成自年方家多小天心好全下然看同本工力行面那事又前最法文主如重日三十高月二"
    "明部去加水正合意美世信金立白北特老再新先知海太外安口手真百山西光每路度表少位五,。、"
)
_SIMPLIFIED = _HAN + (
    "这个们来为时会说国对发经过动学进着实开与无现问么从点还机关让间当种样业东两长见书将给电应体产义头气条员边万题军"
    "话听门达图资区级济认议设处队务统请专张王李你我他她名龄城市京"
)
_TRADITIONAL = _HAN + (
    "這個們來為時會說國對發經過動學進著實開與無現問麼從點還機關讓間當種樣業東兩長見書將給電應體產義頭氣條員邊萬題軍"
    "話聽門達圖資區級濟認議設處隊務統請專後裡灣華張王李你我他她名齡城市台"
)
_JAPANESE = (
    "のにはたをいるとしがてでなっれらもすりこだまさきめくあけどんよつえわおうかそちせやみろねばごじゅょゃー、。「」・ッンス"
    "ルトアイリクラシタドジフレマムティカサコログデュセプメバニパチオキブャウワョミエナハヒ日一国人年大十本中長出三時行"
    "見月分後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白天"
    "母火会社者事自業地方田員代住所京都市部区番号県町佐藤鈴村井野料資最度新合同定表作用開始動物理数実体関性的全対主当"
)
_HANGUL = (
    "이다의에는을가고하지로한은도사기를서어리자대아시나정있일제부들스인만수라그것해과전보면거상으조여원장주연구동성관계게"
    "오공와위내소러우년비개마선신되중화트생용모안국학경었했까니습요님세녕김름울"
)
_CYRILLIC = ("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфё", "оаинеітврсклудмпязьгбчйхжшюїцєщфґ", "аеиотнрсвлдкпмзъубгчщяжйцхшюф")
_QUOTES = "’“”–…€„«»°"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Letter statistics of a language in a charset."""

    share: float
    """The share of its common letters in the text beyond ASCII."""
    others: int
    """The number of other characters that make up the rest."""
    marks: str = ""


_LATIN = _Kind(0.95, 80, _QUOTES)
_LETTERS = _Kind(0.94, 80, _QUOTES)
_SIGNS = _Kind(0.60, 7_000)
_WIDE_SIGNS = _Kind(0.60, 25_000)

# Each charset with the languages that were written in it, their common letters first.
_SETS: tuple[tuple[str, _Kind, tuple[str, ...]], ...] = (
    ("cp1252", _LATIN, ("äüößÜÖÄ", "éèàêçôùâîûëïœÉ", "óíáéñú¿¡ü", "ãçáéõíóâêúà", "åäöéÅÄÖ", "åøæÅØÆ", "èàòùìé", "ëéïöü",
                        "’“”‘–—…•£©®°·", "€£©°·×")),
    ("cp1250", _LATIN, ("ęłóżąśćńźŚŻŁ", "íáěéřčžýšůúňťďóŠČŽ", "áéőöíóüűú", "ăâîşţ", "čšžćđČŠŽĆĐ")),
    ("iso8859_2", _LATIN, ("ęłóżąśćńźŚŻŁ", "íáěéřčžýšůúňťďóŠČŽ", "áéőöíóüűú", "čšžćđČŠŽĆĐ")),
    ("cp1254", _LATIN, ("ışüğöçİŞÇÖÜĞ",)),
    ("cp1251", _LETTERS, _CYRILLIC),
    ("koi8_r", _LETTERS, _CYRILLIC),
    ("cp866", _LETTERS, _CYRILLIC),
    ("iso8859_5", _LETTERS, _CYRILLIC),
    ("cp1253", _LETTERS, ("αοιετσνηυρπκμλςωάίόέήύώγδχθφβξζψ",)),
    ("cp1255", _LETTERS, ("יוהלאתרםבשמנעקדחפכצטגזןסךףץ",)),
    ("cp1256", _LETTERS, ("اليمنترودبعهسفكقحجشصطخضذغزثءئؤأإآىةظ،؟",)),
    ("cp874", _LETTERS, ("านรอกเงมยลวดทสตะปบคหแพชจขผไใโซถธศษภ่้ีัิึืุู์็ำๆ",)),
    ("cp932", _SIGNS, (_JAPANESE,)),
    ("euc_jp", _SIGNS, (_JAPANESE,)),
    ("gb18030", _SIGNS, (_SIMPLIFIED,)),
    ("big5hkscs", _SIGNS, (_TRADITIONAL,)),
    ("cp949", _SIGNS, (_HANGUL,)),
    ("utf-16-le", _WIDE_SIGNS, (_JAPANESE, _SIMPLIFIED, _TRADITIONAL, _HANGUL, *_CYRILLIC)),
    ("utf-16-be", _WIDE_SIGNS, (_JAPANESE, _SIMPLIFIED, _TRADITIONAL, _HANGUL, *_CYRILLIC)),
)  # fmt: skip
_BYTE_BITS = 7.0
"""The cost of an ASCII byte: in some charsets it may be the second half of a letter."""
_WRONG_BITS = 16.0
"""The cost of letters in an order that no language uses."""

# Labels of these charsets in web pages, mail and books; Latin-1 means windows-1252, as in browsers.
_LABELS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 us-ascii ascii ansi_x3.4-1968",
    "utf-16": "utf-16 utf16", "utf-16-le": "utf-16le utf-16-le", "utf-16-be": "utf-16be utf-16-be",
    "utf-32": "utf-32 utf32", "utf-32-le": "utf-32le utf-32-le", "utf-32-be": "utf-32be utf-32-be",
    "cp1252": "windows-1252 cp1252 iso-8859-1 iso8859-1 latin1 latin-1 l1 iso_8859-1 x-cp1252 ansi",
    "cp1250": "windows-1250 cp1250 x-cp1250", "iso8859_2": "iso-8859-2 iso8859-2 latin2",
    "cp1251": "windows-1251 cp1251 x-cp1251", "koi8_r": "koi8-r koi8", "koi8_u": "koi8-u",
    "cp866": "cp866 ibm866 866", "iso8859_5": "iso-8859-5", "cp1253": "windows-1253 cp1253",
    "iso8859_7": "iso-8859-7 greek", "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
    "cp1255": "windows-1255 cp1255 iso-8859-8 iso-8859-8-i", "cp1256": "windows-1256 cp1256", "iso8859_6": "iso-8859-6",
    "cp874": "windows-874 cp874 tis-620 iso-8859-11", "cp1257": "windows-1257 cp1257", "iso8859_13": "iso-8859-13",
    "cp1258": "windows-1258 cp1258", "iso8859_15": "iso-8859-15 latin9 latin-9",
    "mac_roman": "macintosh x-mac-roman mac-roman",
    "iso8859_3": "iso-8859-3", "iso8859_4": "iso-8859-4", "iso8859_10": "iso-8859-10", "iso8859_16": "iso-8859-16",
    EBCDIC: "ibm037 cp037 ebcdic-cp-us", "cp437": "cp437 ibm437", "cp850": "cp850 ibm850", "cp852": "cp852 ibm852",
    "mac_cyrillic": "x-mac-cyrillic", "cp932": "shift_jis shift-jis sjis x-sjis cp932 ms932 windows-31j ms_kanji",
    "euc_jp": "euc-jp eucjp x-euc-jp", "iso2022_jp": "iso-2022-jp csiso2022jp",
    "gb18030": "gb18030 gbk gb2312 gb_2312-80 x-gbk cp936 euc-cn",
    "big5hkscs": "big5 big5-hkscs cp950 x-x-big5",
    "cp949": "euc-kr euckr cp949 ks_c_5601-1987 ks_c_5601 windows-949 uhc", "iso2022_kr": "iso-2022-kr",
}  # fmt: skip
_PAIRS = frozenset({"cp932", "euc_jp", "gb18030", "big5hkscs", "cp949"})
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}

_HIGH = re.compile(rb"[\x80-\xff]")
_ESCAPES = re.compile(rb"\x1b(?:\$[@B]|\([BJI]|\$\(D)")
_TWO_ALPHABETS = re.compile(r"[A-Za-z][^\W\d_a-zA-Z]|[^\W\d_a-zA-Z][A-Za-z]")
_RUN_BEYOND_ASCII = re.compile(r"[^\W\d_a-zA-Z]{3,}")
_SEEN_IN_WORDS = re.compile(r"[^\W\d_]{3,}")
_CONTROLS = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ue000-\uf8ff\uff61-\uff9f]")
_MARKS = frozenset("«»“”„‘’–—…№©®°§€£·•、。，「」！？（）：；")


def prepare() -> None:
    """Load every codec before the sandbox forks: its child cannot."""
    for codec in _LABELS:
        codecs.lookup(codec)
    for _, codec in BOMS:
        codecs.lookup(codec)


def codec_of(label: str) -> str | None:
    """The codec of a charset label; None if it is unknown."""
    return _CODECS.get(label[:40].strip(" \t\r\n\"'").lower())


def written_in_ascii(label: bytes) -> str:
    """The charset that a document declares in ASCII bytes; ignored if it is UTF-16 or UTF-32, which it cannot be."""
    said = label.decode("ascii", "replace")
    return "" if (codec_of(said) or "").startswith(("utf-16", "utf-32")) else said


def decode(data: bytes, *, declared: str = "") -> str:
    """Decode bytes; nothing is left out, what cannot be decoded becomes U+FFFD."""
    codec, mark = detect(data, declared=declared)
    return data[mark:].decode(codec, "replace")


def detect(data: bytes, *, declared: str = "") -> tuple[str, int]:
    """The codec of a text by its beginning, and the length of its byte order mark."""
    for bom, codec in BOMS:
        if data.startswith(bom):
            return codec, len(bom)
    if EBCDIC_MARKUP.match(data):
        return EBCDIC, 0
    sample = telling(data)
    said = codec_of(declared)
    if said and said.startswith(("utf-1", "utf-3", "iso2022")):
        return said, 0
    if wide := _wide(data):
        return wide, 0
    if not _HIGH.search(sample):
        return ("iso2022_jp" if _ESCAPES.search(sample) else "utf-8"), 0
    # Bytes that are valid UTF-8 are UTF-8, whatever is declared, unless the declared charset is a double-byte one.
    if said not in _PAIRS and _is_utf8(sample):
        return "utf-8", 0
    if said and said != "utf-8" and _holds(sample, said):
        return said, 0
    return _likeliest(sample), 0


def telling(data: bytes) -> bytes:
    """A sample of the lines that are not pure ASCII: ASCII says nothing about the charset."""
    if len(data) <= SAMPLE_BYTES:
        return data
    first = _HIGH.search(data)
    if first is None:
        return data[:SAMPLE_BYTES]
    begin = data.rfind(b"\n", max(0, first.start() - 1024), first.start()) + 1 or first.start()
    lines = [line for line in data[begin : begin + 64 * SAMPLE_BYTES].split(b"\n") if not line.isascii()]
    return b"\n".join(lines)[:SAMPLE_BYTES]


def _is_utf8(sample: bytes) -> bool:
    text = sample.decode("utf-8", "replace")
    beyond = len(text) - len(text.encode("ascii", "ignore"))
    # The sample may end within a character; a text may itself contain U+FFFD.
    broken = text.count("\ufffd") - sample.count(b"\xef\xbf\xbd")
    good = beyond - broken
    return good > 0 and broken - text.endswith("\ufffd") <= BROKEN_AT_MOST * good


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: zero bytes, and the byte order that gives more ASCII."""
    sample = data[: min(len(data), SAMPLE_BYTES) & ~3] or data[:2]
    if b"\0" not in sample:
        return None
    quarters = [sample[at::4].count(0) / max(1, len(sample) // 4) for at in range(4)]
    if len(sample) >= 8 and quarters[3] == 1 and quarters[2] > 0.9:
        return "utf-32-le"
    if len(sample) >= 8 and quarters[0] == 1 and quarters[1] > 0.9:
        return "utf-32-be"
    found = {
        order: _plainness(data[: min(len(data), SAMPLE_BYTES) & ~1], order) for order in ("utf-16-le", "utf-16-be")
    }
    best = max(found, key=lambda order: found[order])
    return best if found[best] > 0 else None


def _plainness(sample: bytes, codec: str) -> float:
    """The share of ASCII in a text with hardly any control characters or unpaired surrogates; else 0."""
    text = sample.decode(codec, "replace")
    odd = sum(not (character.isprintable() or character in "\t\r\n\f") for character in text)
    if odd + text.count("\ufffd") > max(1, len(text) * 0.01):
        return 0.0
    return sum(character.isascii() for character in text) / max(1, len(text))


def _holds(sample: bytes, codec: str) -> bool:
    text = sample.decode(codec, "replace")
    return text.count("\ufffd") <= 1 + len(sample) * BROKEN_AT_MOST / 4


def _likeliest(sample: bytes) -> str:
    costs = {codec: _bits(sample, codec, kind, languages) for codec, kind, languages in _SETS}
    best = min(costs, key=lambda codec: costs[codec])
    return best if math.isfinite(costs[best]) else "cp1252"


@lru_cache(maxsize=64)
def _prices(letters: str, kind: _Kind) -> tuple[dict[str, float], float]:
    """The cost of each common letter (the most common first), and that of any other."""
    known = list(dict.fromkeys(letters + kind.marks))
    weights = [1 / (rank + 4) for rank in range(len(known))]
    whole = sum(weights) / kind.share
    prices = {letter: -math.log2(weight / whole) for letter, weight in zip(known, weights, strict=True)}
    return prices, -math.log2((1 - kind.share) / kind.others)


def _bits(sample: bytes, codec: str, kind: _Kind, languages: tuple[str, ...]) -> float:
    """The cost of the sample in this charset, in the language where it is lowest."""
    text = sample.decode(codec, "replace")
    broken = text.count("\ufffd") - text.endswith("\ufffd")
    if broken > 1 + len(text) * BROKEN_AT_MOST / 4:
        return math.inf
    counts = Counter(text)
    plain = sum(count for character, count in counts.items() if character.isascii())
    beyond = [(character, count) for character, count in counts.items() if not character.isascii()]
    least = min(_cost(beyond, *_prices(letters, kind)) for letters in languages)
    wrong = 2 * broken + len(_CONTROLS.findall(text)) + (_oddities(text, kind) if kind in (_LATIN, _LETTERS) else 0)
    return _BYTE_BITS * plain + least + _WRONG_BITS * wrong


def _cost(beyond: list[tuple[str, int]], prices: dict[str, float], other: float) -> float:
    bits = 0.0
    for character, count in beyond:
        price = prices.get(character)
        if price is None:
            price = other if character.isalnum() or character in _MARKS else other + 4
        bits += price * count
    return bits


def _oddities(text: str, kind: _Kind) -> int:
    """Letters in an order that no language uses: a capital after a small letter, two alphabets in one word."""
    capitals = sum(_capitals_within(word) for word in set(_SEEN_IN_WORDS.findall(text)))
    if kind is _LATIN:
        return capitals + sum(len(run) - 2 for run in _RUN_BEYOND_ASCII.findall(text))
    return capitals + len(_TWO_ALPHABETS.findall(text))


def _capitals_within(word: str) -> int:
    return 0 if word.isascii() else sum(a.islower() and b.isupper() for a, b in pairwise(word))

"""Text becomes terms: any script, stemmed where a stemmer exists, ids and codes whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search import tokenizer
from belino.search.segment import MessageFlag
from belino.search.tokenizer import TERM_CHARS, TERMS_AT_MOST, QueryWord, language_of, name_parts, query_words, tokenize


def found(question: str, text: str) -> bool:
    """Whether any word of the question is in the text."""
    terms = set(tokenize(text).terms)
    return any(terms.intersection(asked.terms) for asked in query_words(question, [tokenize(text).language]))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("running shoes", "She runs every morning"),
        ("Häuser", "Das Haus ist nicht mehr zu haben, aber die Häuser dort schon"),
        ("enfants", "Il est venu avec les enfants et leur chien"),
        ("встреча", "Мы говорили о встрече в субботу"),
        ("مكتبة", "سنلتقي في المكتبة غدا"),
        ("मिलेंगे", "हम कल मिलेंगे"),
        ("東京タワー", "昨日東京タワーに行きました"),
        ("猫", "うちの猫はかわいい"),
        ("会议时间", "明天的会议时间改了"),
        ("ช่องว่าง", "ภาษาไทยไม่มีช่องว่าง"),
        ("회의", "오늘 회의는 취소되었습니다"),
        ("σπίτι", "Πάμε στο σπίτι"),
    ],
    ids=["en", "de", "fr", "ru", "ar", "hi", "ja", "ja-one", "zh", "th", "ko", "el"],
)
def test_a_word_is_found_in_its_own_language(question: str, text: str) -> None:
    assert found(question, text)


@pytest.mark.parametrize(
    "code",
    [
        "E1234",
        "ABC-123",
        "0x80070005",
        "foo_bar.py",
        "https://example.com/a/b?c=1",
        "example.com",
        "ann@example.com",
        "@ann",
        "#general",
        "10.0.0.17",
        "v2.3.1",
        "/etc/hosts",
        "node-exporter:9100",
    ],
)
def test_ids_and_codes_are_found_whole(code: str) -> None:
    whole = code.lower().lstrip("/")
    assert whole in tokenize(f"it says {code} again").terms
    assert any(asked.terms == (whole,) for asked in query_words(code))


def test_a_longer_code_is_not_the_shorter_one() -> None:
    assert "abc-123" not in tokenize("ABC-1234 failed").terms
    assert "e1234" not in tokenize("E12345").terms


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("user token", "parseUserToken throws"),
        ("server factory", "HTTPServerFactory leaks"),
        ("getUserById", "get the user by id"),
        ("retry", "max_retry_count is five"),
        ("9fceb02d", "in 9fceb02d0ae598e95dc970b74767f19372d61af8 it broke"),
        ("sha256:4bf512", "the digest 4bf5122f344554c53bde2ebb8cd2b7e3d1600ad6"),
        ("🚀", "we are live 🚀"),
        ("👍", "he said 👍🏽"),
        ("👧", "👨‍👩‍👧 are here"),
        ("🇳🇴", "off to 🇳🇴 tomorrow"),
        ("发票", "發票寄了"),
        ("會議記錄", "会议记录在这里"),
        ("מפתחות", "המפתחות אצלי"),
        ("המפתחות", "שמתי את מפתחות הרכב"),
        ("משרד", "ניפגש שבמשרד"),
    ],
)
def test_a_part_a_prefix_a_picture_or_another_script_is_found(question: str, text: str) -> None:
    assert found(question, text)


def test_a_word_of_letters_is_no_hash_and_another_hash_is_another() -> None:
    assert tokenize("facade decade").terms == ["facad", "decad"]
    assert not found("9fceb02d", "9fcee1770ae598e95dc970b74767f19372d61af8")


def test_a_mention_is_a_word_too() -> None:
    assert {"@bob", "bob"} <= set(tokenize("ping @bob please").terms)


def test_stop_words_are_no_terms_and_contractions_are_stop_words() -> None:
    assert tokenize("what's it that we don't have").terms == []
    assert query_words("What is it that you’ve been doing?") == []


def test_a_word_of_another_language_keeps_its_meaning() -> None:
    assert tokenize("Wo ist der Schlüssel für die Tür?").language == "german"
    assert tokenize("die hard is on").terms[0] == "die"


def test_the_language_needs_two_words_that_speak_for_it() -> None:
    assert language_of(["die"]) == "english"
    assert language_of(["wo", "ist", "die", "tür"]) == "german"
    assert language_of(["no", "a", "me"]) == "english"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("sunucu şifresi değişti", "turkish"),
        ("zaświadczenie zostawiłam", "polish"),
        ("fest på havnen", "danish"),
        ("kokous päätettiin pitää tänään", "finnish"),
        ("Łukasz is coming at nine", "english"),
        ("naïve café talk", "english"),
    ],
)
def test_letters_speak_for_a_language_too(text: str, language: str) -> None:
    assert tokenize(text).language == language


def test_width_and_case_do_not_matter() -> None:
    assert tokenize("ＡＢＣ１２３ Straße").terms == tokenize("abc123 STRASSE").terms


def test_accents_are_not_needed() -> None:
    assert found("cafe", "Un café con leche, por favor, que es para mí")


def test_terms_that_stand_beside_words_do_not_come_between_them() -> None:
    terms = tokenize("see foo_bar.py now").terms
    assert terms[:4] == ["see", "foo", "bar", "py"]


def test_a_pasted_log_does_not_become_the_index() -> None:
    assert len(tokenize("word " * 100_000).terms) <= 2 * TERMS_AT_MOST
    assert all(len(term) <= TERM_CHARS for term in tokenize(f"x_{'a' * 10_000} {'é' * 10_000}.py").terms if "_" in term)


def test_a_question_asks_each_word_in_the_languages_of_the_channel() -> None:
    assert query_words("Häuser", ["english", "german"]) == [QueryWord("häuser", ("hauser", "haus"))]


def test_a_question_of_one_character_asks_for_it_and_a_longer_one_for_pairs() -> None:
    assert query_words("猫") == [QueryWord("猫", ("猫",))]
    assert query_words("東京都") == [QueryWord("東京都", ("东京",)), QueryWord("東京都", ("京都",))]


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("really?", MessageFlag.QUESTION),
        ("本当？", MessageFlag.QUESTION),
        ("we were three", MessageFlag.NUMBER),
        ("it took 40 min", MessageFlag.NUMBER),
        ("see you on Monday", MessageFlag.TIME),
        ("на прошлой неделе", MessageFlag.TIME),
        ("we went to Lisbon", MessageFlag.NAME),
    ],
)
def test_flags_tell_what_sort_of_text_it_is(text: str, flag: int) -> None:
    assert tokenize(text).flags & flag


def test_plain_talk_has_no_flags() -> None:
    assert tokenize("sounds good to me").flags == 0


def test_names_are_split_and_lose_their_possessive() -> None:
    assert name_parts("Anna-Lena O'Neil's") == ["anna", "lena", "neil"]


@given(st.text(max_size=300))
def test_any_text_can_be_read_and_asked(text: str) -> None:
    first = tokenize(text)
    assert first == tokenize(text)
    assert all(first.terms)
    assert query_words(text, ["english", "german", "russian"]) == query_words(text, ["russian", "german", "english"])
    name_parts(text)


def test_no_more_of_a_question_is_read_than_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    terms = tokenizer._terms

    def count(piece: str, language: str) -> tokenizer.Terms:
        looked_at.append(piece)
        return terms(piece, language)

    monkeypatch.setattr(tokenizer, "_terms", count)
    assert len(query_words("\ufdfa" * 4_000)) == tokenizer.QUERY_WORDS  # each is a sentence of four words
    assert len(looked_at) <= 2 * tokenizer.QUERY_WORDS


def test_endless_words_are_read_and_not_remembered() -> None:
    endless = "endless" * 100
    assert tokenize(f"{endless} usual").terms[1:] == ["usual"]
    assert "usual" in tokenizer._memory("english") and endless not in tokenizer._memory("english")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("zerowidth", "a zero\u200bwidth space inside"),
        ("cooperate", "co\u00adoperate, says the PDF"),
        ("hid\u2060den", "nothing is hidden"),
        ("password", "the pass\u202eword\u202c stands reversed"),
    ],
    ids=["zero-width", "soft-hyphen", "joiner", "direction"],
)
def test_what_nobody_sees_parts_no_word(question: str, text: str) -> None:
    assert found(question, text)

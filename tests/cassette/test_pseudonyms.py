"""Stand-ins: the same for the same, of the same shape, and none for a secret."""

import re

from hypothesis import given
from hypothesis import strategies as st

from belino.cassette.pseudonyms import Pseudonyms, Secrets

KEY = b"k" * 32


def make(**more: object) -> Pseudonyms:
    return Pseudonyms(KEY, **more)  # type: ignore[arg-type]


def test_an_id_has_the_same_stand_in_in_numbers_texts_addresses_and_keys() -> None:
    names = make()
    names.learn({"chat": {"id": -1001234567890}})
    stand_in = names.text("-1001234567890")
    assert re.fullmatch(r"-1\d{12}", stand_in)
    assert stand_in != "-1001234567890"
    assert names.value({"chat_id": -1001234567890}) == {"chat_id": int(stand_in)}
    assert names.text("telegram:default:-1001234567890") == f"telegram:default:{stand_in}"
    assert names.value({"-1001234567890": 1}) == {stand_in: 1}
    assert names.text("https://api.example.com/chats/-1001234567890/x") == f"https://api.example.com/chats/{stand_in}/x"


def test_a_name_is_replaced_word_by_word_wherever_it_is_said_and_keeps_its_length() -> None:
    names = make()
    names.learn({"first_name": "Annegret", "last_name": "Müller", "title": "Hikers"})
    said = names.text("ask ANNEGRET müller of the Hikers, or @annegret")
    assert not re.search(r"annegret|müller|hikers", said, re.IGNORECASE)
    first = names.text("annegret")
    assert said == f"ask {first.upper()} {names.text('müller')} of the {names.text('Hikers')}, or @{first}"
    assert len(said) == len("ask ANNEGRET müller of the Hikers, or @annegret")


def test_a_name_in_a_script_without_spaces_is_found_inside_a_text() -> None:
    names = make()
    names.learn_name("田中太郎")
    assert "田中太郎" not in names.text("昨日田中太郎さんに会った")


def test_the_mark_of_an_id_and_the_extension_of_a_file_stay() -> None:
    names = make()
    names.learn({"user": "U01ABCDEF2", "file_name": "tax return.pdf"})
    assert re.fullmatch(r"U\d\d[A-Z]{6}\d", names.text("U01ABCDEF2"))
    assert re.fullmatch(r"[a-z]{3} [a-z]{6}\.pdf", names.text("tax return.pdf"))
    assert "tax return" in names.text("about my tax return")


def test_times_quantities_and_the_words_of_a_platform_stay() -> None:
    names = make()
    names.learn_name("message")
    kept = {
        "type": "message", "date": 1794906063, "ts": "1794906063.000100", "file_size": 1234567890, "message_id": 17,
        "sent": "2026-11-17T09:01:03+00:00",
    }  # fmt: skip
    names.learn(kept)
    assert names.value(kept) == kept


def test_what_looks_like_an_email_a_phone_a_token_or_a_signed_link_is_replaced() -> None:
    said = make().text(
        "ann.walker@example.org +43 660 1234567 AgACAgIAAxkBAAIBY2Zk9QABHq https://cdn.example.com/a/b.png?ex=1&hm=abc#x"
    )
    assert not re.search(r"ann\.walker|660|AgACAg|hm=|abc", said)
    assert said.endswith(" https://cdn.example.com/a/b.png")


def test_every_secret_has_the_same_placeholder_in_every_form_it_is_written_in() -> None:
    names = make(secrets=Secrets(["12:a/b+c-secret", "xoxb-1-2-secret"]))
    for text in ("bot12:a/b+c-secret/x", "bot12%3Aa%2Fb%2Bc-secret/x"):
        assert names.text(text) == "botHIDDEN/x"
    assert names.value({"token": "xoxb-1-2-secret"}) == {"token": "xoxb-HIDDEN"}


def test_another_cassette_has_other_stand_ins() -> None:
    assert Pseudonyms(b"a" * 32).disguised("Annegret") != Pseudonyms(b"b" * 32).disguised("Annegret")


def test_filled_texts_keep_their_shape_and_the_mentions_in_them() -> None:
    names = make()
    names.learn({"username": "belino_bot"})
    filled = names.value({"text": "@belino_bot what is it, 42 times?"}, fill=True)["text"]
    assert filled.startswith(names.text("@belino_bot"))
    assert re.fullmatch(r"@[a-z]{6}_[a-z]{3} [a-z]{4} [a-z]{2} [a-z]{2}, 42 [a-z]{5}\?", filled)


@given(st.text(min_size=1, max_size=80))
def test_a_stand_in_is_as_long_as_what_it_stands_for(text: str) -> None:
    made = make().disguised(text)
    assert len(made.encode("utf-16", "surrogatepass")) == len(text.encode("utf-16", "surrogatepass"))

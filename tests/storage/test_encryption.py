"""Ids nobody can guess, and values nobody can read without the key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.errors import StoreError
from belino.storage.encryption import Keys, load_keys, ref_prefix

keys = Keys(b"k" * 32)
part = st.text(max_size=20).filter(lambda text: text.isascii() or text.isprintable())
# An unknown platform is looked for among all installed packages, which takes longer than the test.
five = st.tuples(st.sampled_from(["web", "telegram", "discord"]), part, part, part, part)


@given(five, five)
def test_two_items_share_an_id_only_if_they_are_the_same_item(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (keys.ref_id(*one) == keys.ref_id(*other)) == (one == other)


def test_moving_a_letter_from_one_part_to_the_next_gives_another_id() -> None:
    assert keys.ref_id("web", "a", "bc", "1", "0") != keys.ref_id("web", "ab", "c", "1", "0")


def test_another_key_gives_other_ids() -> None:
    item = ("web", "default", "main", "1", "0")
    assert Keys(b"x" * 32).ref_id(*item) != keys.ref_id(*item)


def test_an_id_is_a_prefix_and_twelve_letters_that_cannot_be_misread() -> None:
    ref_id = keys.ref_id("telegram", "main", "7", "1", "0")
    assert ref_id.startswith("tg_")
    assert len(ref_id) == 3 + 12
    assert set(ref_id[3:]) <= set("0123456789abcdefghjkmnpqrstvwxyz")
    assert len(keys.public_name(ref_id)) == 26
    assert keys.public_name(ref_id)[:12] != ref_id[3:]


@pytest.mark.parametrize(
    ("platform", "prefix"),
    [
        ("telegram", "tg_"),
        ("web", "web_"),
        ("zalo", "zalo_"),
        ("Rocket.Chat!", "rocketch_"),
    ],
)
def test_a_platform_has_its_prefix(platform: str, prefix: str) -> None:
    assert ref_prefix(platform) == prefix


def test_sealed_values_come_back_only_with_their_key_and_their_ref() -> None:
    sealed = keys.seal({"media_key": "secret"}, "wa_1")
    assert sealed is not None
    assert b"secret" not in sealed
    assert keys.unseal(sealed, "wa_1") == {"media_key": "secret"}
    with pytest.raises(StoreError, match="wa_2"):
        keys.unseal(sealed, "wa_2")
    with pytest.raises(StoreError):
        Keys(b"x" * 32).unseal(sealed, "wa_1")


def test_the_same_value_sealed_twice_looks_different() -> None:
    assert keys.seal({"a": "b"}, "wa_1") != keys.seal({"a": "b"}, "wa_1")


def test_nothing_to_seal_is_nothing() -> None:
    assert keys.seal({}, "wa_1") is None
    assert keys.unseal(None, "wa_1") == {}


def test_the_key_file_is_made_once_and_kept(tmp_path: Path) -> None:
    item = ("web", "default", "main", "1", "0")
    first = load_keys(tmp_path / "key").ref_id(*item)
    assert load_keys(tmp_path / "key").ref_id(*item) == first
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_damaged_key_file_is_refused_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(StoreError, match="32 bytes"):
        load_keys(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == b"short"

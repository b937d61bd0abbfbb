"""The state folder belongs to one person."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.errors import StoreError
from belino.domain.message import ConversationKey
from belino.storage.home import FOLDER_NAME_BYTES, Home, folder_name

parts = st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_state_folder_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = Home.at(tmp_path / "deep" / "state")
        outgoing = home.outgoing(ConversationKey(platform="web", account="default", channel="main"))
    finally:
        os.umask(before)
    assert mode(home.path) == 0o700
    assert [mode(outgoing / name) for name in ("pending", "sent", "error")] == [0o700] * 3
    assert mode(outgoing.parent) == mode(home.path / "media") == 0o700


@pytest.mark.parametrize("shared", [0o777, 0o770, 0o720, 0o707, 0o702])
def test_a_state_folder_the_group_or_others_may_write_to_is_refused_with_the_cure(tmp_path: Path, shared: int) -> None:
    tmp_path.chmod(shared)
    with pytest.raises(StoreError, match="chmod 700"):
        Home.at(tmp_path)


def test_a_state_folder_others_may_only_read_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode(Home.at(tmp_path).path) == 0o700


def test_a_state_folder_of_somebody_else_is_refused_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may be root, who may do everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(
        StoreError, match=r"cannot be read and written by you; name another with --home, or run: sudo chown"
    ):
        Home.at(tmp_path / "home")


def test_a_link_in_place_of_a_conversations_folder_is_refused(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "state")
    key = ConversationKey(platform="web", account="default", channel="main")
    (home.path / "media").mkdir(mode=0o700)
    (home.path / "media" / folder_name(key)).symlink_to(tmp_path)
    with pytest.raises(StoreError, match="must be a folder"):
        home.incoming(key)


def test_the_folder_comes_from_the_environment_else_from_the_persons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELINO_HOME", str(tmp_path / "chosen"))
    assert Home.at().path == tmp_path / "chosen"
    monkeypatch.delenv("BELINO_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.at().path == tmp_path / ".belino"


def test_a_json_config_is_used_only_where_there_is_no_toml(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "state")
    assert home.config_file.name == "belino.toml"
    (home.path / "belino.json").write_text("{}")
    assert home.config_file.name == "belino.json"
    (home.path / "belino.toml").write_text("")
    assert home.config_file.name == "belino.toml"


@given(parts, parts, parts, parts)
def test_a_conversations_folder_has_a_short_plain_name(platform: str, account: str, channel: str, thread: str) -> None:
    name = folder_name(ConversationKey(platform=platform, account=account, channel=channel, thread=thread))
    assert len(name.encode()) <= FOLDER_NAME_BYTES
    assert all(character.isascii() and (character.isalnum() or character == "-") for character in name)


def test_two_conversations_that_read_alike_have_two_folders() -> None:
    names = {
        folder_name(ConversationKey(platform="web", account="a", channel=channel))
        for channel in ("é", "ü", "x/y", "x-y")
    }
    assert len(names) == 4

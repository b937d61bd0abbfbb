"""One table of a configuration is changed, and every other word stays."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from belino.config import from_table
from belino.config.edit import edited, with_entry, write_config
from belino.config.secrets import read_secret, write_secret
from belino.domain.errors import ConfigError

TELEGRAM = ("adapters", "telegram")
VALUES = {"token": "file:telegram.token", "api_url": "http://127.0.0.1:9"}


def change(tmp_path: Path, text: str | None, name: str = "belino.toml") -> str:
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    meant, after = edited(file, TELEGRAM, VALUES)
    assert (json.loads if name.endswith("json") else tomllib.loads)(after) == meant
    return after


def test_a_file_that_is_not_there_begins_with_the_table(tmp_path: Path) -> None:
    assert change(tmp_path, None) == (
        '[adapters.telegram]\ntoken = "file:telegram.token"\napi_url = "http://127.0.0.1:9"\n'
    )


def test_a_table_is_added_after_everything_that_was_there(tmp_path: Path) -> None:
    old = "# mine\n[server]\nport = 9000 # because\n"
    after = change(tmp_path, old)
    assert after.startswith(old + "\n[adapters.telegram]\n")


@pytest.mark.parametrize("header", ["[adapters.telegram]", "[ adapters . telegram ]  # mine", "[adapters.'telegram']"])
def test_only_the_named_keys_of_its_own_table_are_replaced(tmp_path: Path, header: str) -> None:
    old = f'{header}\n# why\ntoken = "env:OLD"\nmode = "polling"\n\n[adapters.telegram.access]\nsenders = ["1"]\n'
    after = change(tmp_path, old)
    assert "# why" in after and "env:OLD" not in after
    assert tomllib.loads(after)["adapters"]["telegram"] == {
        **VALUES,
        "mode": "polling",
        "access": {"senders": ["1"]},
    }


def test_json_is_changed_too(tmp_path: Path) -> None:
    after = change(tmp_path, '{"server": {"port": 9000}}', "belino.json")
    assert json.loads(after) == {"server": {"port": 9000}, "adapters": {"telegram": VALUES}}


@pytest.mark.parametrize(
    "old",
    [
        'adapters.telegram.token = "env:OLD"\n',
        'adapters = { telegram = { token = "env:OLD" } }\n',
        '[agent]\nname = """\n[adapters.telegram]\n"""\n[adapters.telegram]\ntoken = "env:OLD"\n',
        '[adapters.telegram]\ntoken = """\nenv:OLD"""\n',
    ],
)
def test_what_only_a_person_should_touch_is_left_alone_and_told(tmp_path: Path, old: str) -> None:
    file = tmp_path / "belino.toml"
    file.write_text(old, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"write this into it yourself:\n\[adapters\.telegram\]\ntoken = "):
        edited(file, TELEGRAM, VALUES)
    assert file.read_text(encoding="utf-8") == old


def test_the_file_is_put_in_place_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "belino.toml"
    write_config(file, "# new\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and list(tmp_path.iterdir()) == [file]


def test_a_secret_in_a_file_is_read_and_shown_by_its_name_only(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    file = write_secret(folder, "telegram.token", "123:canary-5ecret")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600
    config = from_table({"adapters": {"telegram": {"token": "file:telegram.token"}}}, secrets=folder)
    (telegram,) = [adapter for adapter in config.adapters if adapter.platform == "telegram"]
    assert telegram.options.token.reveal() == "123:canary-5ecret"
    assert str(telegram.options.token) == "file:telegram.token" and "canary" not in repr(config)


@pytest.mark.parametrize("name", ["../key", "/etc/passwd", "a/b", ".hidden", "", "x" * 101, "a\nb"])
def test_a_secret_is_named_by_a_plain_name_inside_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "key").write_text("x")
    with pytest.raises(ValueError, match="by its name alone"):
        read_secret(name, tmp_path / "secrets")


def test_a_secret_that_others_may_read_is_refused_with_the_cure(tmp_path: Path) -> None:
    file = write_secret(tmp_path / "secrets", "t", "canary-5ecret")
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="others may read; run: chmod 600") as refusal:
        from_table({"adapters": {"telegram": {"token": "file:t"}}}, secrets=tmp_path / "secrets")
    assert "canary" not in str(refusal.value)


def test_a_secret_that_is_a_link_or_missing_or_empty_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    write_secret(folder, "real", "x")
    (folder / "link").symlink_to(folder / "real")
    write_secret(folder, "empty", "")
    for name, told in (("link", "cannot be read"), ("missing", "is not there"), ("empty", "holds nothing")):
        with pytest.raises(ValueError, match=told):
            read_secret(name, folder)


MODELS = ("tools", "media", "audio", "models")
ENTRY = {"provider": "deepgram", "usd_per_minute": 0.0043}


def add(file: Path) -> str:
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    parsed = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    meant, after = with_entry(file, parsed, text, MODELS, ENTRY)
    assert (json.loads if file.suffix == ".json" else tomllib.loads)(after) == meant
    assert meant["tools"]["media"]["audio"]["models"][-1] == ENTRY
    return after


@pytest.mark.parametrize(
    "old", ["", "# mine\n[logs]\nlevel = 'debug'\n", "[[tools.media.audio.models]]\nprovider = 'openai'\n"]
)
def test_an_entry_is_added_after_those_that_are_there(tmp_path: Path, old: str) -> None:
    file = tmp_path / "belino.toml"
    file.write_text(old, encoding="utf-8")
    after = add(file)
    assert after.startswith(old) and after.endswith(
        '[[tools.media.audio.models]]\nprovider = "deepgram"\nusd_per_minute = 0.0043\n'
    )


def test_an_entry_is_added_to_json_too(tmp_path: Path) -> None:
    file = tmp_path / "belino.json"
    file.write_text('{"logs": {"level": "debug"}}', encoding="utf-8")
    assert json.loads(add(file))["logs"] == {"level": "debug"}


def test_a_list_written_inline_is_left_alone_and_told(tmp_path: Path) -> None:
    file = tmp_path / "belino.toml"
    file.write_text("[tools.media.audio]\nmodels = [{provider = 'openai'}]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"write this into it yourself:\n\[\[tools.media.audio.models\]\]"):
        add(file)


def test_a_table_before_a_list_of_tables_ends_there(tmp_path: Path) -> None:
    file = tmp_path / "belino.toml"
    file.write_text("[profiles.deepgram]\n[[tools.media.models]]\nkey = 'x'\n", encoding="utf-8")
    meant, after = edited(file, ("profiles", "deepgram"), {"key": "file:k"})
    assert tomllib.loads(after) == meant and meant["tools"]["media"]["models"] == [{"key": "x"}]

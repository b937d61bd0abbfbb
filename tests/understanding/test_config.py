"""How media is read can be set in TOML and JSON, in snake_case and camelCase, and every mistake is told."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from belino.config import Config, as_table, from_table, load
from belino.domain.errors import ConfigError
from belino.domain.message import ChatType
from belino.domain.reading import MediaCapability, Skill
from belino.storage.home import Home
from belino.understanding.config import MediaTools
from understanding.scripted import Shelf

SAMPLES = Path(__file__).parent.parent / "samples" / "media_tools"


@pytest.fixture(autouse=True)
def providers(shelf: Shelf) -> None:
    shelf.add("deepgram", Skill.TRANSCRIBE)
    shelf.add("openai", Skill.TRANSCRIBE, Skill.DESCRIBE)
    shelf.add("cli", Skill.TRANSCRIBE)


def read(text: str) -> MediaTools:
    return from_table(tomllib.loads(text)).tools.media


@pytest.mark.parametrize(("sample", "model"), [("audio", None), ("audio_with_model", "nova-2")])
def test_the_documented_json_is_read_as_it_stands(tmp_path: Path, sample: str, model: str | None) -> None:
    home = Home.at(tmp_path / "home")
    (home.path / "belino.json").write_bytes((SAMPLES / f"{sample}.json").read_bytes())
    audio = load(home).tools.media.audio
    assert audio.enabled
    assert [(entry.provider, entry.type, entry.options.model) for entry in audio.models] == [
        ("deepgram", "provider", model)
    ]


def test_the_documented_list_of_models_is_read_as_it_stands() -> None:
    models = json.loads("{" + (SAMPLES / "models.txt").read_text(encoding="utf-8") + "}")
    (entry,) = from_table({"tools": {"media": {"audio": models}}}).tools.media.audio.models
    assert (entry.provider, entry.options.model) == ("openai", "whisper-1")


def test_a_provider_may_have_a_command_of_its_own() -> None:
    tools = read('[[tools.media.image.models]]\nprovider = "local_tesseract"\ncommand = "tesseract-5"')
    (entry,) = tools.image.models
    assert (entry.type, entry.provider, entry.options.command) == ("provider", "local_tesseract", "tesseract-5")


def test_toml_and_camel_case_json_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "key-number-one")
    monkeypatch.setenv("TWO", "key-number-two")
    toml = """
        [tools.media]
        concurrency = 3
        echo_transcript = true
        attachments = { mode = "first", max_attachments = 2, prefer = "last" }
        limits = { seconds_per_day = 600, usd_per_day = 0.5 }
        [tools.media.scope]
        default = "deny"
        rules = [{ action = "allow", platform = "web", chat_type = "direct", key_prefix = "web:default:" }]
        [[tools.media.audio.models]]
        provider = "openai"
        profile = "work"
        timeout_seconds = 20
        max_bytes = 5
        usd_per_minute = 0.006
        base_url = "https://other.test/v1"
        [[tools.media.audio.models]]
        command = "whisper-cli"
        args = ["{{AttachmentPath}}"]
        [profiles.work]
        keys = ["env:ONE", "env:TWO"]
    """
    camel = {
        "tools": {
            "media": {
                "concurrency": 3,
                "echoTranscript": True,
                "attachments": {"mode": "first", "maxAttachments": 2, "prefer": "last"},
                "limits": {"secondsPerDay": 600, "usdPerDay": 0.5},
                "scope": {
                    "default": "deny",
                    "rules": [
                        {
                            "action": "allow",
                            "match": {"channel": "web", "chatType": "direct", "keyPrefix": "web:default:"},
                        }
                    ],
                },
                "audio": {
                    "models": [
                        {
                            "provider": "openai",
                            "profile": "work",
                            "timeoutSeconds": 20,
                            "maxBytes": 5,
                            "usdPerMinute": 0.006,
                            "baseUrl": "https://other.test/v1",
                        },
                        {"type": "cli", "command": "whisper-cli", "args": ["{{AttachmentPath}}"]},
                    ]
                },
            }
        },
        "profiles": {"work": {"keys": ["env:ONE", "env:TWO"]}},
    }
    config = from_table(tomllib.loads(toml))
    assert config == from_table(camel)
    first, second = config.tools.media.audio.models
    assert (first.timeout_seconds, first.max_bytes, first.options.base_url) == (20, 5, "https://other.test/v1")
    assert (second.provider, second.type, second.options.command) == ("cli", "cli", "whisper-cli")
    assert config.tools.media.scope.rules[0].chat_type is ChatType.DIRECT
    assert [key.reveal() for key in config.profiles["work"].all_keys] == ["key-number-one", "key-number-two"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[tools.media]\nconcurency = 1",
            "concurency is not a key belino knows; did you mean concurrency?",
        ),
        ("[tools]\nmidia = 1", "tools.midia is not a key belino knows; did you mean media? Known keys here: media"),
        ("[tools.media.audio]\nmodel = 1", "tools.media.audio.model is not a key"),
        ("[tools.media]\naudio = 1", "tools.media.audio must be a table, not a number"),
        ("[tools.media.audio]\nmodels = 1", "tools.media.audio.models must be a list of tables, not a number"),
        ("[[tools.media.audio.models]]\nmodel = 'x'", "tools.media.audio.models[0].provider is missing"),
        ("[[tools.media.models]]\nprovider = 'nobody'", "tools.media.models[0].provider: there is no provider named"),
        (
            "[[tools.media.audio.models]]\nprovider = 'deepgram'\nlanguages = 'de'",
            "tools.media.audio.models[0].languages is not a key belino knows; did you mean language?",
        ),
        (
            "[[tools.media.audio.models]]\nprovider = 'deepgram'\nprofile = 'x'",
            "tools.media.audio.models[0].profile names 'x', which is not there; write [profiles.NAME]",
        ),
        ("[tools.media]\nturn_seconds = 1\nturnSeconds = 2", "tools.media.turn_seconds is set twice"),
        ("[tools.media]\nconcurrency = 0", "tools.media.concurrency must be from 1 to 64, not 0"),
        (
            "[tools.media.attachments]\nmax_attachments = 0",
            "attachments.max_attachments must be at least 1",
        ),
        ("[tools.media.scope]\nrules = [{ platform = 'web' }]", "tools.media.scope.rules[0].action is missing"),
        ("[tools.media.limits]\nusd_per_day = -1", "tools.media.limits.usd_per_day must be at least 0, not -1"),
        ("[tools.media]\necho_format = 'said'", "tools.media.echo_format must contain {transcript}"),
        ("[profiles.work]", "profiles.work.key is missing"),
        ("[profiles.work]\nkey = 'abc'", 'profiles.work.key must be written "env:NAME"'),
        ("profiles = 1", "profiles must be a table; write [profiles.NAME]"),
    ],
)
def test_a_mistake_is_told_in_one_sentence_that_names_the_key(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as told:
        read(text)
    assert says in str(told.value)


def test_an_unknown_key_of_an_entry_lists_the_keys_of_the_entry_and_of_its_provider() -> None:
    with pytest.raises(ConfigError) as told:
        read("[[tools.media.audio.models]]\nprovider = 'openai'\nurl = 'x'")
    for key in ("provider", "model", "base_url", "max_bytes", "usd_per_page", "profile"):
        assert key in str(told.value).partition("Known keys here:")[2]


def test_a_key_is_shown_by_its_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "key-number-one")
    table: dict[str, Any] = {
        "profiles": {"work": {"key": "env:ONE"}},
        "tools": {"media": {"models": [{"provider": "openai", "profile": "work", "key": "env:ONE"}]}},
    }
    shown = json.dumps(as_table(from_table(table)))
    assert "key-number-one" not in shown
    assert shown.count("env:ONE") == 2


def test_without_settings_every_kind_of_media_is_read_and_nothing_is_sent_away() -> None:
    tools = Config().tools.media
    assert all(tools.of(kind).enabled for kind in MediaCapability)
    assert (tools.auto, tools.echo_transcript, tools.audio_preflight) == ("local", False, False)

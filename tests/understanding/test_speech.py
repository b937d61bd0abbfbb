"""A voice is configured like the rest of media, every mistake is told, and by default there is none."""

import tomllib

import pytest

from belino.config import from_table
from belino.domain.errors import ConfigError
from belino.gateway.voice import keys_of
from belino.understanding.speech import SpeechConfig


def read(text: str) -> SpeechConfig:
    return from_table({"tools": {"media": {"speech": tomllib.loads(text)}}}).tools.media.speech


def test_by_default_nothing_is_spoken() -> None:
    speech = from_table({}).tools.media.speech
    assert not speech.is_on
    assert speech.auto == "off"


def test_camel_case_and_snake_case_mean_the_same() -> None:
    snake = (
        'provider = "house"\nbase_url = "http://127.0.0.1:8880/v1"\nmodel = "m"\nmax_chars = 900\nusd_per_mchar = 2.5'
    )
    camel = 'provider = "house"\nbaseUrl = "http://127.0.0.1:8880/v1"\nmodel = "m"\nmaxChars = 900\nusdPerMchar = 2.5'
    assert read(snake) == read(camel)
    assert read(snake).price(2_000_000) == 5.0


def test_a_program_costs_nothing_and_a_service_what_is_configured() -> None:
    assert read('command = "piper"').price(1_000) == 0.0
    assert read('provider = "openai"').price(1_000) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('auto = "always"', 'tools.media.speech.auto = "always" needs a voice; set provider or command'),
        ('provider = "openai"\ncommand = "piper"', "provider and command exclude each other"),
        ('args = ["-x"]', "args belong to command"),
        ('provider = "mine"', "provider 'mine' needs a base_url; without one, write openai, deepgram"),
        ('provider = "mine"\nbase_url = "https://a.example/v1"', "provider 'mine' needs a model"),
        ('provider = "deepgram"\nmax_chars = 2001', "max_chars must be at most 2000, which is the limit of deepgram"),
        (
            'command = "x"\nargs = ["{{Text}}"]',
            "args holds {{Text}}, which is not known; the known ones are {{TextPath}}",
        ),
        ('provider = "openai"\nbase_url = "http://tts.example/v1"', "base_url must be encrypted"),
        ('provider = "openai"\nauto = "sometimes"', "tools.media.speech.auto must be 'off', 'inbound' or 'always'"),
        (
            'provider = "openai"\nvoices = "x"',
            "tools.media.speech.voices is not a key belino knows; did you mean voice?",
        ),
        ('provider = "openai"\nprofile = "none"', "tools.media.speech.profile names 'none', which is not there"),
        ('command = "bin/piper"', "command must be a name on PATH or an absolute path"),
        ('command = "x"\nargs = ["{{Voice}}"]', "args holds {{Voice}}, and voice is not set"),
        ('command = "x"\ntimeout_seconds = 0.01', "tools.media.speech.timeout_seconds must be from 0.1 to 600"),
    ],
)
def test_a_mistake_is_told_with_its_key(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(text)
    assert told in str(error.value)


def test_keys_come_from_the_profile_else_from_the_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "key-number-one")
    monkeypatch.setenv("TWO", "key-number-two")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "key-of-deepgram")
    speech = {"provider": "deepgram", "profile": "voice"}
    table = {"tools": {"media": {"speech": speech}}, "profiles": {"voice": {"keys": ["env:ONE", "env:TWO"]}}}
    assert [key.reveal() for key in keys_of(from_table(table))] == ["key-number-one", "key-number-two"]
    usual = {"tools": {"media": {"speech": {"provider": "deepgram"}}}}
    assert [key.reveal() for key in keys_of(from_table(usual))] == ["key-of-deepgram"]
    elsewhere = {"tools": {"media": {"speech": {"provider": "deepgram", "base_url": "https://a.example/v1"}}}}
    assert keys_of(from_table(elsewhere)) == ()

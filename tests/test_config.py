"""Every setting has a default, every mistake one sentence, and no secret is ever shown."""

import copy
import json
import os
import pickle
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pytest

from belino import registry
from belino.config import Config, ServerConfig, as_table, from_table, keep_good, load, load_good, reference, template
from belino.domain.errors import ConfigError
from belino.net.redact import Secret
from belino.storage.home import Home

CANARY = "canary-5up3r-s3cret"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path / "home")


@pytest.fixture
def read(home: Home) -> Callable[[str], Config]:
    def write_and_load(text: str) -> Config:
        (home.path / "belino.toml").write_text(text, encoding="utf-8")
        return load(home)

    return write_and_load


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A table inside a plugin's table."""

    host: str
    tries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ParrotConfig:
    """A plugin's own settings."""

    token: Secret
    spare: Secret | None = None
    endpoint: Endpoint | None = None
    tags: tuple[str, ...] = ()
    mirrors: Mapping[str, tuple[Endpoint, ...]] = field(default_factory=dict)
    limit: int | str = 3


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter named parrot, as if a package had brought it."""
    found = registry.find
    monkeypatch.setenv("PARROT_TOKEN", CANARY)

    def find(group: registry.Group, name: str) -> registry.Plugin:
        plugin = found(group, "web" if name == "parrot" else name)
        return replace(plugin, name=name, config_type=ParrotConfig) if name == "parrot" else plugin

    monkeypatch.setattr(registry, "find", find)


def test_without_a_file_every_default_is_in_force(home: Home) -> None:
    config = load(home)
    assert config == Config()
    assert (config.server.bind, config.server.port, config.agent.kind) == ("127.0.0.1", 8787, "demo")
    assert [(a.platform, a.account) for a in config.adapters] == [("web", "default")]


def test_an_empty_file_means_the_defaults(read: Callable[[str], Config]) -> None:
    assert read("") == Config()


def test_the_template_means_exactly_the_defaults(read: Callable[[str], Config]) -> None:
    assert read(template()) == Config()


def test_the_template_with_every_key_uncommented_means_the_defaults_too(read: Callable[[str], Config]) -> None:
    lines = [line[1:] if line[:1] == "#" and line[1:2] not in (" ", "") else line for line in template().splitlines()]
    text = "\n".join(lines)
    assert tomllib.loads(text)["server"]["port"] == 8787
    assert read(text) == Config()


def test_toml_and_json_have_the_same_keys(home: Home) -> None:
    table = {"server": {"port": 9000, "allowed_hosts": ["belino.test"]}, "logs": {"level": "debug"}}
    (home.path / "belino.json").write_text(json.dumps(table), encoding="utf-8")
    config = load(home)
    assert (config.server.port, config.server.allowed_hosts, config.logs.level) == (9000, ("belino.test",), "debug")


def test_a_file_named_on_the_command_line_is_the_only_one_read(home: Home, tmp_path: Path) -> None:
    (home.path / "belino.toml").write_text("[server]\nport = 1111", encoding="utf-8")
    other = tmp_path / "other.toml"
    other.write_text("[sessions]\nattempts = 5", encoding="utf-8")
    config = load(home, other)
    assert (config.server.port, config.sessions.attempts) == (8787, 5)
    with pytest.raises(ConfigError, match="does not exist"):
        load(home, tmp_path / "nowhere.toml")


def test_a_planted_env_or_config_file_in_the_working_folder_changes_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("BELINO_HOME=/tmp/evil\nPORT=1\nSERVER__PORT=1\n", encoding="utf-8")
    (tmp_path / "belino.toml").write_text("[server]\nport = 6666", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERVER__PORT", "1")
    monkeypatch.setenv("BELINO_PORT", "1")
    assert load(home) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[server]\nprot = 1", "server.prot is not a key belino knows; did you mean port? Known keys here: allowed_"),
        (
            "[servr]\nport = 1",
            "servr is not a key belino knows; did you mean server? Known keys here: access, adapters, ",
        ),
        ('[server]\nport = "8787"', "server.port must be a valid integer, not a string; the default is 8787"),
        ("[server]\nport = true", "server.port must be a valid integer, not true or false; the default is 8787"),
        ("[server]\nport = 70000", "server.port must be from 0 to 65535, not 70000; the default is 8787"),
        ("[sessions]\nmax_running = 0", "sessions.max_running must be at least 1, not 0; the default is 16"),
        ("[media]\nmax_bytes = -1", "media.max_bytes must be at least 0, not -1"),
        ("[media]\nretention_days = 999999999", "media.retention_days must be from 0 to 36500, not 999999999"),
        ('[logs]\nlevel = "loud"', "logs.level must be 'debug', 'info', 'warning' or 'error', not a string"),
        ('retention_days = "90"', "retention_days must be a whole number of days, not a string; the default is 0"),
        ("retention_days = true", "retention_days must be a whole number of days, not true or false; the default"),
        ("retention_days = -1", "retention_days must be from 0 to 36500, not -1; the default is 0"),
        ("retention_days = 999999999", "retention_days must be from 0 to 36500, not 999999999; the default is 0"),
        ("server = 3", "server must be a table; write [server]"),
        ("adapters = 3", "adapters must be a table"),
        ("[adapters]\nweb = 3", "adapters.web must be a table; write [adapters.web]"),
        ("[adapters.telepathy]", "there is no adapter named 'telepathy'; known ones: "),
        ('[agent]\nkind = "oracle"', "there is no agent named 'oracle'; known ones: "),
        ("[agent]\nkind = 3", "agent.kind must be a string, not a number"),
        ("[agent]\nnmae = 'x'", "agent.nmae is not a key belino knows; did you mean name?"),
        ('[adapters.web]\nenabled = "no"', "adapters.web.enabled must be true or false, not a string"),
        ("[adapters.web]\ncolour = 1", "adapters.web.colour is not a key belino knows; Known keys here: access, acc"),
        ("[adapters.web.access]\nsender = []", "adapters.web.access.sender is not a key belino knows; did you mean"),
        (
            "[adapters.web.access]\nsenders = [12]",
            "adapters.web.access.senders[0] must be a valid string, not a number",
        ),
        (
            '[adapters.web.access.channels."-100"]\nmentoin = true',
            "adapters.web.access.channels.-100.mentoin is not a key belino knows; did you mean mention?",
        ),
        ("[server\n", "it is not valid TOML: "),
        pytest.param(f"a = {'[' * 5_000}", "it is nested too deeply", id="nested"),
        ("[server]\ntls_cert = 'a.pem'", "server.tls_cert and tls_key belong together"),
        ("[server]\npublic_url = 'belino.test'", "server.public_url must begin with https://"),
        ("[server]\ntrusted_proxies = ['proxy']", "server.trusted_proxies holds 'proxy', which is no address"),
    ],
)
def test_a_mistake_is_told_in_one_sentence_that_names_the_key(
    read: Callable[[str], Config], text: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith(f"belino.toml: {says}")
    assert "\n" not in str(caught.value)


def test_a_file_may_begin_with_a_byte_order_mark(read: Callable[[str], Config]) -> None:
    assert read("\ufeff[server]\nport = 9000").server.port == 9000


def test_a_key_may_stand_above_all_tables(read: Callable[[str], Config]) -> None:
    assert Config().retention_days == 0
    assert read("retention_days = 90\n[server]\nport = 9000").retention_days == 90


def test_of_several_mistakes_the_first_is_told_and_the_rest_counted(read: Callable[[str], Config]) -> None:
    with pytest.raises(ConfigError, match=r"server\.bind must be a valid string.*\(and 2 more\)$"):
        read('[server]\nbind = 1\nport = "x"\nfoo = 1')


def test_a_number_that_is_none_is_refused(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"sessions\.turn_seconds must be"):
        from_table({"sessions": {"turn_seconds": float("nan")}})


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", "belino.test", ""])
def test_a_bind_beyond_this_machine_needs_encryption(bind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reaches beyond this machine without encryption; set tls_cert"):
        ServerConfig(bind=bind)
    assert ServerConfig(bind=bind, trusted_proxies=("192.0.2.1",)).bind == bind
    assert ServerConfig(bind=bind, tls_cert=tmp_path / "c", tls_key=tmp_path / "k").bind == bind


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_a_bind_on_loopback_needs_nothing(bind: str) -> None:
    assert ServerConfig(bind=bind).bind == bind


@pytest.mark.parametrize("entry", ["@alice", "Alice Smith", "", "a\tb"])
def test_an_allow_list_takes_ids_and_refuses_names(read: Callable[[str], Config], entry: str) -> None:
    where = "[adapters.web.access.channels.C1]" if entry == "@alice" else "[adapters.web.access]"
    with pytest.raises(ConfigError, match="which is a name anybody may take; write the platform's id"):
        read(f"{where}\nsenders = {json.dumps([entry])}")


def test_an_allow_list_is_kept_as_it_was_written(read: Callable[[str], Config]) -> None:
    config = read(
        '[adapters.web.access]\nsenders = ["12345", "*"]\n'
        '[adapters.web.access.channels."-100"]\nsenders = ["7"]\nmention = false'
    )
    access = config.adapters[0].access
    assert access.senders == ("12345", "*")
    assert (access.channels["-100"].senders, access.channels["-100"].mention) == (("7",), False)


def test_nobody_is_on_a_list_that_nobody_wrote() -> None:
    assert Config().adapters[0].access.senders == ()
    assert not Config().adapters[0].access.channels


def test_the_web_chat_can_be_turned_off_and_stays_beside_others(read: Callable[[str], Config], parrot: None) -> None:
    assert read("[adapters.web]\nenabled = false").adapters == ()
    both = read('[adapters.parrot]\ntoken = "env:PARROT_TOKEN"')
    assert [(a.platform, a.account) for a in both.adapters] == [("web", "default"), ("parrot", "default")]


def test_a_platform_may_have_several_accounts(read: Callable[[str], Config], parrot: None) -> None:
    token = 'token = "env:PARROT_TOKEN"'
    config = read(
        f"[adapters.parrot]\n{token}\n[adapters.parrot.accounts.second]\n{token}\ntags = ['a']\n"
        f"[adapters.parrot.accounts.third]\nenabled = false"
    )
    accounts = [(a.account, a.options.tags) for a in config.adapters if a.platform == "parrot"]
    assert accounts == [("default", ()), ("second", ("a",))]


def test_accounts_alone_make_no_default_account(read: Callable[[str], Config], parrot: None) -> None:
    config = read('[adapters.parrot.accounts.only]\ntoken = "env:PARROT_TOKEN"')
    assert [a.account for a in config.adapters if a.platform == "parrot"] == ["only"]


def test_the_default_account_is_not_named_twice(read: Callable[[str], Config], parrot: None) -> None:
    token = 'token = "env:PARROT_TOKEN"'
    with pytest.raises(ConfigError, match=r"adapters\.parrot\.accounts\.default is already \[adapters\.parrot\]"):
        read(f"[adapters.parrot]\n{token}\n[adapters.parrot.accounts.default]\n{token}")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "adapters.parrot.token is missing"),
        (f'token = "{CANARY}"', 'adapters.parrot.token must be written "env:NAME"'),
        ('token = "env:"', 'adapters.parrot.token must be written "env:NAME"'),
        ("token = 5", 'adapters.parrot.token must be written "env:NAME"'),
        (
            'token = "env:NOBODY_SET_THIS"',
            "adapters.parrot.token names the environment variable NOBODY_SET_THIS, which",
        ),
        ('token = "env:PARROT_TOKEN"\nendpoint = {}', "adapters.parrot.endpoint.host is missing"),
        ('token = "env:PARROT_TOKEN"\nendpoint = {hots = "x"}', "adapters.parrot.endpoint.host is missing"),
        (
            'token = "env:PARROT_TOKEN"\nmirrors = {a = [{host = "x", tires = 1}]}',
            "adapters.parrot.mirrors.a[0].tires is not a key belino knows; did you mean tries? Known keys here: host",
        ),
        ('token = "env:PARROT_TOKEN"\nlimit = {int = 1}', "adapters.parrot.limit"),
        ('token = "env:PARROT_TOKEN"\nlimit = []', "adapters.parrot.limit"),
        (
            'token = "env:PARROT_TOKEN"\nendpoint = {host = "x", tires = 1}',
            "adapters.parrot.endpoint.tires is not a key belino knows; did you mean tries? Known keys here: host",
        ),
    ],
)
def test_a_plugins_own_settings_are_checked_the_same_way(
    read: Callable[[str], Config], parrot: None, table: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"[adapters.parrot]\n{table}")
    assert str(caught.value).startswith(f"belino.toml: {says}")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (type("Config", (), {}), "must be a dataclass"),
        (make_dataclass("Config", [("far", Thread, None)]), "adapters.parrot cannot be read: the Config of"),
        (make_dataclass("Config", [("enabled", bool, True)]), "adapters.parrot.enabled belongs to belino"),
    ],
)
def test_a_plugin_whose_config_cannot_be_read_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: type[Any], says: str
) -> None:
    found = registry.find

    def find(group: registry.Group, name: str) -> registry.Plugin:
        return replace(found("adapters", "web"), config_type=kind) if name == "parrot" else found(group, name)

    monkeypatch.setattr(registry, "find", find)
    with pytest.raises(ConfigError, match=says):
        from_table({"adapters": {"parrot": {}}})


def test_a_secret_is_shown_nowhere_but_where_it_is_revealed(read: Callable[[str], Config], parrot: None) -> None:
    config = read('[adapters.parrot]\ntoken = "env:PARROT_TOKEN"')
    options = config.adapters[1].options
    assert options.token.reveal() == os.environ["PARROT_TOKEN"] == CANARY
    shown = [repr(config), str(config), json.dumps(as_table(config)), repr(asdict(options)), f"{options.token}"]
    assert not [text for text in shown if CANARY in text]
    assert as_table(config)["adapters"][1]["options"]["token"] == "env:PARROT_TOKEN"


@pytest.mark.parametrize("write", [json.dumps, orjson.dumps, pickle.dumps], ids=["json", "orjson", "pickle"])
def test_no_serialiser_takes_a_secret(write: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        write(Secret("NAME", CANARY))
    with pytest.raises(TypeError):
        write({"token": copy.deepcopy(Secret("NAME", CANARY))})


def test_the_reference_documents_every_key_of_every_table() -> None:
    keys = {key.name: key for key in reference()}
    assert all(key.says and key.type and key.default for key in keys.values())
    assert (keys["server.port"].type, keys["server.port"].default) == ("integer", "8787")
    assert keys["server.tls_cert"].default == "unset"
    assert keys["server.allowed_hosts"].type == "list of strings"
    assert keys["logs.level"].type == 'one of "debug", "info", "warning", "error"'
    assert keys["adapters.NAME.access.channels.ID.mention"].default == "true"
    shown = as_table(Config())
    for section in ("server", "agent", "sessions", "media", "logs"):
        assert {f"{section}.{name}" for name in shown[section] if name not in ("options", "places")} <= set(keys)


@pytest.mark.parametrize("place", ["", "telegram:", "a:b:c:d:e"])
def test_a_place_that_is_none_is_refused_with_the_ways_to_write_one(place: str) -> None:
    with pytest.raises(ConfigError, match="names no place; write"):
        from_table({"agent": {"places": {place: {}}}})


def test_an_agent_of_a_place_is_checked_like_any_other_and_has_no_places_of_its_own() -> None:
    with pytest.raises(ConfigError, match=r'agent\.places\."web"\.nmae is not a key belino knows; did you mean name'):
        from_table({"agent": {"places": {"web": {"nmae": "Ada"}}}})
    with pytest.raises(ConfigError, match="with the keys of"):
        from_table({"agent": {"places": {"web": {"places": {}}}}})


def test_the_time_zone_is_one_of_the_iana_database() -> None:
    assert from_table({"context": {"timezone": "Europe/Berlin"}}).context.timezone == "Europe/Berlin"
    with pytest.raises(ConfigError, match="there is no time zone 'Berlin'"):
        from_table({"context": {"timezone": "Berlin"}})


def test_the_copy_that_worked_last_is_the_file_byte_for_byte_and_for_its_owner_only(
    home: Home, read: Callable[[str], Config], monkeypatch: pytest.MonkeyPatch, parrot: None
) -> None:
    monkeypatch.setenv("PARROT", CANARY)
    text = '# mine\n[adapters.parrot]\ntoken = "env:PARROT"\n'
    read(text)
    keep_good(home)
    good = home.path / "last-good.toml"
    assert good.read_text() == text and good.stat().st_mode & 0o777 == 0o600
    (home.path / "belino.toml").write_text("[server]\nport = ")
    with pytest.raises(ConfigError):
        load(home)
    kept = load_good(home)
    assert kept is not None and ("parrot", "default") in {(each.platform, each.account) for each in kept.adapters}


def test_there_is_no_good_copy_without_a_file_nor_one_that_no_longer_works(
    home: Home, read: Callable[[str], Config], monkeypatch: pytest.MonkeyPatch, parrot: None
) -> None:
    keep_good(home)
    assert load_good(home) is None
    monkeypatch.setenv("PARROT", CANARY)
    read('[adapters.parrot]\ntoken = "env:PARROT"\n')
    keep_good(home)
    monkeypatch.delenv("PARROT")
    assert load_good(home) is None


def test_the_copy_has_the_format_of_its_file_and_an_older_one_in_the_other_format_goes(home: Home) -> None:
    (home.path / "belino.toml").write_text("retention_days = 1\n")
    keep_good(home)
    (home.path / "belino.toml").unlink()
    (home.path / "belino.json").write_text('{"retention_days": 2}')
    keep_good(home)
    assert [path.name for path in home.path.glob("last-good.*")] == ["last-good.json"]
    kept = load_good(home)
    assert kept is not None and kept.retention_days == 2

"""`belino setup telegram` against a server that keeps Telegram's rules."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing.telegram import TOKEN, TelegramServer
from cli.shell import Belino, Done, on_a_terminal, read

pytestmark = pytest.mark.slow

CTRL_D = "\x04"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


async def setup(belino: Belino, server: TelegramServer, *more: str, token: str = TOKEN) -> Done:
    given = ("setup", "telegram", "--token-env", "BOT_TOKEN", "--set", f"api_url={server.url}", *more)
    return await asyncio.to_thread(belino, *given, BOT_TOKEN=token)


async def test_a_good_token_is_checked_live_and_its_name_written_down(
    belino: Belino, home: Path, telegram: TelegramServer
) -> None:
    answer = read(await setup(belino, telegram, "--json"))
    assert answer["ok"] and answer["table"] == "adapters.telegram" and not answer["restart"]
    assert telegram.calls["getMe"] == 1
    assert any("privacy mode" in finding["says"] for finding in answer["findings"])
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'token = "env:BOT_TOKEN"' in text and TOKEN not in text


async def test_a_bad_token_changes_nothing_and_is_told(belino: Belino, home: Path, telegram: TelegramServer) -> None:
    done = await setup(belino, telegram, "--yes", token="4242:wrong")
    assert done.returncode == 1
    assert "Nothing was changed." in done.stdout and "4242:wrong" not in done.stdout + done.stderr
    assert not (home / "belino.toml").exists()


async def test_a_webhook_that_is_still_set_is_a_warning(belino: Belino, telegram: TelegramServer) -> None:
    import aiohttp

    hook = {"url": "https://example.com/hook"}
    async with aiohttp.ClientSession() as http, http.post(f"{telegram.url}/bot{TOKEN}/setWebhook", json=hook) as done:
        assert done.status == 200
    answer = read(await setup(belino, telegram, "--json"))
    assert any("webhook is still set" in finding["says"] and not finding["ok"] for finding in answer["findings"])
    assert telegram.updates.webhook.url == hook["url"]
    taken = read(await setup(belino, telegram, "--json", "--take-over"))
    assert all(finding["ok"] for finding in taken["findings"]) and telegram.updates.webhook.url == ""


async def test_who_sets_up_a_bot_with_a_webhook_is_asked_before_it_is_removed(
    home: Path, telegram: TelegramServer
) -> None:
    for typed, left in (("", True), ("yes", False)):
        telegram.updates.webhook.url = "http://127.0.0.1:9/hook"
        shown = await asyncio.to_thread(
            on_a_terminal,
            *("setup", "telegram", "--token-env", "BOT_TOKEN", "--set", f"api_url={telegram.url}"),
            home=home,
            typed={"The program there gets none.": typed},
            BOT_TOKEN=TOKEN,
        )
        assert shown.returncode == 0 and "a webhook at 127.0.0.1" in shown.stdout.replace("\r\n", " ")
        assert bool(telegram.updates.webhook.url) is left


async def test_what_was_in_the_file_stays(belino: Belino, home: Path, telegram: TelegramServer) -> None:
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text('# mine\n[logs]\nlevel = "debug" # loud\n', encoding="utf-8")
    read(await setup(belino, telegram, "--json"))
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert text.startswith('# mine\n[logs]\nlevel = "debug" # loud\n')


async def test_without_a_terminal_a_missing_secret_is_told(belino: Belino, home: Path) -> None:
    done = await asyncio.to_thread(belino, "setup", "telegram")
    assert done.returncode == 78 and "--token-env" in done.stderr
    assert not (home / "belino.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("setup", "web"), "web needs no setup"),
        (("setup", "pigeon"), "there is no adapter named 'pigeon'"),
        (("setup", "telegram", "--set", "colour=red"), "telegram has no key 'colour'"),
        (("setup", "telegram", "--set", "token=12:abc", "--no-check"), 'token must be written "env:NAME"'),
    ],
)
def test_what_cannot_be_set_up_is_told_in_a_sentence(belino: Belino, arguments: tuple[str, ...], told: str) -> None:
    done = belino(*arguments)
    assert done.returncode == 78 and told in done.stderr


async def typed_in(home: Path, telegram: TelegramServer, token: str) -> str:
    """What a terminal shows while somebody types a token."""
    command = ("setup", "telegram", "--set", f"api_url={telegram.url}")
    done = await asyncio.to_thread(on_a_terminal, *command, home=home, typed={"API Token.) ": token})
    return done.stdout


async def test_a_token_typed_at_a_terminal_is_not_shown_and_lies_in_a_file_of_its_own(
    home: Path, telegram: TelegramServer
) -> None:
    shown = await typed_in(home, telegram, TOKEN)
    assert "Which token did @BotFather give you?" in shown and TOKEN not in shown
    assert "belino pair CODE" in shown
    secret = home / "secrets" / "telegram.token"
    assert secret.read_text(encoding="utf-8").strip() == TOKEN and stat.S_IMODE(secret.stat().st_mode) == 0o600
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'token = "file:telegram.token"' in text and TOKEN not in text


def test_help_names_what_can_be_set_up(belino: Belino) -> None:
    told = " ".join(belino("setup", "--help").stdout.split())
    platforms = "discord, line, signal, slack, telegram, whatsapp"
    assert f"what to connect: {platforms}, or an installed one; or agent: who answers" in told


@pytest.mark.parametrize(
    ("what", "question"), [("telegram", "API Token.) "), ("agent", "Which kind of agent shall answer?")]
)
def test_who_ends_the_questions_with_ctrl_d_changes_nothing(home: Path, what: str, question: str) -> None:
    done = on_a_terminal("setup", what, home=home, typed={question: CTRL_D})
    assert done.returncode == 1
    assert done.stdout.endswith("belino: no answer came; nothing was changed\r\n")
    assert not (home / "belino.toml").exists()


async def test_a_bad_token_typed_over_a_good_one_leaves_the_good_one(home: Path, telegram: TelegramServer) -> None:
    for typed in (TOKEN, "4242:wrong"):
        shown = await typed_in(home, telegram, typed)
    assert "Nothing was changed." in shown
    assert (home / "secrets" / "telegram.token").read_text(encoding="utf-8").strip() == TOKEN

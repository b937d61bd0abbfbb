"""`belino setup whatsapp` and `belino doctor` against a server that keeps WhatsApp's rules."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing import GatewayProcess, WhatsAppServer
from cli.shell import Belino, Done, findings_of, on_a_terminal, read

pytestmark = pytest.mark.slow
NAMES = {"token": "TOKEN", "app_secret": "APP", "verify_token": "VERIFY"}


@pytest.fixture
async def whatsapp() -> AsyncIterator[WhatsAppServer]:
    async with WhatsAppServer() as server:
        yield server


def environment(server: WhatsAppServer) -> dict[str, str]:
    return {"TOKEN": server.token, "APP": server.app_secret, "VERIFY": server.verify_token}


async def setup(belino: Belino, server: WhatsAppServer, *more: str, **secrets: str) -> Done:
    given = [word for key, name in NAMES.items() for word in ("--token-env", f"{key}={name}")]
    given += [word for key, value in server.settings.items() for word in ("--set", f"{key}={value}")]
    return await asyncio.to_thread(belino, "setup", "whatsapp", *given, *more, **environment(server) | secrets)


async def test_good_credentials_are_checked_live_and_their_names_written_down(
    belino: Belino, home: Path, whatsapp: WhatsAppServer
) -> None:
    answer = read(await setup(belino, whatsapp, "--json"))
    assert answer["ok"] and answer["findings"][0]["ok"]
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'token = "env:TOKEN"' in text and f'phone_number_id = "{whatsapp.number_id}"' in text
    assert whatsapp.token not in text and not whatsapp.sent


async def test_a_bad_token_changes_nothing_and_is_told(belino: Belino, home: Path, whatsapp: WhatsAppServer) -> None:
    done = await setup(belino, whatsapp, "--yes", TOKEN="EAAwrong0000000")
    assert done.returncode == 1
    assert "Nothing was changed." in done.stdout
    assert "EAAwrong0000000" not in done.stdout + done.stderr
    assert not (home / "belino.toml").exists()


async def test_the_doctor_names_a_missing_webhook_with_its_cure(
    belino: Belino, home: Path, whatsapp: WhatsAppServer
) -> None:
    read(await setup(belino, whatsapp, "--json"))
    done = await asyncio.to_thread(belino, "doctor", "--json", **environment(whatsapp))
    found = findings_of(done)["whatsapp:default webhook"]
    assert not found["ok"] and "public_url" in found["cure"]


async def test_the_doctor_sends_media_and_reads_it_back(belino: Belino, home: Path, whatsapp: WhatsAppServer) -> None:
    read(await setup(belino, whatsapp, "--json"))
    ada = whatsapp.user("Ada")
    whatsapp.say(ada, ada, "hello")

    def live() -> Done:
        with GatewayProcess(home, environment=environment(whatsapp)):
            return belino("doctor", "--json", "--live", "whatsapp:default", "--to", f"whatsapp:default:{ada['id']}")

    findings = findings_of(await asyncio.to_thread(live))
    kinds = ("picture", "voice note", "document", "album")
    assert all(findings[f"whatsapp:default {kind}"]["ok"] for kind in kinds), findings
    assert [sent["type"] for sent in whatsapp.sent] == ["image", "audio", "document", "image", "image"]


async def test_who_is_asked_is_told_where_each_answer_stands_and_types_the_secrets_unseen(
    home: Path, whatsapp: WhatsAppServer
) -> None:
    typed = {
        "it is not the phone number) ": whatsapp.number_id,
        "access token does the system user have? ": whatsapp.token,
        "App Secret does the app have? ": whatsapp.app_secret,
        "(any long word that you choose) ": whatsapp.verify_token,
    }
    urls = [word for key in ("api_url", "files_url") for word in ("--set", f"{key}={whatsapp.settings[key]}")]
    done = await asyncio.to_thread(on_a_terminal, "setup", "whatsapp", *urls, home=home, typed=typed)
    shown = done.stdout
    assert "System users" in shown and "/hooks/whatsapp/default" in shown
    assert whatsapp.token not in shown and whatsapp.app_secret not in shown
    for key in NAMES:
        assert (home / "secrets" / f"whatsapp.{key}").exists()

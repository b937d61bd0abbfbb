"""Reading on the command line: what was read, local files, and the setup of a provider."""

from pathlib import Path

import pytest

from belino.testing import GatewayProcess, make_png, make_wav
from cli.shell import Belino, findings_of, on_a_terminal, read
from faults.looking import history, until_idle
from journeys.scribe import MAIN, SAID, Scribe, configure, send_voice
from readers.made import SCANNED, line, make_pdf

pytestmark = pytest.mark.slow


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    scribe = Scribe(tmp_path)
    scribe.says("transcribe", SAID, (0.0, "we meet again."), (1.0, "on Thursday at ten"))
    scribe.says("describe", "a blue rectangle")
    scribe.says("read_text", "TOTAL 12.40")
    return scribe


def test_the_command_line_lists_what_was_read_and_what_it_cost(scribe: Scribe, belino: Belino, home: Path) -> None:
    configure(home, "audio")
    with GatewayProcess(home, environment=scribe.environment) as gateway:
        send_voice(gateway)
        until_idle(gateway)
        ref = history(gateway, MAIN)[0]["media"][0]["ref"]
        while_running = read(belino("readings", "ls", "--json"))
        shown = read(belino("readings", "show", ref, "--json"))
        gateway.stop()
    assert [attempt["ref"] for attempt in while_running["attempts"]] == [ref]
    assert while_running["sums"]["sent_to"] == [] and shown["readings"][0]["text"] == SAID
    assert read(belino("readings", "ls", "--json")) == while_running
    assert read(belino("readings", "show", ref, "--json"))["readings"] == shown["readings"]
    words = belino("readings", "show", ref).stdout
    assert SAID in words and "scribe quill" in words
    assert belino("readings", "show", "web_000000000000").returncode == 1


def test_a_local_file_is_transcribed_without_a_gateway_and_nothing_is_kept(
    scribe: Scribe, belino: Belino, home: Path, tmp_path: Path
) -> None:
    configure(home, "audio", "image", "document")
    file = tmp_path / "note.wav"
    file.write_bytes(make_wav(3.0))
    told = read(belino("media", "transcribe", str(file), "--json", **scribe.environment))
    assert (told["text"], told["provider"], told["usd"]) == (SAID, "scribe", 0)
    assert [segment["start"] for segment in told["segments"]] == [0.0, 1.0]
    words = belino("media", "transcribe", str(file), **scribe.environment)
    assert words.stdout.split("\n")[:2] == ["   0:00  we meet again.", "   0:01  on Thursday at ten"]
    assert not (home / "belino.db").exists()


def test_a_local_picture_is_described_and_its_text_is_read(
    scribe: Scribe, belino: Belino, home: Path, tmp_path: Path
) -> None:
    configure(home, "audio", "image", "document")
    file = tmp_path / "receipt.png"
    file.write_bytes(make_png(64, 48))
    assert belino("media", "describe", str(file), **scribe.environment).stdout == "a blue rectangle\n"
    assert belino("media", "text", str(file), **scribe.environment).stdout == "TOTAL 12.40\n"
    priced = read(belino("media", "price", str(file), "--json", **scribe.environment))["price"]
    assert priced["description"]["usd"] == 0 and {"image", "text", "file"} <= priced.keys()


def test_each_page_of_a_local_document_is_read_by_the_method_that_fits_it_at_the_price_told_before(
    scribe: Scribe, belino: Belino, home: Path, tmp_path: Path
) -> None:
    configure(home, "document")
    file = tmp_path / "mixed.pdf"
    file.write_bytes(make_pdf(line("The first page has text of its own."), SCANNED + line("2"), SCANNED))
    priced = read(belino("media", "price", str(file), "--json", **scribe.environment))["price"]
    assert priced["text"]["tokens"] > 1_400, "two pages are to be recognised"
    done = belino("media", "text", str(file), **scribe.environment)
    assert done.stdout.split("\n")[:6] == [
        "--- page 1 ---", "The first page has text of its own.",
        "--- page 2, recognised by scribe ---", "TOTAL 12.40",
        "--- page 3, recognised by scribe ---", "TOTAL 12.40",
    ]  # fmt: skip
    assert scribe.calls() == ["read_text"] * 2
    told = read(belino("media", "text", str(file), "--pages", "3", "--json", **scribe.environment))
    assert told["pages"] == [{"page": 3, "read_by": "scribe"}]
    assert scribe.calls() == ["read_text"] * 3


def test_what_nobody_can_read_says_so(belino: Belino, home: Path, tmp_path: Path) -> None:
    configure(home)
    file = tmp_path / "note.wav"
    file.write_bytes(make_wav(3.0))
    done = belino("media", "transcribe", str(file))
    assert done.returncode == 1 and done.stderr.startswith("belino: ") and done.stderr.count("\n") == 1


def test_setup_tries_a_provider_on_our_own_sample_and_stores_its_entry(
    scribe: Scribe, belino: Belino, home: Path
) -> None:
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text('# mine\n[logs]\nlevel = "debug"\n', encoding="utf-8")
    told = read(belino("setup", "reading", "--kind", "audio", "--provider", "scribe", "--json", **scribe.environment))
    assert told["ok"] and told["table"] == "tools.media.audio.models" and scribe.calls() == ["transcribe"]
    assert f"heard “{SAID}”" in told["findings"][0]["says"]
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert text.startswith("# mine\n") and '[[tools.media.audio.models]]\nprovider = "scribe"\n' in text


def test_setup_asks_on_a_terminal(scribe: Scribe, home: Path) -> None:
    typed = {"Which media": "image", "Which provider": "scribe"}
    shown = on_a_terminal("setup", "reading", home=home, typed=typed, **scribe.environment)
    assert shown.returncode == 0 and "Added [[tools.media.image.models]]" in shown.stdout


def test_setup_of_a_local_provider_offers_to_read_ahead(home: Path, belino: Belino) -> None:
    typed = {"Which media": "audio", "Which provider": "local_whisper", "Read media between turns": "local"}
    shown = on_a_terminal("setup", "reading", "--no-check", home=home, typed=typed)
    assert shown.returncode == 0 and "tools.media.read_ahead is local." in shown.stdout
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert '[tools.media]\nread_ahead = "local"\n' in text and 'provider = "local_whisper"' in text
    given = ("setup", "reading", "--kind", "document", "--provider", "local_tesseract", "--yes", "--no-check")
    assert belino(*given, "--read-ahead", "off").returncode == 0
    assert 'read_ahead = "off"' in (home / "belino.toml").read_text(encoding="utf-8")
    wrong = belino(*given, "--read-ahead", "all")
    assert wrong.returncode == 78 and "--read-ahead must be one of off, local, not 'all'" in wrong.stderr
    assert belino(*given).returncode == 0


def test_a_provider_that_fails_its_trial_changes_nothing(scribe: Scribe, belino: Belino, home: Path) -> None:
    (scribe.folder / "transcribe.json").unlink()
    done = belino("setup", "reading", "--kind", "audio", "--provider", "scribe", **scribe.environment)
    assert done.returncode == 1 and "Nothing was changed." in done.stdout and "no ink" in done.stdout
    assert not (home / "belino.toml").exists()


def test_the_doctor_tries_every_entry(scribe: Scribe, belino: Belino, home: Path) -> None:
    configure(home, "audio", "image")
    found = findings_of(belino("doctor", "--json", **scribe.environment))
    tried = [finding for name, finding in found.items() if "scribe" in name]
    assert tried and all(finding["ok"] for finding in tried) and set(scribe.calls()) >= {"transcribe"}

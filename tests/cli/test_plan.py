"""`belino media plan`: how files of this machine would be sent, without a gateway or a state folder of any kind."""

from pathlib import Path

import pytest
from PIL import Image

from belino.testing.files import make_pdf
from cli.shell import Belino, read

pytestmark = pytest.mark.slow


def test_files_are_told_in_the_form_they_would_leave_in_and_why(belino: Belino, tmp_path: Path) -> None:
    picture, moving, report = tmp_path / "scan.tiff", tmp_path / "a.gif", tmp_path / "report.pdf"
    Image.new("RGB", (300, 200), "teal").save(picture)
    Image.new("RGB", (8, 8)).save(moving, save_all=True, append_images=[Image.new("RGB", (8, 8), "red")])
    report.write_bytes(make_pdf())
    names = [str(picture), str(moving), str(report)]
    answer = read(belino("media", "plan", *names, "--platform", "telegram", "--caption", "*look*", "--json"))
    assert [(file["goes_as"], file["name"]) for file in answer["files"]] == [
        ("photo", "scan.png"),
        ("animation", "a.gif"),
        ("document", "report.pdf"),
    ]
    assert answer["files"][0]["reason"].startswith("image/tiff is not taken as a photo here, so it was made image/")
    assert [file["reason"] for file in answer["files"][1:]] == ["", ""]
    assert [parcel["files"][0]["caption"] for parcel in answer["parcels"]] == ["<i>look</i>"] * 3


def test_a_wish_that_cannot_be_granted_is_told_in_the_table(belino: Belino, tmp_path: Path) -> None:
    report = tmp_path / "report.pdf"
    report.write_bytes(make_pdf())
    done = belino("media", "plan", str(report), "--platform", "web", "--as", "photo")
    assert done.returncode == 0, done.stderr
    assert "application/pdf is not a photo" in done.stdout
    assert "1. files: report.pdf" in done.stdout


def test_an_empty_file_is_not_sent_and_what_would_be_said_of_it_is_shown(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    done = belino("media", "plan", str(tmp_path / "a.txt"), "--platform", "telegram")
    assert "not sent" in done.stdout
    assert "1. text: a.txt was not sent: it is empty." in done.stdout


@pytest.mark.parametrize(
    ("file", "platform", "words"),
    [("gone.png", "telegram", "is not a file"), ("here.txt", "pigeon", "no adapter named 'pigeon'")],
    ids=["file", "platform"],
)
def test_what_is_not_there_is_named(belino: Belino, tmp_path: Path, file: str, platform: str, words: str) -> None:
    (tmp_path / "here.txt").write_text("x")
    done = belino("media", "plan", str(tmp_path / file), "--platform", platform)
    assert done.returncode != 0
    assert words in done.stderr


def test_the_plan_follows_the_configuration_of_this_installation(belino: Belino, home: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(12 << 20))
    home.mkdir(exist_ok=True)
    settings = home / "belino.toml"
    planned = ("media", "plan", str(noise), "--platform")
    assert "at most 10.0MB are taken" in read(belino(*planned, "discord", "--json"))["files"][0]["reason"]
    account = 'token = "env:PLAN_TOKEN"\nupload_mb = 50\n'
    settings.write_text(f"[adapters.discord.accounts.large]\n{account}")
    token = {"PLAN_TOKEN": "a.b.c"}
    for platform in ("discord", "discord:large"):
        assert read(belino(*planned, platform, "--json", **token))["files"][0]["goes_as"] == "document"
    settings.write_text(f"[media]\nmax_bytes = 1000000\n[adapters.discord.accounts.large]\n{account}")
    (refused,) = read(belino(*planned, "discord", "--json", **token))["files"]
    assert (refused["goes_as"], "media.max_bytes" in refused["reason"]) == (None, True)


def test_a_plan_without_the_tokens_of_the_configuration_says_that_it_assumes_the_defaults(
    belino: Belino, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("x")
    home.mkdir(exist_ok=True)
    (home / "belino.toml").write_text('[adapters.discord]\ntoken = "env:PLAN_TOKEN"\n')
    done = belino("media", "plan", str(tmp_path / "a.txt"), "--platform", "discord")
    assert done.returncode == 0 and "PLAN_TOKEN" in done.stderr and "defaults" in done.stderr
    done = belino("media", "plan", str(tmp_path / "a.txt"), "--platform", "discord:other", PLAN_TOKEN="a.b.c")
    assert done.returncode != 0 and "no account 'other'" in done.stderr


def test_a_plan_for_a_platform_that_fetches_files_says_that_the_public_address_is_missing(
    belino: Belino, home: Path, tmp_path: Path
) -> None:
    report, secrets = tmp_path / "report.pdf", {"TOKEN": "a-token", "SECRET": "a-secret"}
    report.write_bytes(make_pdf())
    plan = ("media", "plan", str(report), "--platform", "line", "--json")
    assert read(belino(*plan))["files"][0]["goes_as"] == "document"
    table = '[adapters.line]\nchannel_access_token = "env:TOKEN"\nchannel_secret = "env:SECRET"\n'
    (home / "belino.toml").write_text(table, encoding="utf-8")
    (refused,) = read(belino(*plan, **secrets))["files"]
    assert "server.public_url" in refused["reason"]
    (home / "belino.toml").write_text(f'{table}[server]\npublic_url = "https://bot.example"\n', encoding="utf-8")
    assert read(belino(*plan, **secrets))["files"][0]["goes_as"] == "document"

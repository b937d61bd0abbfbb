"""`belino media sniff|fit` on files of this machine, without a gateway or a state folder of any kind."""

import os
import stat
from pathlib import Path

import pytest
from PIL import Image

from belino.cli.files import Target
from belino.domain.errors import BelinoError
from belino.media.image.header import image_size
from belino.testing.files import make_pdf, make_png
from cli.shell import Belino, read

pytestmark = pytest.mark.slow


def test_a_name_that_commands_terminals_is_told_without_its_commands(belino: Belino, tmp_path: Path) -> None:
    done = belino("media", "sniff", str(tmp_path / "a\x1b[31m\nb"))
    assert (done.returncode, done.stderr) == (1, f"belino: {tmp_path}/a�[31m b is not a file\n")


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """Lying on its side, as a phone held upright writes it."""
    file = tmp_path / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.effect_noise((900, 600), 90).convert("RGB").save(file, quality=95, exif=exif)
    return file


def test_files_are_told_by_their_bytes_and_lies_are_named(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png(8, 8))
    (tmp_path / "b.png").write_bytes(make_pdf())
    first, second = read(belino("media", "sniff", str(tmp_path / "a.png"), str(tmp_path / "b.png"), "--json"))["files"]
    assert (first["mime"], first["group"], first["exact"], first["lies"]) == ("image/png", "image", True, "")
    assert (second["mime"], second["lies"]) == ("application/pdf", "named .png, is application/pdf")
    assert "named .png, is application/pdf" in belino("media", "sniff", str(tmp_path / "b.png")).stdout


def test_a_name_that_is_no_file_hides_none_of_the_others(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png(8, 8))
    done = belino("media", "sniff", str(tmp_path / "gone"), str(tmp_path / "a.png"), str(tmp_path))
    assert "image/png" in done.stdout
    assert (done.returncode, done.stderr) == (
        1, f"belino: {tmp_path}/gone is not a file; {tmp_path} is not a file\n"
    )  # fmt: skip


def test_a_picture_is_made_to_fit_upright_in_the_form_its_name_asks_for(
    belino: Belino, photo: Path, tmp_path: Path
) -> None:
    for suffix, mime in (("jpg", "image/jpeg"), ("webp", "image/webp")):
        out = tmp_path / f"out.{suffix}"
        answer = read(
            belino("media", "fit", str(photo), "--max-bytes", "50000", "--max-side", "300", "-o", str(out), "--json")
        )
        held = out.read_bytes()
        assert image_size(held) == (mime, answer["width"], answer["height"])
        assert len(held) == answer["bytes"] <= 50_000 and b"Exif" not in held
        assert answer["width"] < answer["height"] <= 300
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.jpg", "out.webp", "photo.jpg"]


def test_a_picture_that_breaks_off_is_fitted_with_a_note(belino: Belino, photo: Path, tmp_path: Path) -> None:
    whole = photo.read_bytes()
    photo.write_bytes(whole[: len(whole) * 3 // 4])
    done = belino("media", "fit", str(photo), "--max-bytes", "50000", "-o", str(tmp_path / "out.jpg"))
    assert done.returncode == 0
    assert "(note: It is damaged: you see it as far as it can be decoded.)" in done.stdout


@pytest.mark.parametrize(
    ("content", "arguments", "told"),
    [
        (make_pdf(), ("--max-bytes", "9000"), "is application/pdf, not a picture that belino can fit"),
        (make_png(9, 9)[:40], ("--max-bytes", "9000"), ""),
        (None, ("--max-bytes", "9000"), "is not a file"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_leaves_nothing(
    belino: Belino, tmp_path: Path, content: bytes | None, arguments: tuple[str, ...], told: str
) -> None:
    if content is not None:
        (tmp_path / "in").write_bytes(content)
    done = belino("media", "fit", str(tmp_path / "in"), *arguments, "-o", str(tmp_path / "out"))
    assert done.returncode == 1 and told in done.stderr and done.stderr.startswith("belino: ")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["in"] * (content is not None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*, prefix: str, dir: Path) -> tuple[int, str]:  # noqa: A002
        return os.open("/dev/full", os.O_WRONLY), str(dir / f"{prefix}x")

    monkeypatch.setattr("belino.cli.files.tempfile.mkstemp", full)
    media = {"file_name": "a.bin", "mime": "", "kind": "document"}
    told = pytest.raises(BelinoError, match=r"a\.bin cannot be written: No space left on device")
    with told, Target(tmp_path / "a.bin", media) as target:
        target.write(bytes(1 << 20))
    assert list(tmp_path.iterdir()) == []

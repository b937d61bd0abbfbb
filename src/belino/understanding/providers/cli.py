"""Commands (CLI): any program that reads a sound or a picture from a file and writes text."""

import asyncio
import hashlib
import os
import re
import shutil
import stat
import struct
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from belino.aio.deadline import deadline
from belino.aio.program import Program
from belino.domain.errors import ConfigError, ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, ReadSegment, Skill
from belino.domain.units import format_size
from belino.net.model_text import finished, frame_label, joined_text

OUTPUT_BYTES = 5 * 1024 * 1024
PASSED_ON = ("PATH", "LANG")

PLACEHOLDERS = ("AttachmentPath", "OutputDir", "Prompt", "Language", "MaxChars")
_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
# How whisper.cpp prints a segment.
_SEGMENT = re.compile(r"\[(\d+):(\d\d):(\d\d[.,]\d{3}) --> (\d+):(\d\d):(\d\d[.,]\d{3})\]\s*(.*)")
_PPM = re.compile(rb"P6\s+(\d{1,6})\s+(\d{1,6})\s+255\s")
_PPM_HEAD = 64
# A link or a pipe in the output folder is not followed or waited for.
_ONLY_A_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a command."""

    command: str = field(metadata={"says": "The program: a name on PATH, or an absolute path. No shell is involved."})
    args: tuple[str, ...] = field(
        default=("{{AttachmentPath}}",),
        metadata={
            "says": "Its arguments; `{{AttachmentPath}}`, `{{OutputDir}}`, `{{Prompt}}`, `{{Language}}` and "
            "`{{MaxChars}}` are replaced."
        },
    )
    model: str | None = field(
        default=None, metadata={"says": "A name under which its readings are stored; by default the command's own."}
    )

    def __post_init__(self) -> None:
        if not self.command or "{{" in self.command or "\0" in self.command:
            raise ConfigError("command must be a program; placeholders such as {{Prompt}} are for `args` only")
        if "/" in self.command and not Path(self.command).is_absolute():
            raise ConfigError("command must be a name on PATH or an absolute path")
        unknown = [name for arg in self.args for name in _PLACEHOLDER.findall(arg) if name not in PLACEHOLDERS]
        if unknown:
            known = ", ".join(f"{{{{{name}}}}}" for name in PLACEHOLDERS)
            raise ConfigError(f"args contains {{{{{unknown[0]}}}}}; known placeholders: {known}")


class Provider:
    """Runs the command once for each file, in a folder of its own that is removed afterwards.

    A sound is a WAV file (16 kHz, mono, 16 bits) and a picture is a PNG file: every program for them opens these.
    """

    skills = frozenset({Skill.TRANSCRIBE, Skill.DESCRIBE, Skill.READ_TEXT})
    local = True
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context

    def model(self, skill: Skill) -> str:
        if self._config.model is not None:
            return self._config.model
        # Other arguments may mean another model: their readings are not mixed up.
        words = "\0".join([self._config.command, *self._config.args])
        return f"{self._name}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"

    @property
    def _name(self) -> str:
        return Path(self._config.command).name

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        try:
            async with deadline(self._context.clock, options.timeout):
                outputs = [await self._read_one(file, options) for file in material]
        except TimeoutError:
            raise ProviderError(
                f"{self._name} did not finish within {options.timeout:g} seconds and was killed; set `timeout_seconds`"
            ) from None
        segments = tuple(_segments(outputs[0])) if skill is Skill.TRANSCRIBE and len(outputs) == 1 else ()
        said = zip(map(frame_label, material), outputs, strict=True)
        text = joined_text(segments) or "\n".join(f"{label}: {text}" if label else text for label, text in said)
        read = Read(text=text, model=self.model(skill), segments=segments)
        return finished(read, options, seconds=material[0].seconds if len(material) == 1 else None)

    async def _read_one(self, file: Material, options: ReadingOptions) -> str:
        async with self._folder() as folder:
            output = folder / "output"
            output.mkdir(mode=0o700)
            try:
                path = await asyncio.to_thread(_placed, file, folder)
            except OSError as error:
                raise ProviderError(f"{self._name} was not started: {type(error).__name__} at its file") from None
            arguments = [*self._arguments(path, output, options)]
            environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            program = Program(
                words=(self._config.command, *arguments),
                folder=output,
                most_bytes=OUTPUT_BYTES,
                # What the program leaves in its temporary folder may be of the recording; it goes with ours.
                environment={**environment, "TMPDIR": str(folder)},
                tells_why=False,
            )
            printed = await program.run()
            written = await asyncio.to_thread(_text_file, output)
        if written is not None and len(written) > OUTPUT_BYTES:
            raise ProviderError(f"{self._name} writes more than {format_size(OUTPUT_BYTES)}")
        return (printed if written is None else written).decode("utf-8", "replace").strip()

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="cli-", dir=self._context.scratch))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _arguments(self, path: Path, output: Path, options: ReadingOptions) -> Iterator[str]:
        values = {
            "AttachmentPath": str(path),
            "OutputDir": str(output),
            "Prompt": options.prompt or "",
            "Language": options.language or "",
            "MaxChars": "" if options.max_chars is None else str(options.max_chars),
        }
        for template in self._config.args:
            argument = _PLACEHOLDER.sub(lambda found: values[found[1]], template)
            if "\0" in argument or (argument.startswith("-") and not template.startswith("-")):
                raise ProviderError(f"{self._name} was not started: a value would be read as one of its options")
            yield argument


def _text_file(folder: Path) -> bytes | None:
    """The first text file in the folder, at most one byte over the limit; None if there is none."""
    for path in sorted(folder.glob("*.txt")):
        with suppress(OSError), os.fdopen(os.open(path, _ONLY_A_FILE), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(OUTPUT_BYTES + 1)
    return None


def _segments(text: str) -> Iterator[ReadSegment]:
    """The segments of a text in which every line has its times."""
    found = [_SEGMENT.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    if not all(found):
        return
    for line in found:
        assert line is not None
        yield ReadSegment(
            text=line[7].strip(), start=_seconds(*line.group(1, 2, 3)), end=_seconds(*line.group(4, 5, 6))
        )


def _seconds(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def _placed(file: Material, folder: Path) -> Path:
    """A copy for the program, which may change it: another entry may read the same material next."""
    if file.mime == "image/x-portable-pixmap":
        path = folder / "attachment.png"
        with file.path.open("rb") as pixels, path.open("wb") as png:
            _write_png(pixels, png)
        return path
    ending = file.mime.rpartition("/")[2].removeprefix("x-")
    return Path(shutil.copyfile(file.path, folder / f"attachment.{ending}"))


def _write_png(pixels: BinaryIO, png: BinaryIO) -> None:
    """Write plain pixels as a PNG, row by row."""
    head = _PPM.match(pixels.read(_PPM_HEAD))
    if head is None:
        raise ProviderError("the picture was not decoded to plain pixels")
    width, height = int(head[1]), int(head[2])
    pixels.seek(head.end())
    png.write(_PNG + _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
    packer = zlib.compressobj(1)
    for _ in range(height):
        if packed := packer.compress(b"\0" + pixels.read(width * 3)):
            png.write(_png_chunk(b"IDAT", packed))
    png.write(_png_chunk(b"IDAT", packer.flush()) + _png_chunk(b"IEND", b""))


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

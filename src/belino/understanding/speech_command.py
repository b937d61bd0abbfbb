"""Speech command: a local program that speaks text, such as espeak-ng or piper."""

import asyncio
import os
import stat
from pathlib import Path

from belino.aio.program import Program
from belino.domain.errors import ProviderError
from belino.domain.units import format_size
from belino.understanding.speech import TEMPLATE, SpeechConfig

TEXT_PATH, OUTPUT_PATH = "TextPath", "OutputPath"


async def speak_by_command(config: SpeechConfig, text: str, scratch: Path, *, most_bytes: int) -> bytes:
    """The sound of a text; files for it are made in `scratch` and removed.

    The text is a file or the program's input, never an argument, so that it cannot be taken for an option.
    """
    assert config.command is not None
    given, made = (scratch / f"speech-{end}-{os.urandom(8).hex()}" for end in ("text", "sound"))
    wanted = {name for word in config.args for name in TEMPLATE.findall(word)}
    words = [_filled(word, config, given, made) for word in config.args]
    program = Program(words=(config.command, *words), folder=scratch, most_bytes=most_bytes)
    try:
        if TEXT_PATH in wanted:
            with os.fdopen(os.open(given, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode())
        output = await program.run(b"" if TEXT_PATH in wanted else f"{text}\n".encode())
        return await asyncio.to_thread(_read, made, program.name, most_bytes) if OUTPUT_PATH in wanted else output
    finally:
        for path in (given, made):
            path.unlink(missing_ok=True)


def _filled(word: str, config: SpeechConfig, given: Path, made: Path) -> str:
    values = {
        TEXT_PATH: str(given),
        OUTPUT_PATH: str(made),
        "Voice": config.voice or "",
        "Model": config.model or "",
        "Language": config.language or "",
    }
    return TEMPLATE.sub(lambda found: values[found[1]], word)


def _read(made: Path, name: str, most_bytes: int) -> bytes:
    """The file that a program wrote, if it is a plain one of a fitting size."""
    try:
        handle = os.open(made, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise ProviderError(f"{name} wrote no file to {{{{{OUTPUT_PATH}}}}}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            raise ProviderError(f"{name} wrote more than {format_size(most_bytes)} to {{{{{OUTPUT_PATH}}}}}")
        return file.read(most_bytes)

"""A provider of another package, found by its entry point: reads what it is told to, slowly if a test wants it."""

import base64
import json
import os
from pathlib import Path
from typing import Any

from belino.testing import GatewayProcess, make_wav

MAIN = "web:default:main"
SAID = "we meet again. on Thursday at ten"

_MODULE = '''
"""Reads every sound, picture and page as a test says."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

from belino.domain.errors import ProviderError
from belino.domain.reading import Read, ReadSegment, Skill

FOLDER = Path(os.environ["SCRIBE_FOLDER"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What every local provider has."""

    model: str | None = None


class Provider:
    """Answers with the file that is named after the skill."""

    skills = frozenset(Skill) - {Skill.DESCRIBE_VIDEO}
    local = True
    languages = None

    def __init__(self, config, context):
        self._config = config

    def model(self, skill):
        return self._config.model or "quill"

    async def read(self, skill, material, options):
        self._note("begun", skill, material)
        while (FOLDER / "hold").exists():
            await asyncio.sleep(0.01)
        answer = FOLDER / f"{skill}.json"
        if not answer.exists():
            raise ProviderError("the scribe has no ink")
        told = json.loads(answer.read_text())
        self._note("ended", skill, material)
        segments = tuple(ReadSegment(text=text, start=start, end=start + 2.0) for start, text in told["segments"])
        return Read(text=told["text"], model=self.model(skill), segments=segments, uncertain=told["uncertain"])

    def _note(self, file, skill, material):
        with (FOLDER / file).open("a") as log:
            log.write(json.dumps([skill, [each.mime for each in material]]) + "\\n")
'''


class Scribe:
    """The installed package, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "scribe"
        self.package = folder / "installed"
        about = self.package / "scribe-1.0.dist-info"
        about.mkdir(parents=True)
        self.folder.mkdir()
        (self.package / "scribe.py").write_text(_MODULE, encoding="utf-8")
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scribe\nVersion: 1.0\n", encoding="utf-8")
        (about / "entry_points.txt").write_text("[belino.providers]\nscribe = scribe\n", encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        paths = [str(self.package), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths), "SCRIBE_FOLDER": str(self.folder)}

    def says(self, skill: str, text: str, *segments: tuple[float, str], uncertain: bool = False) -> None:
        told = {"text": text, "segments": [list(each) for each in segments], "uncertain": uncertain}
        (self.folder / f"{skill}.json").write_text(json.dumps(told), encoding="utf-8")

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def go_on(self) -> None:
        (self.folder / "hold").unlink()

    def calls(self, which: str = "ended") -> list[str]:
        """The skills it was asked for."""
        file = self.folder / which
        return [json.loads(line)[0] for line in file.read_text().splitlines()] if file.exists() else []


def configure(home: Path, *kinds: str, more: str = "") -> None:
    """A configuration in which the scribe reads these kinds of media, and nothing else reads anything."""
    home.mkdir(mode=0o700, exist_ok=True)
    entries = "".join(f'[[tools.media.{kind}.models]]\nprovider = "scribe"\n' for kind in kinds)
    off = "".join(
        f"[tools.media.{kind}]\nenabled = false\n"
        for kind in ("image", "audio", "video", "document")
        if kind not in kinds
    )
    (home / "belino.toml").write_text(f"{more}\n{off}{entries}", encoding="utf-8")


def send(gateway: GatewayProcess, text: str, name: str, mime: str, data: bytes, *, key: str) -> dict[str, Any]:
    """Post a message with a file to the web chat."""
    attachment = {"mime_type": mime, "file_name": name, "content": base64.b64encode(data).decode()}
    body = {"conversation": MAIN, "message": text, "attachments": [attachment], "id": key}
    status, said = gateway.call("POST", "/api/messages", body)
    assert status == 200, said
    return dict(said)


def send_voice(gateway: GatewayProcess, text: str = "", *, key: str = "v1") -> dict[str, Any]:
    return send(gateway, text, "note.wav", "audio/wav", make_wav(3.0), key=key)

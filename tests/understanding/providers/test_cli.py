"""Commands: any program reads a recording or a picture from a file, within limits, and leaves nothing."""

import asyncio
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import ConfigError, ProviderError
from belino.domain.reading import Material, ReadingOptions, Skill
from belino.media.image.header import image_size
from belino.testing import FakeClock, FakeProviderContext, ProviderTrial, check_provider, make_wav
from belino.understanding.providers.cli import OUTPUT_BYTES, Config, Provider

WAV = make_wav(2.0)


class Programs:
    """Small programs, and providers that run them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()

    def program(self, script: str, name: str = "program") -> str:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def provider(self, script: str, *args: str, clock: Any = None, **settings: Any) -> Provider:
        config = Config(command=self.program(script), args=args or ("{{AttachmentPath}}",), **settings)
        return Provider(config, FakeProviderContext(scratch=self.scratch, clock=clock))

    @property
    def sound(self) -> Material:
        path = self.folder / "sound"
        path.write_bytes(WAV)
        return Material(path=path, mime="audio/wav", size=len(WAV), seconds=2.0)

    def picture(self, width: int = 3, height: int = 2, at: float | None = None) -> Material:
        path = self.folder / f"pixels-{width}"
        content = f"P6\n{width} {height}\n255\n".encode() + bytes(range(width * height * 3))
        path.write_bytes(content)
        return Material(path=path, mime="image/x-portable-pixmap", size=len(content), at=at)

    @property
    def left(self) -> list[str]:
        return [path.name for path in self.scratch.iterdir()]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def child_of(programs: Programs) -> AsyncIterator[Path]:
    """The file in which a program writes the process id of its child."""
    path = programs.folder / "child"
    yield path
    child = int(path.read_text())
    await until(lambda: not is_running(child))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_a_command_keeps_the_contract(programs: Programs) -> None:
    checked = await check_provider(
        ProviderTrial(
            make=lambda: programs.provider('test -s "$1" && echo hello from a program'),
            material={
                Skill.TRANSCRIBE: [programs.sound],
                Skill.DESCRIBE: [programs.picture()],
                Skill.READ_TEXT: [programs.picture()],
            },
            expects=dict.fromkeys(Skill, "hello from a program"),
            scratch=programs.scratch,
        )
    )
    assert len(checked) == 5


async def test_a_recording_is_a_wav_file_and_a_picture_is_a_png_file(programs: Programs) -> None:
    kept = programs.folder / "kept"
    provider = programs.provider(f'echo "$1"; cp "$1" {kept}')
    read = await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())
    assert read.text.endswith("/attachment.wav")
    assert kept.read_bytes() == WAV
    read = await provider.read(Skill.READ_TEXT, [programs.picture(3, 2)], ReadingOptions())
    assert read.text.endswith("/attachment.png")
    assert image_size(kept.read_bytes()) == ("image/png", 3, 2)
    from PIL import Image

    with Image.open(kept) as picture:
        assert picture.tobytes() == bytes(range(18))
    assert programs.left == []


async def test_placeholders_are_replaced_in_arguments_and_nothing_is_a_shell(programs: Programs) -> None:
    args = ("{{Prompt}}", "--lang={{Language}}", "{{MaxChars}}", "{{Language}}{{MaxChars}}", "$HOME;`id`", "plain")
    provider = programs.provider("printf '%s\\n' \"$@\"", *args)
    options = ReadingOptions(prompt="what's $(this)? {{Language}}", language="de", max_chars=700)
    read = await provider.read(Skill.DESCRIBE, [programs.picture()], options)
    expected = ["what's $(this)? {{Language}}", "--lang=de", "700", "de700", "$HOME;`id`", "plain"]
    assert read.text.splitlines() == expected


async def test_a_value_cannot_become_an_option(programs: Programs) -> None:
    provider = programs.provider("echo ran", "{{Prompt}}")
    with pytest.raises(ProviderError, match="read as one of its options"):
        await provider.read(Skill.DESCRIBE, [programs.picture()], ReadingOptions(prompt="--output=x"))


async def test_a_text_file_in_the_output_folder_is_preferred_over_what_is_printed(programs: Programs) -> None:
    provider = programs.provider(
        'echo progress; printf "the text" > "$2/out.txt"', "{{AttachmentPath}}", "{{OutputDir}}"
    )
    read = await provider.read(Skill.READ_TEXT, [programs.picture()], ReadingOptions())
    assert read.text == "the text"


async def test_a_link_in_the_output_folder_is_not_followed(programs: Programs) -> None:
    secret = programs.folder / "secret.txt"
    secret.write_text("do not read", encoding="utf-8")
    provider = programs.provider(f'ln -s {secret} "$1/a.txt"; mkfifo "$1/b.txt"; echo printed', "{{OutputDir}}")
    read = await provider.read(Skill.READ_TEXT, [programs.picture()], ReadingOptions())
    assert read.text == "printed"


async def test_the_environment_has_no_secret_and_no_home(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("LANG", "C.UTF-8")
    provider = programs.provider("env | cut -d= -f1 | sort; pwd")
    read = await provider.read(Skill.DESCRIBE, [programs.picture()], ReadingOptions())
    *names, folder = read.text.splitlines()
    assert set(names) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"LANG", "PATH", "TMPDIR"}
    assert folder.startswith(str(programs.scratch))


async def test_a_program_that_prints_without_end_is_killed(programs: Programs, child_of: Path) -> None:
    provider = programs.provider(f"sleep 600 & echo $! > {child_of}; yes")
    with pytest.raises(ProviderError, match=r"writes more than 5\.0MB"):
        await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())
    assert programs.left == []


async def test_a_text_file_over_the_limit_is_refused(programs: Programs) -> None:
    provider = programs.provider(f'head -c {OUTPUT_BYTES + 1} /dev/zero > "$1/out.txt"', "{{OutputDir}}")
    with pytest.raises(ProviderError, match=r"writes more than 5\.0MB"):
        await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())


async def test_the_time_limit_kills_the_program_and_what_it_started(programs: Programs, child_of: Path) -> None:
    clock = FakeClock()
    provider = programs.provider(
        f"sleep 600 & echo $! > {child_of}.new; mv {child_of}.new {child_of}; wait", clock=clock
    )
    async with asyncio.TaskGroup() as group:
        options = ReadingOptions(timeout=30.0)
        reading = group.create_task(read_failing(provider, programs.sound, options))
        await until(child_of.exists)
        await clock.wake(30.0)
    assert "within 30 seconds and was killed" in reading.result()
    assert programs.left == []


async def read_failing(provider: Provider, sound: Material, options: ReadingOptions) -> str:
    with pytest.raises(ProviderError) as caught:
        await provider.read(Skill.TRANSCRIBE, [sound], options)
    return str(caught.value)


async def test_a_cancelled_reading_kills_the_program_and_removes_its_folder(programs: Programs, child_of: Path) -> None:
    provider = programs.provider(f"sleep 600 & echo $! > {child_of}.new; mv {child_of}.new {child_of}; wait")
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions()))
        await until(child_of.exists)
        assert len(programs.left) == 1
        reading.cancel()
    assert reading.cancelled()
    assert programs.left == []


async def test_what_a_program_left_running_is_killed_when_it_ends(programs: Programs, child_of: Path) -> None:
    provider = programs.provider(f"sleep 600 & echo $! > {child_of}; echo done")
    read = await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())
    assert read.text == "done"


@pytest.mark.parametrize(("script", "reason"), [("exit 3", "ended with code 3"), ("kill -9 $$", "killed by signal 9")])
async def test_a_failure_is_told_without_what_the_program_said(programs: Programs, script: str, reason: str) -> None:
    provider = programs.provider(f"echo private; echo private >&2; {script}")
    with pytest.raises(ProviderError, match=reason) as caught:
        await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())
    assert "private" not in str(caught.value)


async def test_a_program_that_is_not_installed_is_told(programs: Programs) -> None:
    provider = Provider(Config(command="no-such-program-here"), FakeProviderContext(scratch=programs.scratch))
    with pytest.raises(ProviderError, match="no-such-program-here is not installed"):
        await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())


async def test_the_times_that_whisper_cpp_prints_become_segments(programs: Programs) -> None:
    lines = "[00:00:00.000 --> 00:00:01.200]   Good morning.\n[00:00:01.200 --> 00:00:09.000]   The train leaves."
    provider = programs.provider(f"cat <<'END'\n\n{lines}\nEND")
    read = await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())
    assert [(s.text, s.start, s.end) for s in read.segments] == [
        ("Good morning.", 0.0, 1.2),
        ("The train leaves.", 1.2, 2.0),
    ]
    assert read.text == "Good morning. The train leaves."


async def test_frames_are_read_one_by_one_with_their_times(programs: Programs) -> None:
    provider = programs.provider("echo seen")
    frames = [programs.picture(width, at=at) for width, at in ((2, 0.0), (3, 75.0))]
    assert (await provider.read(Skill.DESCRIBE, frames, ReadingOptions())).text == "0:00: seen\n1:15: seen"


async def test_bytes_that_are_not_text_do_not_break_it(programs: Programs) -> None:
    provider = programs.provider("printf 'caf\\351 \\000'")
    assert (await provider.read(Skill.READ_TEXT, [programs.picture()], ReadingOptions())).text.startswith("caf\ufffd")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"command": "{{Prompt}}"}, "for `args` only"),
        ({"command": ""}, "must be a program"),
        ({"command": "bin/whisper"}, "absolute path"),
        ({"command": "x", "args": ("{{Attachment}}",)}, r"\{\{Attachment\}\}; known placeholders: \{\{AttachmentPath"),
    ],
)
def test_a_wrong_command_is_told(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Config(**settings)


def test_other_arguments_are_another_model(programs: Programs) -> None:
    first, second = programs.provider("echo", "-m", "tiny"), programs.provider("echo", "-m", "large")
    assert first.model(Skill.TRANSCRIBE) != second.model(Skill.TRANSCRIBE)
    assert programs.provider("echo", "-m", "tiny").model(Skill.TRANSCRIBE) == first.model(Skill.TRANSCRIBE)
    assert programs.provider("echo", model="mine").model(Skill.TRANSCRIBE) == "mine"


async def test_a_script_in_python_works_like_any_program(programs: Programs) -> None:
    script = programs.folder / "count.py"
    script.write_text("import sys, wave\nprint(wave.open(sys.argv[1]).getnframes())", encoding="utf-8")
    config = Config(command=sys.executable, args=(str(script), "{{AttachmentPath}}"))
    provider = Provider(config, FakeProviderContext(scratch=programs.scratch))
    assert (await provider.read(Skill.TRANSCRIBE, [programs.sound], ReadingOptions())).text == "16000"
    assert programs.left == []

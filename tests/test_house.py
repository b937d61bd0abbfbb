"""The house rules that a reviewer would otherwise repeat."""

import ast
import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "belino"
MODULES = sorted(SRC.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
STATIC = sorted((SRC / "web" / "static").rglob("*.*"))

FORBIDDEN_NAMES = re.compile(
    r"^(utils?|helpers?|common|misc|core|base|managers?|handlers?|processors?|services?|impl|data|info)$", re.IGNORECASE
)
PLATFORMS = re.compile(r"telegram|discord|slack|whatsapp|signal-cli|(?-i:\bLINE\b)", re.IGNORECASE)
CAMEL_PARTS = re.compile(r"[A-Z][a-z0-9]*|[a-z0-9]+")

# A line to the prepared parent, which passes descriptors; and the try at reaching a network from behind the walls.
SANDBOX = ("media/sandbox/parent.py", "media/sandbox/sandbox.py", "media/sandbox/walls.py")
# What runs in the sandbox's child; the bench compares, and testing draws pictures and records films of its own.
DECODING = {
    "media/image/images.py", "media/image/fit.py", "media/image/decode.py", "media/image/pixels.py",
    "media/image/sample.py", "media/sheet.py", "media/video_frames.py", "media/image/heif.py",
    "media/image/agreement.py",
}  # fmt: skip
DECODING_STREAMS = {
    "media/subtitles.py", "media/image/heif.py", "media/stream_open.py", "media/audio.py", "media/samples.py",
    "media/remux.py", "media/video_frames.py",
}  # fmt: skip
# Who may use what the rest of the house must not touch, and why.
ONLY_IN = {
    "sqlite3": {*(f"storage/{path.name}" for path in (SRC / "storage").glob("sqlite*.py")), "bench"},
    "pydantic": {"config/validate.py"},
    "mcp": {"tools/notifications.py", "tools/server.py"},
    "aiohttp": {"net", "testing", "bench"},
    "socket": {"net", "web/server.py", "cli/client.py", "testing", *SANDBOX},
    "http.client": {"cli/client.py", "testing", "bench"},
    "urllib.request": {"testing", "bench"},
    "httpx2": {"net/client.py"},
    **{foreign: set() for foreign in ("httpx", "httpcore", "requests", "urllib3", "pycurl", "ftplib")},
    "PIL": {*DECODING, "bench", "testing"},
    "pillow_heif": DECODING,
    "pyvips": DECODING,
    "av": {*DECODING_STREAMS, "testing"},
    # Its files are read without its code, which configures the log of the whole process and can download.
    "wordllama": set(),
    "tokenizers": {"storage/static_vectors.py"},
    "safetensors": {"storage/static_vectors.py"},
}
MOST_MODULES = {
    "agents": 29, "aio": 8, "bench": 29, "cassette": 4, "cli": 29, "config": 8, "context": 12, "delivery": 17,
    "domain": 28, "gateway": 38, "media": 48, "net": 19, "readers": 27, "search": 28, "storage": 68, "testing": 59,
    "tools": 17, "turns": 17, "understanding": 49, "web": 29,
}  # fmt: skip
OPENS_SOCKETS = {
    "open_connection",
    "create_connection",
    "create_datagram_endpoint",
    "create_unix_connection",
    "open_unix_connection",
    "sock_connect",
    "urlopen",
    "urlretrieve",
}
SOCKET_ROOMS = ("net", "testing", "bench")
# Tasks are supervised here, so that one that dies is restarted or told; the HTTP edge answers 500.
BROAD_EXCEPT_IN = {
    "aio/companion_program.py",
    "context/history.py",
    "turns/drafts.py",
    "turns/reading.py",
    "turns/reply.py",
    "gateway/supervise.py",
    "turns/runner.py",
    "gateway/sessions.py",
    "delivery/send.py",
    "delivery/typing.py",
    "media/fetch.py",
    "media/sandbox/parent.py",
    "tools/ipc.py",
    "understanding/ahead.py",
    "web/app.py",
    "web/chat.py",
    "web/events.py",
    "tools/server.py",
    "storage/sqlite.py",
    "understanding/calls.py",
    "understanding/entries.py",
    "understanding/item.py",
}
# What an adapter that is a folder is made of, so that knowing one platform is knowing where to look in all.
ADAPTER_MODULES = {
    "__init__", "client", "parse", "content", "authors", "media", "send", "socket", "hooks", "history", "cursor",
    "doctor", "capabilities", "errors", "auth", "crypto",
}  # fmt: skip
MOST_ADAPTER_MODULES = 12


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def of_every(paths: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One rule for many files: a test for each pair of them would cost more than all the reading."""

    def make(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for path in paths:
                try:
                    rule(path)
                except AssertionError as error:
                    broken.append(f"{path.relative_to(ROOT)}: {error}")
            assert not broken, "\n".join(broken)

        return test

    return make


@cache
def parsed(path: Path) -> dict[type, list[Any]]:
    """A module's nodes by their type: walked once, for walking is what takes the time."""
    nodes: dict[type, list[Any]] = defaultdict(list)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        nodes[type(node)].append(node)
    return nodes


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [*parsed(path)[ast.FunctionDef], *parsed(path)[ast.AsyncFunctionDef]]


def imported(path: Path) -> Iterator[str]:
    for node in parsed(path)[ast.Import]:
        yield from (alias.name for alias in node.names)
    for node in parsed(path)[ast.ImportFrom]:
        if node.module:
            yield node.module


def plain(distribution: str) -> str:
    """The name of a distribution as every spelling of it compares."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def project_files() -> Iterator[Path]:
    """Every file of the project, also where it was unpacked from an archive: all but what .gitignore names."""
    ignored = [".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines())]
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not any(fnmatch(name, pattern) for pattern in ignored)]
        yield from (Path(folder, name) for name in files if name not in ignored)


@of_every([*MODULES, *TESTS])
def test_no_module_is_longer_than_six_hundred_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


@of_every(MODULES)
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    long = {
        node.name: length
        for node in functions(path)
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > 50
    }
    assert not long


@of_every(MODULES)
def test_a_module_begins_by_saying_what_it_is_for(path: Path) -> None:
    (module,) = parsed(path)[ast.Module]
    docstring = ast.get_docstring(module)
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":"))


@of_every([path for path in MODULES if path.stem not in ("__init__", "__main__")])
def test_a_modules_first_sentence_has_the_words_of_its_name(path: Path) -> None:
    """Whoever searches the tree for a term finds the module that is about it."""
    (module,) = parsed(path)[ast.Module]
    docstring = (ast.get_docstring(module) or "").replace("\n", " ")
    sentence = set(re.findall(r"[a-z0-9]+", re.split(r"(?<=[.])\s", docstring)[0].lower()))
    assert [part for part in path.stem.strip("_").split("_") if not forms_of(part) & sentence] == []


def forms_of(word: str) -> set[str]:
    """A word in the singular and the plural."""
    forms = {word, f"{word}s", f"{word}es", word.removesuffix("s"), word.removesuffix("es")}
    return forms | {f"{word.removesuffix('y')}ies", f"{word.removesuffix('ies')}y"}


def test_no_public_class_name_occurs_twice() -> None:
    """Except those that the registry looks up."""
    places = defaultdict(list)
    for path in MODULES:
        for node in parsed(path)[ast.ClassDef]:
            if not node.name.startswith("_") and node.name not in ("Config", "Adapter", "Agent", "Provider"):
                places[node.name].append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@of_every(MODULES)
def test_names_say_what_a_thing_is(path: Path) -> None:
    names = [path.stem.strip("_"), *(node.name for node in parsed(path)[ast.ClassDef])]
    parts = [part for name in names for piece in name.split("_") for part in CAMEL_PARTS.findall(piece)]
    assert not [part for part in parts if FORBIDDEN_NAMES.match(part)]


@of_every(MODULES)
def test_a_room_uses_only_what_belongs_to_it(path: Path) -> None:
    name = name_of(path)
    for module in imported(path):
        for guarded, rooms in ONLY_IN.items():
            if module == guarded or module.startswith(guarded + "."):
                assert any(name == room or name.startswith(room + "/") for room in rooms), f"{name} imports {module}"


@of_every(sorted((SRC / "domain").glob("*.py")))
def test_the_domain_knows_only_itself_and_the_standard_library(path: Path) -> None:
    foreign = {name for name in imported(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in foreign if not f"{name}.".startswith("belino.domain.")} == set()


def test_every_extra_is_imported_somewhere() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    used = {name.partition(".")[0] for path in MODULES for name in imported(path)}
    offered = {package: {plain(name) for name in names} for package, names in packages_distributions().items()}
    # The name of an extra that is no longer needed stays for one release, so that installing it does not fail.
    assert extras.pop("discord") == []
    for extra, requirements in extras.items():
        names = {plain(re.split(r"[\[<>=]", requirement)[0]) for requirement in requirements}
        packages = {package for package, holders in offered.items() if names & holders}
        assert packages & used, f"nothing imports what the extra {extra} installs"


@of_every(MODULES)
def test_only_one_room_opens_sockets_to_the_outside(path: Path) -> None:
    """Every other way to a socket that the standard library has, whoever's loop or module it is called on."""
    if path.relative_to(SRC).parts[0] in SOCKET_ROOMS:
        return
    nodes = parsed(path)
    named = {node.id for node in nodes[ast.Name]} | {node.attr for node in nodes[ast.Attribute]}
    named |= {node.name for node in (*nodes[ast.alias], *functions(path))}
    assert not named & OPENS_SOCKETS


def test_the_bytes_of_media_come_through_one_door() -> None:
    """Only the fetcher opens a ref, and only adapters are asked to."""
    callers = {
        name_of(path)
        for path in MODULES
        for node in parsed(path)[ast.Attribute]
        if node.attr in {"open_media", "_open_media"}
    }
    ours = {caller for caller in callers if not caller.startswith(("adapters/", "testing/"))}
    assert ours == {"gateway/accounts.py", "gateway/gateway.py", "media/fetch.py"}


@of_every(MODULES)
def test_only_storage_knows_where_blobs_lie(path: Path) -> None:
    """Others open a blob with the store's `local`, which an engine without a folder has, too."""
    if path.relative_to(SRC).parts[0] in ("storage", "bench"):
        return
    assert not {node.name for node in parsed(path)[ast.alias]} & {"folder", "BlobFolder", "blob_path"}
    assert "belino.storage.folder" not in set(imported(path))
    named = [node for node in parsed(path)[ast.Attribute] if node.attr == "blobs"]
    assert not [node.lineno for node in named if ast.unparse(node.value).lower().endswith("home")]


def test_a_blob_has_no_path() -> None:
    from belino.domain.media import Blob

    assert {field.name for field in fields(Blob)} == {"sha256", "mime", "size"}


@of_every(MODULES)
def test_no_task_is_without_an_owner(path: Path) -> None:
    if name_of(path) == "aio/deadline.py":
        return  # foreign code that ignores its cancellation is left behind: it would keep any owner from its end
    for node in parsed(path)[ast.Attribute]:
        if node.attr == "create_task":
            assert ast.unparse(node.value) not in {"asyncio", "loop"}, f"line {node.lineno}"
        assert node.attr != "ensure_future", f"line {node.lineno}"


@of_every(MODULES)
def test_broad_excepts_stand_only_where_tasks_are_supervised(path: Path) -> None:
    broad = [
        node.lineno
        for node in parsed(path)[ast.ExceptHandler]
        if node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
    ]
    assert not broad or name_of(path) in BROAD_EXCEPT_IN


def test_every_adapter_has_a_test_samples_and_a_page() -> None:
    for path in (SRC / "adapters").iterdir():
        if path.stem.startswith("__"):
            continue
        assert (ROOT / "tests" / "adapters" / f"test_{path.stem}.py").exists(), path.stem
        assert list((ROOT / "tests" / "samples" / path.stem).glob("*.json")), path.stem
        assert (ROOT / "docs" / "platforms" / f"{path.stem}.md").exists(), path.stem


def test_an_adapter_has_only_the_fixed_modules_and_at_most_twelve() -> None:
    """A second protocol of a platform is a sub-folder, which counts for itself."""
    for folder in sorted(path.parent for path in (SRC / "adapters").rglob("*/__init__.py")):
        names = {path.stem for path in folder.glob("*.py")}
        assert not names - ADAPTER_MODULES, f"{name_of(folder)}: {sorted(names - ADAPTER_MODULES)}"
        assert len(names) <= MOST_ADAPTER_MODULES, f"{name_of(folder)}: {len(names)} modules"


def test_a_package_has_not_more_modules_than_a_reader_keeps_in_mind() -> None:
    """A package that needs more is two packages, or has modules that are one; adapters are counted by platform."""
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")} - {"adapters"}
    assert packages == set(MOST_MODULES), "a new package gets a limit of its own"
    for name, most in MOST_MODULES.items():
        count = len(list((SRC / name).rglob("*.py")))
        assert count <= most, f"{name} has {count} modules, and may have {most}"


def test_every_agent_has_a_test_and_a_page() -> None:
    for path in (SRC / "agents").glob("*.py"):
        if path.stem != "__init__":
            assert (ROOT / "tests" / "agents" / f"test_{path.stem}.py").exists(), path.stem
            assert (ROOT / "docs" / "agents" / f"{path.stem}.md").exists(), path.stem


def test_every_config_key_is_in_the_reference_with_its_default() -> None:
    from belino.config import reference

    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    missing = [key.name for key in reference() if f"| `{key.name}` | `{key.default}` |" not in page]
    assert not missing


def test_the_words_stay_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_the_changelog_knows_this_version() -> None:
    from belino import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_threat_is_shown_by_a_test_that_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")))
    existing = {
        name for path in TESTS for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    assert named
    assert not named - existing


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} → {target}"


@pytest.mark.parametrize("path", STATIC, ids=lambda path: path.name)
def test_the_page_builds_nodes_and_loads_nothing_foreign(path: Path) -> None:
    if path.suffix not in {".html", ".js", ".css"}:
        return
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", text)
    if path.suffix == ".html":
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", text)


def test_nothing_names_a_package_index_or_somebodys_machine() -> None:
    # Written in pieces so that this file does not find itself.
    words = [
        r"/(?:work|root|home|opt)/[a-z]",
        r"\.\./" + "shared",
        "pypi" + r"\.org",
        "files" + r"\.pythonhosted",
        "registry" + r"\.npmjs",
    ]
    for path in project_files():
        if path.suffix in {".png", ".ico", ".webp", ".gif", ".gz", ".zip", ".ogg"} or path.name == "LICENSE":
            continue
        found = re.findall("|".join(words), path.read_text(encoding="utf-8"))
        assert not found, f"{path.relative_to(ROOT)}: {found}"


@of_every([path for path in (*MODULES, *STATIC) if path.suffix in (".py", ".js", ".html", ".css")])
def test_only_its_adapter_knows_a_platform(path: Path) -> None:
    room = name_of(path).partition("/")[0]
    if room in ("adapters", "testing", "bench") or name_of(path) == "cli/demo.py":
        return  # what plays a platform, or shows it
    named = PLATFORMS.search(path.read_text(encoding="utf-8"))
    assert named is None, f"{named.group()}: change the port instead"

"""Jobs for the worker, as a local model might do them; reachable only from its tests."""

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from belino.domain.errors import ProviderError

Options = Mapping[str, Any]

imported_in = 0
loaded: dict[str, Any] = {}


def prepare() -> None:
    global imported_in
    imported_in = os.getpid()


def load(options: Options) -> None:
    if "model" not in options:
        return
    try:
        loaded["words"] = Path(options["model"]).read_text(encoding="utf-8")
    except OSError as error:
        raise ProviderError(f"there is no model {Path(options['model']).name}") from error
    loaded["thread"] = threading.Thread(target=threading.Event().wait, daemon=True)
    loaded["thread"].start()


def read(*sources: Any) -> dict[str, Any]:
    *files, options = sources
    return {
        "bytes": [len(os.read(file, 1 << 20)) for file in files],
        "model": loaded.get("words"),
        "own_process": os.getpid() != imported_in,
        "long": "x" * options.get("long", 0),
    }


def escape(source: int, options: Options) -> dict[str, Any]:
    """What a compromised model could reach."""
    tries: dict[str, Callable[[], object]] = {
        "network": lambda: socket.create_connection(("127.0.0.1", options["port"]), timeout=1).close(),
        "file": lambda: Path("/etc/passwd").read_bytes(),
        "model": lambda: Path(options["model"]).read_bytes(),
        "program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "gateway": lambda: os.kill(options["gateway"], 0),
    }
    reached = []
    for name, attempt in tries.items():
        try:
            attempt()
        except (OSError, LookupError):  # without files, there is no codec of host names either
            continue
        reached.append(name)
    return {"reached": reached, "environment": sorted(os.environ)}


def eat(source: int, options: Options) -> dict[str, Any]:
    return {"bytes": len(bytearray(options["bytes"]))}


def crash(source: int, options: Options) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def spin(source: int, options: Options) -> dict[str, Any]:
    while True:
        pass


def fail(source: int, options: Options) -> dict[str, Any]:
    raise RuntimeError("a message that may quote the file")


def refuse(source: int, options: Options) -> dict[str, Any]:
    raise ProviderError("the sound is too quiet\nfor this model")

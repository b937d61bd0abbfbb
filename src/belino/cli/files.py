"""Local files as belino sees them: their types, pictures made to fit, and a plan of how they would be sent."""

import asyncio
import hashlib
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from belino.cli import OK
from belino.cli.show import clean, show_json, show_table
from belino.domain.errors import BelinoError, ConfigError, MediaTooLarge
from belino.domain.limits import Limits, SendAs
from belino.domain.media import Blob, MediaKind, open_files
from belino.domain.message import ConversationKey
from belino.domain.reply import Offer, Parcel, Reply
from belino.domain.units import format_size
from belino.media.image.header import DRAWN_MIMES
from belino.media.session_files import safe_name
from belino.media.sniff import HEAD_BYTES, Sniffed, sniff
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.config import AdapterConfig, Config
    from belino.delivery.decide import Decision
    from belino.delivery.outgoing_files import Keeper

CHUNK = 256 * 1024
_NAMELESS = {"file_name": None, "mime": "", "kind": MediaKind.IMAGE}


class Target:
    """A file being written: visible only when complete. A name we chose never replaces an existing file."""

    def __init__(self, output: Path | None, media: Mapping[str, Any]) -> None:
        name = safe_name(media["file_name"], mime=str(media["mime"]), kind=MediaKind(media["kind"]))
        self.path = output if output is not None else Path(name)
        self._replaces = output is not None

    def __enter__(self) -> Self:
        if self.path.is_dir() or (not self._replaces and os.path.lexists(self.path)):
            raise BelinoError(f"{self.path} already exists; name another file with -o")
        try:
            handle, name = tempfile.mkstemp(prefix=".belino-", dir=self.path.parent)
        except OSError as error:
            raise BelinoError(f"{self.path} cannot be written: {error.strerror}") from None
        self._file = os.fdopen(handle, "wb")
        self._beside = Path(name)
        return self

    def write(self, content: bytes) -> None:
        """Write the next bytes."""
        with self._said():
            self._file.write(content)

    def keep(self) -> None:
        """Complete: move it to its place."""
        with self._said():
            self._file.close()
            self._beside.replace(self.path)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """A full disk is a local error, whatever the source of the bytes."""
        try:
            yield
        except OSError as error:
            raise BelinoError(f"{self.path} cannot be written: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            self._beside.unlink()


def written(source: Path, target: Target) -> Path:
    """A copy of a held blob at the target."""
    with target, source.open("rb") as reader:
        while chunk := reader.read(CHUNK):
            target.write(chunk)
        target.keep()
    return target.path


def sniffed_file(path: Path) -> Sniffed:
    """The type of a local file, by its bytes."""
    head = head_of(path, HEAD_BYTES + 1)
    return sniff(head[:HEAD_BYTES], name=path.name, whole=len(head) <= HEAD_BYTES)


def head_of(path: Path, size: int) -> bytes:
    """Its first bytes."""
    if not path.is_file():
        raise BelinoError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise BelinoError(f"{path} cannot be read: {error.strerror}") from None


def as_blob(path: Path, sniffed: Sniffed) -> Blob:
    """A local file as if it were a held blob."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Blob(sha256=sha256, mime=sniffed.mime, size=path.stat().st_size)


def sniff_files(args: Namespace) -> int:
    """belino media sniff FILE…"""
    found: list[tuple[Path, Sniffed]] = []
    missed: list[str] = []
    for path in args.files:
        try:
            found.append((path, sniffed_file(path)))
        except BelinoError as error:
            missed.append(str(error))
    if args.json:
        rows = [
            {"file": str(path), "mime": s.mime, "kind": s.kind, "group": s.group, "exact": s.exact, "lies": s.lies}
            for path, s in found
        ]
        show_json({"files": rows})
    elif found:
        cells = [(path.name, s.mime, s.group, "the bytes" if s.exact else "a hint", s.lies) for path, s in found]
        show_table(("file", "type", "is a", "detected by", "mismatch"), cells, empty="no file")
    if missed:
        raise BelinoError("; ".join(missed))
    return OK


def fit_file(args: Namespace) -> int:
    """belino media fit FILE --max-bytes N [--max-side N] -o OUT"""
    sniffed = sniffed_file(args.file)
    if sniffed.mime not in DRAWN_MIMES:
        raise BelinoError(f"{args.file} is {sniffed.mime}, not a picture that belino can fit")
    answer = asyncio.run(_fitted(as_blob(args.file, sniffed), args.file.resolve(), args))
    if args.json:
        show_json(answer)
    else:
        size = f"{answer['width']}×{answer['height']}"
        print(clean(f"{answer['path']}: {answer['mime']}, {size}, {answer['bytes']} bytes"))
        if answer["note"]:
            print(f"(note: {answer['note']})")
    return OK


def plan_files(args: Namespace) -> int:
    """belino media plan FILE… --platform NAME[:ACCOUNT] [--as FORM] [--caption TEXT]"""
    config, problem = _configured(Home.at(args.home))
    own = _account(config, args.platform, is_known=not problem)
    for path in args.files:
        if not path.is_file():
            raise BelinoError(f"{path} is not a file")
    offered = [(path, SendAs(args.form) if args.form else None) for path in args.files]
    platform = args.platform.partition(":")[0]
    decisions, parcels = asyncio.run(planned_files(platform, offered, config, own, caption=args.caption))
    if problem:
        print(clean(f"{problem}; the plan assumes the defaults"), file=sys.stderr)
    files = [_decision_json(path, decision) for path, decision in zip(args.files, decisions, strict=True)]
    if args.json:
        show_json({"platform": args.platform, "files": files, "parcels": [_parcel_json(parcel) for parcel in parcels]})
        return OK
    rows = [(path.name, row["goes_as"] or "not sent", row["mime"], format_size(row["size"]), row["reason"])
            for path, row in zip(args.files, files, strict=True)]  # fmt: skip
    show_table(("file", "goes as", "type", "size", "why"), rows, empty="no file")
    for number, parcel in enumerate(parcels, 1):
        what = ", ".join(file.name for file in parcel.files)
        words = parcel.plain or parcel.text
        print(clean(f"{number}. {parcel.kind}: {' + '.join(part for part in (what, words) if part)}"))
    return OK


def _formats(output: Path) -> tuple[str, ...]:
    """The format that the output's name implies; any, if none."""
    from belino.media.image.images import TAKEN

    wanted = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
    suffix = output.suffix.lower()
    return (wanted[suffix],) if suffix in wanted else TAKEN


async def _fitted(blob: Blob, path: Path, args: Namespace) -> dict[str, Any]:
    from belino.media.image.images import Images
    from belino.media.sandbox.sandbox import Sandbox

    with tempfile.TemporaryDirectory(prefix="belino-") as scratch, Target(args.output, _NAMELESS) as target:
        async with Sandbox() as sandbox:
            fitted = await Images(sandbox, Path(scratch), open_files({blob.sha256: path})).fit(
                blob, max_bytes=args.max_bytes, max_side=args.max_side, formats=_formats(args.output)
            )
        target.write(fitted.data)
        target.keep()
    answer = {"mime": fitted.mime, "width": fitted.width, "height": fitted.height, "bytes": len(fitted.data)}
    return {"path": str(target.path), **answer, "note": fitted.note.words if fitted.note is not None else ""}


def _configured(home: Home) -> tuple["Config", str]:
    """The configuration of this installation; the defaults, and why, if it cannot be read, as without its tokens."""
    from belino.config import Config, load

    try:
        return load(home), ""
    except ConfigError as error:
        return Config(), str(error).rstrip(".")


def _account(config: "Config", named: str, *, is_known: bool) -> "AdapterConfig | None":
    """The configured account that is named, or the platform's first; None if the platform has none here."""
    platform, _, account = named.partition(":")
    found = [own for own in config.adapters if own.platform == platform and account in ("", own.account)]
    if account and not found and is_known:
        raise BelinoError(f"there is no account {account!r} of {platform} in the configuration")
    return min(found, key=lambda own: own.account != "default", default=None)


async def _limits(platform: str, config: "Config", own: "AdapterConfig | None") -> Limits:
    """The limits of an account, or those of its platform; nothing is started or called."""
    from belino.gateway.accounts import from_registry
    from belino.gateway.adapter_context import AccountContext
    from belino.net.clock import SystemClock
    from belino.net.guard import Guard
    from belino.registry import find

    if own is not None:
        context = AccountContext(own, SystemClock(), Guard(config.net.allow))
        try:
            return from_registry(own, context).limits
        finally:
            await context.http.close()
    limits = getattr(find("adapters", platform).make, "limits", None)
    if not isinstance(limits, Limits):
        raise BelinoError(f"the limits of {platform} are known only while its adapter runs")
    return limits


async def planned_files(
    platform: str,
    files: Sequence[tuple[Path, SendAs | None]],
    config: "Config",
    own: "AdapterConfig | None",
    *,
    caption: str = "",
) -> tuple[tuple["Decision", ...], tuple[Parcel, ...]]:
    """Collect, prepare and plan as the gateway does with this configuration, in a temporary state folder."""
    from belino.delivery.outgoing_files import Keeper
    from belino.delivery.plan import plan
    from belino.delivery.prepare import Preparer
    from belino.gateway.publisher import why_unpublished
    from belino.media.audio import Sounds
    from belino.media.image.images import Images
    from belino.media.sandbox.sandbox import Sandbox
    from belino.net.clock import SystemClock
    from belino.storage.store import open_store

    limits = await _limits(platform, config, own)
    async with AsyncExitStack() as stack:
        home = Home.at(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="belino-"))))
        store = await open_store(home, clock=SystemClock())
        stack.push_async_callback(store.close)
        sandbox = await stack.enter_async_context(Sandbox(config.media.sandbox, max_pixels=config.media.max_pixels))
        images = Images(sandbox, store.scratch, store.local)
        sounds = Sounds(sandbox, store.scratch, store.local)
        keeper = Keeper(store, images, max_bytes=config.media.max_bytes)
        # Without an account of the platform its defaults are assumed, a public address among them.
        why = "" if own is None else why_unpublished(config.server)
        preparer = Preparer(store, lambda: images, lambda: sounds, unpublished=lambda: why)
        found = [await _offered(path, keeper, {"wanted": wanted, "caption": caption}) for path, wanted in files]
        prepared = iter(await preparer.prepare([each for each in found if isinstance(each, Offer)], limits))
        decisions = tuple(next(prepared) if isinstance(each, Offer) else each for each in found)
    where = ConversationKey(platform=platform, account="plan", channel="plan")
    return decisions, plan(Reply(conversation=where, text=""), decisions, limits, turn=0, trace="")


async def _offered(path: Path, keeper: "Keeper", wish: dict[str, Any]) -> "Offer | Decision":
    """A file as a reply would offer it; one above belino's limit is refused before the platform's limits are
    checked."""
    from belino.delivery.decide import Action, Decision

    try:
        return replace(await keeper.keep(_pieces(path), name=path.name), **wish)
    except MediaTooLarge as error:
        offer = Offer(name=path.name, mime="", size=path.stat().st_size, sha256="")
        return Decision(offer=offer, action=Action.REFUSE, reason=f"{error} (media.max_bytes)")
    except OSError as error:
        raise BelinoError(f"{path} cannot be read: {error.strerror}") from None


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            yield piece


def _decision_json(path: Path, decision: "Decision") -> dict[str, Any]:
    from belino.delivery.decide import Action

    offer, sent = decision.offer, decision.action is Action.SEND
    return {
        "file": str(path),
        "action": decision.action,
        "goes_as": decision.send_as if sent else None,
        "name": offer.name,
        "mime": offer.mime,
        "size": offer.size,
        "width": offer.width,
        "height": offer.height,
        "seconds": offer.seconds,
        "reason": decision.reason,
    }


def _parcel_json(parcel: Parcel) -> dict[str, Any]:
    return {
        "kind": parcel.kind,
        "text": parcel.text,
        "files": [{"name": file.name, "send_as": file.send_as, "caption": file.caption} for file in parcel.files],
    }

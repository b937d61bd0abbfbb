"""Plan: belino media plan, how local files would be sent on a platform; works on copies, sends nothing."""

import asyncio
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.show import clean, show_json, show_table
from belino.domain.errors import BelinoError, MediaTooLarge
from belino.domain.limits import Limits, SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import Offer, Parcel, Reply
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.delivery.decide import Decision
    from belino.delivery.outgoing_files import Keeper

PIECE = 1024 * 1024


def plan_files(args: Namespace) -> int:
    """belino media plan FILE… --platform NAME [--as FORM] [--caption TEXT]"""
    limits = _limits(args.platform)
    for path in args.files:
        if not path.is_file():
            raise BelinoError(f"{path} is not a file")
    decisions, parcels = asyncio.run(_planned(args, limits))
    files = [_told(path, decision) for path, decision in zip(args.files, decisions, strict=True)]
    if args.json:
        show_json({"platform": args.platform, "files": files, "parcels": [_call(parcel) for parcel in parcels]})
        return OK
    rows = [(path.name, row["goes_as"] or "not sent", row["mime"], format_size(row["size"]), row["reason"])
            for path, row in zip(args.files, files, strict=True)]  # fmt: skip
    show_table(("file", "goes as", "type", "size", "why"), rows, empty="no file")
    for number, parcel in enumerate(parcels, 1):
        what = ", ".join(file.name for file in parcel.files)
        words = parcel.plain or parcel.text
        print(clean(f"{number}. {parcel.kind}: {' + '.join(part for part in (what, words) if part)}"))
    return OK


def _limits(platform: str) -> Limits:
    """The limits of a platform, from its adapter; nothing is started or called."""
    from belino.registry import find

    limits = getattr(find("adapters", platform).make, "limits", None)
    if not isinstance(limits, Limits):
        raise BelinoError(f"what {platform} takes is known only while its adapter runs")
    return limits


async def _planned(args: Namespace, limits: Limits) -> tuple[tuple["Decision", ...], tuple[Parcel, ...]]:
    """Collect, prepare and plan as the gateway does, in a temporary state folder."""
    from belino.delivery.outgoing_files import Keeper
    from belino.delivery.plan import plan
    from belino.delivery.prepare import Preparer
    from belino.media.audio import Sounds
    from belino.media.fetch import MediaConfig
    from belino.media.image.images import Images
    from belino.media.sandbox.sandbox import Sandbox
    from belino.net.clock import SystemClock
    from belino.storage.store import open_store

    async with AsyncExitStack() as stack:
        home = Home.at(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="belino-"))))
        store = await open_store(home, clock=SystemClock())
        stack.push_async_callback(store.close)
        sandbox = await stack.enter_async_context(Sandbox())
        scratch = home.blobs / "tmp"
        images, sounds = Images(sandbox, scratch), Sounds(sandbox, scratch)
        keeper = Keeper(store, images, max_bytes=MediaConfig().max_bytes)
        wish = {"wanted": SendAs(args.form) if args.form else None, "caption": args.caption}
        preparer = Preparer(store, lambda: images, lambda: sounds)
        found = [await _offered(path, keeper, wish) for path in args.files]
        prepared = iter(await preparer.prepare([each for each in found if isinstance(each, Offer)], limits))
        decisions = tuple(next(prepared) if isinstance(each, Offer) else each for each in found)
    where = ConversationKey(platform=args.platform, account="plan", channel="plan")
    return decisions, plan(Reply(conversation=where, text=""), decisions, limits, turn=0, trace="")


async def _offered(path: Path, keeper: "Keeper", wish: dict[str, Any]) -> "Offer | Decision":
    """A file as a reply would offer it; one above belino's limit is refused before the platform's limits are
    checked."""
    from belino.delivery.decide import Action, Decision

    try:
        return replace(await keeper.keep(_pieces(path), name=path.name), **wish)
    except MediaTooLarge as error:
        offer = Offer(name=path.name, mime="", size=path.stat().st_size, sha256="")
        return Decision(offer=offer, action=Action.REFUSE, reason=str(error))
    except OSError as error:
        raise BelinoError(f"{path} cannot be read: {error.strerror}") from None


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _told(path: Path, decision: "Decision") -> dict[str, Any]:
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


def _call(parcel: Parcel) -> dict[str, Any]:
    return {
        "kind": parcel.kind,
        "text": parcel.text,
        "files": [{"name": file.name, "send_as": file.send_as, "caption": file.caption} for file in parcel.files],
    }

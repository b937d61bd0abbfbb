"""belino media ls|fetch|text|transcribe|describe|price|sniff|fit|plan|gc: media, its bytes, and local files."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, Unknown, ask, plain, running_gateway, with_store
from belino.cli.command import NAME, NotRunning, number_from
from belino.cli.files import CHUNK, Target, fit_file, plan_files, sniff_files, written
from belino.cli.reading_files import read_local, reading_arguments
from belino.cli.renditions import fetch_running, form_arguments, price_file, render_ref, text_arguments, text_file
from belino.cli.show import clean, counted, progress_bar, shorten, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.limits import SendAs
from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

GC_DESCRIPTION = (
    "Delete unused bytes and what users deleted, move files aside that the database does not list, and find missing "
    "bytes."
)
_GC_SAYS = (
    ("deleted", "piece", "pieces", "of what was deleted"),
    ("unused", "blob", "blobs", "that nothing uses"),
    ("strays", "file", "files", "that the database does not list, left in place; see `belino doctor`"),
    ("put_aside", "file", "files", "that the database does not list, to blobs/aside/ for a week"),
    ("brought_back", "file", "files", "back from blobs/aside/"),
    ("expired", "file", "files", "in blobs/aside/ for more than a week"),
    ("unfinished", "file", "files", "never finished"),
    ("lost", "blob", "blobs", "without a file: what refers to it says so, or is fetched again"),
)


def media_arguments(parser: ArgumentParser) -> None:
    names = "ls|fetch|text|transcribe|describe|price|sniff|fit|plan|gc"
    actions = parser.add_subparsers(dest="action", required=True, metavar=names, help="what to do")
    listing = actions.add_parser("ls", help="list media, newest first", description="List media, newest first.")
    listing.add_argument("--channel", metavar="CHANNEL", help="only of this channel (platform:account:channel)")
    listing.add_argument("--kind", choices=[str(kind) for kind in MediaKind], help="only of this kind")
    listing.add_argument(
        "--limit", type=number_from(1, 200), default=20, metavar="N", help="maximum number (default: 20)"
    )
    fetch = actions.add_parser("fetch", help="get a ref", description="Get the bytes of a ref, or a form of it.")
    fetch.add_argument("ref", type=NAME, metavar="REF", help="as `belino media ls` shows it, like tg_k3v9d0q2m7xa")
    fetch.add_argument("-o", "--output", type=Path, metavar="OUT", help="write here (default: its name, here)")
    form_arguments(fetch)
    text = actions.add_parser("text", help="extract the text of a file", description="The text of a local file.")
    text_arguments(text)
    for name, says in (("transcribe", "what is said in a file"), ("describe", "what a file shows")):
        reading_arguments(actions.add_parser(name, help=says, description=f"Tell {says}; nothing is stored."))
    price = actions.add_parser("price", help="what a file would cost an agent", description="Price a local file.")
    price.add_argument("file", type=Path, metavar="FILE", help="a file on this machine")
    sniff = actions.add_parser(
        "sniff", help="detect the types of files", description="Detect the types of local files."
    )
    sniff.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files on this machine")
    fit = actions.add_parser(
        "fit", help="shrink a picture", description="Make a picture fit a limit, upright and without metadata."
    )
    fit.add_argument("file", type=Path, metavar="FILE", help="a picture on this machine")
    fit.add_argument("--max-bytes", type=number_from(1), required=True, metavar="N", help="maximum size in bytes")
    fit.add_argument(
        "--max-side", type=number_from(1), metavar="N", help="maximum length of the longer side, in pixels"
    )
    fit.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="write here")
    plan = actions.add_parser("plan", help="how files would be sent", description="Show how local files would be sent.")
    plan.add_argument("files", type=Path, nargs="+", metavar="FILE", help="files on this machine")
    plan.add_argument("--platform", required=True, metavar="NAME", help="the platform, or PLATFORM:ACCOUNT")
    plan.add_argument("--as", dest="form", choices=[str(form) for form in SendAs], help="the preferred form")
    plan.add_argument("--caption", default="", metavar="TEXT", help="a caption for each file")
    _gc_arguments(actions.add_parser("gc", help="delete unused files", description=GC_DESCRIPTION))


def _gc_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count")
    parser.add_argument(
        "--all-strays",
        action="store_true",
        help="move every file aside that the database does not list, however many, and give up files that are missing "
        "because blobs/ is empty",
    )


def run_media(args: Namespace) -> int:
    actions: dict[str, Callable[[Namespace], int]] = {
        "ls": _list,
        "fetch": _fetch,
        "text": text_file,
        "transcribe": read_local,
        "describe": read_local,
        "price": price_file,
        "sniff": sniff_files,
        "fit": fit_file,
        "plan": plan_files,
        "gc": _gc,
    }
    return actions[args.action](args)


def _list(args: Namespace) -> int:
    channel = ConversationKey.parse(args.channel).whole_channel if args.channel else None

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import record_json

        kind = MediaKind(args.kind) if args.kind else None
        records = await store.refs(channel, kind=kind, limit=args.limit)
        return {"media": [record_json(record) for record in records]}

    answer = ask(
        args,
        running=lambda gateway: gateway.get("/api/media", channel=channel, kind=args.kind, limit=args.limit),
        resting=resting,
    )
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (m["ref"], m["kind"], shorten(m["file_name"] or "", 40), m["mime"], m["size"], m["outcome"], m["reason"])
        for m in answer["media"]
    ]
    where = f" in {channel}" if channel else ""
    what = f"media of kind {args.kind}" if args.kind else "media"
    show_table(("ref", "kind", "name", "type", "bytes", "outcome", "why"), rows, empty=f"no {what}{where} yet")
    return OK


def _fetch(args: Namespace) -> int:
    try:
        return _fetch_file(args) if args.form == "file" else render_ref(args)
    except Unknown:
        raise BelinoError(f"there is no media {args.ref}; see `belino media ls`") from None


def _fetch_file(args: Namespace) -> int:
    home = Home.at(args.home)
    gateway = running_gateway(home)
    media, path = _fetch_running(args, gateway) if gateway else _fetch_resting(args, home)
    if args.json:
        show_json({"media": media, "path": str(path)})
    else:
        print(clean(f"{path} ({path.stat().st_size} bytes, {media['mime']})"))
    return OK


def _fetch_running(args: Namespace, gateway: GatewayClient) -> tuple[dict[str, Any], Path]:
    """Let the gateway fetch; then copy the bytes from it."""
    media = fetch_running(args, gateway, {"ref": args.ref})
    if media["url"] is None:
        raise BelinoError("the gateway stopped during the fetch; try again")
    with (
        Target(args.output, media) as target,
        progress_bar(target.path.name, quiet=args.json) as told,
        gateway.opened("GET", media["url"]) as answer,
    ):
        total, done = answer.length, 0
        while chunk := answer.read(CHUNK):
            target.write(chunk)
            done += len(chunk)
            told(done, total)
        if total is not None and done != total:
            raise BelinoError("the gateway stopped during the download; nothing was written")
        target.keep()
    return media, target.path


def _fetch_resting(args: Namespace, home: Home) -> tuple[dict[str, Any], Path]:
    """Without a gateway the platform cannot be asked; held bytes are still available."""
    import asyncio

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.web.wire import record_json

        record = await store.find_ref(args.ref)
        if record is None:
            raise BelinoError(f"there is no media {args.ref}; see `belino media ls`")
        blob = await store.blob(record.ref.sha256) if record.ref.sha256 else None
        if blob is None:
            raise NotRunning(f"the bytes of {args.ref} are not held here; start `belino serve` to fetch them")
        media = plain(record_json(record))
        async with store.local(blob.sha256) as held:
            return {"media": media, "path": str(written(held, Target(args.output, media)))}

    found = asyncio.run(with_store(home, resting))
    return found["media"], Path(found["path"])


def _gc(args: Namespace) -> int:
    """Through the running gateway, or under its lock."""

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.gateway.maintenance import tidy_up
        from belino.web.wire import tidied_json

        wanted = {"dry_run": args.dry_run, "all_strays": args.all_strays}
        return tidied_json(await tidy_up(store, Home.at(args.home), store.purge, **wanted))

    found = ask(
        args,
        running=lambda gateway: gateway.post(
            "/api/media/gc", {"dry_run": int(args.dry_run), "all_strays": int(args.all_strays)}
        ),
        resting=resting,
    )
    if args.json:
        show_json({"dry_run": args.dry_run, **found})
        return OK
    lines = [f"{counted(found[key], one, many)} {which}" for key, one, many, which in _GC_SAYS if found[key]]
    done = "would be freed" if args.dry_run else "freed"
    for line in [*lines, f"{format_size(found['freed'])} {done}"] if lines else ["nothing to delete"]:
        print(line)
    return OK

"""belino media gc: what lies around in the state folder, counted or let go."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.ask import ask
from belino.cli.show import show_json
from belino.media.placeholder import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.sqlite import SqliteStore

DESCRIPTION = (
    "Let go of bytes that nothing uses, files that no row knows and what was deleted; find bytes that are missing."
)
_SAYS = (
    ("deleted", "of what was deleted"),
    ("unused", "blobs that nothing uses"),
    ("strays", "files that no row knows"),
    ("unfinished", "files that nobody finishes"),
    ("lost", "blobs whose file is gone: their refs say so, or are fetched again"),
)


def gc_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count")


def gc(args: Namespace) -> int:
    """Through the running gateway, or under its lock."""

    async def resting(store: "SqliteStore") -> dict[str, Any]:
        from belino.gateway.upkeep import tidy_up
        from belino.web.wire import tidied_json

        return tidied_json(await tidy_up(store, Home.at(args.home), store.purge, dry_run=args.dry_run))

    found = ask(
        args,
        running=lambda gateway: gateway.post("/api/media/gc", {"dry_run": int(args.dry_run)}),
        resting=resting,
    )
    if args.json:
        show_json({"dry_run": args.dry_run, **found})
        return OK
    for key, what in _SAYS:
        if found[key]:
            print(f"{found[key]} {what}")
    done = "would be freed" if args.dry_run else "freed"
    print(f"{format_size(found['freed'])} {done}" if any(found[key] for key, _ in _SAYS) else "nothing lies around")
    return OK

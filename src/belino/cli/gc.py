"""belino media gc: count or delete unused files in the state folder."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import ask
from belino.cli.show import counted, show_json
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

DESCRIPTION = (
    "Let go of bytes that nothing uses and of what was deleted; put files aside that the database does not list; find "
    "bytes that are missing."
)
_SAYS = (
    ("deleted", "piece", "pieces", "of what was deleted"),
    ("unused", "blob", "blobs", "that nothing uses"),
    ("strays", "file", "files", "that the database does not list, left in place; `belino doctor` says more"),
    ("put_aside", "file", "files", "that the database does not list, to blobs/aside/ for a week"),
    ("brought_back", "file", "files", "back from blobs/aside/"),
    ("expired", "file", "files", "in blobs/aside/ for more than a week"),
    ("unfinished", "file", "files", "that nobody finishes"),
    ("lost", "blob", "blobs", "without a file: what refers to it says so, or is fetched again"),
)


def gc_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only count")
    parser.add_argument(
        "--all-strays",
        action="store_true",
        help="put every file aside that the database does not list, however many they are, and give up files that an "
        "empty blobs/ no longer has",
    )


def gc(args: Namespace) -> int:
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
    lines = [f"{counted(found[key], one, many)} {which}" for key, one, many, which in _SAYS if found[key]]
    done = "would be freed" if args.dry_run else "freed"
    for line in [*lines, f"{format_size(found['freed'])} {done}"] if lines else ["nothing lies around"]:
        print(line)
    return OK

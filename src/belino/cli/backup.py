"""belino backup DIR: back up everything while the gateway runs; --verify checks a backup."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from belino import __version__
from belino.cli import FAILED, OK
from belino.cli.show import clean, counted, progress_bar, show_json
from belino.domain.errors import StoreError
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.backup import BackedUp


def backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="an empty folder, or one with an earlier backup")
    parser.add_argument(
        "--verify", action="store_true", help="read the backup in DIR back instead; 1 if it is not whole"
    )
    parser.add_argument("--without-key", action="store_true", help="leave the key out; keep it somewhere else yourself")


def run_backup(args: Namespace) -> int:
    return _verify(args) if args.verify else _back_up(args)


def _verify(args: Namespace) -> int:
    from belino.storage.backup_check import verify_backup

    with progress_bar("verify", quiet=args.json) as told:
        found = verify_backup(args.folder, progress=told)
    if args.json:
        show_json({"folder": str(args.folder), "ok": found.is_whole, **asdict(found)})
    else:
        held = f"{counted(found.messages, 'message')} and {counted(found.blobs, 'file')} ({format_size(found.size)})"
        state = "is whole" if found.is_whole else "is not whole"
        print(clean(f"{args.folder} of {found.created} {state}: {held}"))
        for problem in found.problems:
            print(clean(f"  {problem}"))
    return OK if found.is_whole else FAILED


def _back_up(args: Namespace) -> int:
    done = _backed_up(args)
    if args.json:
        show_json({"folder": str(args.folder), **asdict(done)})
        return FAILED if done.damaged else OK
    held = f"{counted(done.messages, 'message')} and {counted(done.blobs, 'file')} ({format_size(done.size)})"
    print(clean(f"{args.folder} holds {held}"))
    if done.missing:
        print(f"not in it: {counted(done.missing, 'file')} that went while being looked for")
    if done.damaged:
        print(f"not in it: {counted(len(done.damaged), 'damaged file')}; `belino doctor` tells more")
    if done.secrets:
        print(clean(f"secrets are never copied; keep these yourself: {', '.join(done.secrets)}"))
    print(
        "it holds the key: keep it as safe as the state folder" if done.has_key else "it is of no use without its key"
    )
    return FAILED if done.damaged else OK


def _backed_up(args: Namespace) -> "BackedUp":
    from belino.storage.backup import back_up

    try:
        with progress_bar("backup", quiet=args.json) as told:
            return back_up(
                Home.at(args.home),
                args.folder,
                now=datetime.now(UTC),
                version=__version__,
                with_key=not args.without_key,
                progress=told,
            )
    except OSError as error:
        raise StoreError(f"the backup could not be written: {error.strerror}") from None

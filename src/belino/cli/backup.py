"""belino backup DIR: back up everything while the gateway runs, or verify a backup; belino restore DIR: restore one."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from belino import __version__
from belino.cli import FAILED, OK
from belino.cli.show import clean, counted, progress_bar, show_json
from belino.domain.errors import StoreError, StoreInUse
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.backup import BackedUp
    from belino.storage.backup_check import Verified


def backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="an empty folder, or one with an earlier backup")
    parser.add_argument(
        "--verify", action="store_true", help="verify the backup in DIR instead; exit code 1 if it is not intact"
    )
    parser.add_argument("--without-key", action="store_true", help="leave out the key; store it elsewhere yourself")


def run_backup(args: Namespace) -> int:
    return _verify(args) if args.verify else _back_up(args)


def _verify(args: Namespace) -> int:
    from belino.storage.backup_check import verify_backup

    with progress_bar("verify", quiet=args.json) as told:
        found = verify_backup(args.folder, progress=told)
    if args.json:
        show_json({"folder": str(args.folder), "ok": found.is_whole, **asdict(found)})
    else:
        state = "is intact" if found.is_whole else "is not intact"
        print(clean(f"{args.folder} of {found.created} {state}: {_held(found)}"))
        for problem in found.problems:
            print(clean(f"  {problem}"))
    return OK if found.is_whole else FAILED


def _back_up(args: Namespace) -> int:
    done = _backed_up(args)
    if args.json:
        show_json({"folder": str(args.folder), **asdict(done)})
        return FAILED if done.damaged else OK
    print(clean(f"{args.folder} holds {_held(done)}"))
    if done.missing:
        print(f"not included: {counted(done.missing, 'file')}, deleted during the backup")
    if done.damaged:
        print(f"not included: {counted(len(done.damaged), 'damaged file')}; see `belino doctor`")
    if done.secrets:
        print(clean(f"secrets are not copied; keep these separately: {', '.join(done.secrets)}"))
    print(
        "it includes the key: protect it like the state folder"
        if done.has_key
        else "it cannot be restored without its key"
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


def _held(backup: "BackedUp | Verified") -> str:
    return f"{counted(backup.messages, 'message')} and {counted(backup.blobs, 'file')} ({format_size(backup.size)})"


def restore_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that `belino backup` made")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the key, if the backup was made without it")


def run_restore(args: Namespace) -> int:
    from belino.storage.restore import restore

    home = Home.at(args.home)
    try:
        with progress_bar("restore", quiet=args.json) as told:
            done = restore(home, args.folder, now=datetime.now(UTC), key=args.key, progress=told)
    except StoreInUse as error:
        raise StoreError(f"{error}; stop it first, nothing was changed") from None
    except OSError as error:
        raise StoreError(f"the backup could not be restored: {error.strerror}") from None
    if args.json:
        show_json({**asdict(done), "aside": None if done.aside is None else str(done.aside)})
        return OK
    back = f"{counted(done.messages, 'message')}, {counted(done.blobs, 'file')}"
    print(clean(f"restored the state of {done.created}: {back}"))
    if done.lost:
        lost = "One file was" if done.lost == 1 else f"{done.lost} files were"
        print(f"{lost} damaged or missing in the backup; what a platform still has is fetched on request")
    if done.held:
        print(f"held, because it may have been sent since: {counted(done.held, 'answer')}; see `belino outbox`")
    print("logins and tokens are not restored; make new ones with `belino login` and `belino token create`")
    if done.pairings:
        print(f"paired as before: {counted(done.pairings, 'person', 'people')}; see `belino pair`")
    print("the configuration was restored" if done.has_config else "the current configuration was kept")
    if done.secrets:
        print(clean(f"secrets are not part of a backup; put these back into {home.secrets}: {', '.join(done.secrets)}"))
    if done.aside is not None:
        print(clean(f"the previous state is in {done.aside}; delete it when you do not need it"))
    return OK

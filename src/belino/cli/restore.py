"""belino restore DIR: replace this machine's state with a backup; the old state is moved aside."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from belino.cli import OK
from belino.cli.show import clean, counted, progress_bar, show_json
from belino.domain.errors import StoreError, StoreInUse
from belino.storage.home import Home


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
        raise StoreError(f"the backup could not be brought back: {error.strerror}") from None
    if args.json:
        show_json({**asdict(done), "aside": None if done.aside is None else str(done.aside)})
        return OK
    back = f"{counted(done.messages, 'message')}, {counted(done.blobs, 'file')}"
    print(clean(f"the state of {done.created} is back: {back}"))
    if done.lost:
        lost = "One file was" if done.lost == 1 else f"{done.lost} files were"
        print(f"{lost} not whole in the backup; what a platform still has is fetched when asked for")
    if done.held:
        print(f"waiting for you, as it may have been sent since: {counted(done.held, 'answer')}; see `belino outbox`")
    print("logins and tokens do not come back: `belino login`, `belino token create`")
    if done.pairings:
        print(f"paired as before: {counted(done.pairings, 'person', 'people')}; see `belino pair`")
    print("the configuration came with it" if done.has_config else "the configuration that was here stays")
    if done.secrets:
        print(clean(f"secrets are in no backup; put these back into {home.secrets}: {', '.join(done.secrets)}"))
    if done.aside is not None:
        print(clean(f"what was here before lies in {done.aside}; delete it when you do not need it"))
    return OK

"""Repair: belino doctor --repair, salvage a damaged database and report what was kept and lost."""

from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from belino.cli import OK
from belino.cli.show import clean, counted, show_json
from belino.domain.errors import StoreError, StoreInUse
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.domain.audit import Repaired, SalvagedTable


def repair_database(args: Namespace) -> int:
    """Repair the database of the state folder; refused while a gateway runs."""
    from belino.storage.store import repair_store

    try:
        done = repair_store(Home.at(args.home), now=datetime.now(UTC))
    except StoreInUse as error:
        raise StoreError(f"{error}; stop it first, nothing was changed") from None
    except OSError as error:
        raise StoreError(f"the database could not be repaired: {error.strerror}") from None
    if args.json:
        show_json({**asdict(done), "old": None if done.old is None else str(done.old)})
    else:
        _show(done)
    return OK


def _show(done: "Repaired") -> None:
    if not done.was_damaged:
        print("the database is whole; nothing was changed")
        return
    width = max(len(table.name) for table in done.tables)
    for table in done.tables:
        if table.kept or table.lost or table.bad_pages:
            print(f"{table.name:<{width}}  {_told(table)}")
    print("the search index is built again")
    if done.held:
        print(f"waiting for you, as it may have been sent already: {counted(done.held, 'answer')}; see `belino outbox`")
    if done.old is not None:
        print(clean(f"the damaged database is kept as {done.old}; delete it when you do not need it"))


def _told(table: "SalvagedTable") -> str:
    lost = [counted(table.lost, "row")] * bool(table.lost)
    lost += [f"what {counted(table.bad_pages, 'damaged page')} held"] * bool(table.bad_pages)
    kept = f"{counted(table.kept, 'row')} kept"
    return f"{kept}, lost: {' and '.join(lost)}" if lost else kept

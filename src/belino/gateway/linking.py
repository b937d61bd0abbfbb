"""Linking of devices: the codes by which an account's owner links one, held in memory while they are shown."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from belino.delivery.connections import Account
from belino.domain.errors import AdapterError, ConfigError, reason_of
from belino.domain.linking import LinkCode, LinksDevice
from belino.domain.ports import Adapter, Clock

QUIET = 4
"""Modules of white around a QR code, by ISO 18004."""
_HALVES = {("0", "0"): " ", ("1", "0"): "▀", ("0", "1"): "▄", ("1", "1"): "█"}
_BLACK_ON_WHITE, _PLAIN = "\x1b[30;107m", "\x1b[0m"

LinkState = Literal["waiting", "linked", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProgress:
    """How far the linking of a device is."""

    state: LinkState = "waiting"
    code: LinkCode | None = None
    """The code to show now, if one is valid."""
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class _Attempt:
    progress: LinkProgress
    shown: asyncio.Event

    def note(self, progress: LinkProgress) -> None:
        self.progress = progress
        self.shown.set()


class Linking:
    """Links devices, with one attempt at a time for each account."""

    def __init__(
        self, adapters: Mapping[Account, Adapter], clock: Clock, linked: Callable[[Account], Awaitable[None]]
    ) -> None:
        """`linked` is called once a device is linked."""
        self._adapters = adapters
        self._clock = clock
        self._linked = linked
        self._attempts: dict[Account, _Attempt] = {}
        self._wanted: asyncio.Queue[tuple[Account, LinksDevice]] = asyncio.Queue()

    async def run(self) -> None:
        """Carry out what was begun, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._link(*await self._wanted.get()))

    async def begin(self, account: Account) -> LinkProgress:
        """Begin to link a device, or join an attempt under way; returns with the first code, or the failure."""
        attempt = self._attempts.get(account)
        if attempt is None or attempt.progress.state != "waiting":
            adapter = self._adapters.get(account)
            if not isinstance(adapter, LinksDevice) or not await adapter.needs_link():
                raise ConfigError(f"{':'.join(account)} needs no device to be linked; `belino status` shows its state")
            attempt = self._attempts[account] = _Attempt(progress=LinkProgress(), shown=asyncio.Event())
            self._wanted.put_nowait((account, adapter))
        await attempt.shown.wait()
        return self.progress(account)

    def progress(self, account: Account) -> LinkProgress:
        """How far it is; ConfigError if it was not begun."""
        if (attempt := self._attempts.get(account)) is None:
            raise ConfigError(f"no device of {':'.join(account)} is being linked")
        code = attempt.progress.code
        is_over = code is not None and code.until is not None and code.until <= self._clock.now()
        return LinkProgress() if is_over and attempt.progress.state == "waiting" else attempt.progress

    async def _link(self, account: Account, adapter: LinksDevice) -> None:
        attempt = self._attempts[account]
        try:
            async for code in adapter.link():
                attempt.note(LinkProgress(code=code))
        except AdapterError as error:
            attempt.note(LinkProgress(state="failed", reason=reason_of(error)))
        else:
            attempt.note(LinkProgress(state="linked"))
            await self._linked(account)


def qr_rows(text: str, *, quiet: int = QUIET) -> tuple[str, ...]:
    """A QR code, a text of 0 and 1 for each row of its modules; imported only here, it costs 30 ms."""
    import segno

    made = segno.make_qr(text, error="m")
    return tuple("".join(str(module) for module in row) for row in made.matrix_iter(border=quiet))


def in_terminal(rows: tuple[str, ...]) -> str:
    """A QR code for a terminal, black on white whatever its colours, two rows to a line."""
    lines = [_line(top, bottom) for top, bottom in zip(rows[::2], (*rows[1::2], "0" * len(rows[0])), strict=False)]
    return "\n".join(f"{_BLACK_ON_WHITE}{line}{_PLAIN}" for line in lines)


def _line(top: str, bottom: str) -> str:
    return "".join(_HALVES[pair] for pair in zip(top, bottom, strict=True))

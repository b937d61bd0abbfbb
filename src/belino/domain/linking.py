"""Linking: a device of a person's account is linked by codes, which the person scans or types in the platform's app."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCode:
    """A code that links a device: while it is valid it is a password, which is shown and never stored or logged."""

    scan: str = field(default="", repr=False)
    """The text of a QR code; empty if there is none."""
    type_in: str = field(default="", repr=False)
    """A code to type; empty if there is none."""
    until: datetime | None = None
    """Until when it is valid; None if the platform does not say."""


@runtime_checkable
class LinksDevice(Protocol):
    """Works as a linked device of a person's account, which the person has to link once."""

    async def needs_link(self) -> bool:
        """Whether no device is linked, so that `link` can link one."""
        ...

    def link(self) -> AsyncIterator[LinkCode]:
        """Codes until the device is linked, each in place of the one before; AdapterError if that fails."""
        ...

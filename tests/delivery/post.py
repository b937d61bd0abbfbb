"""A house whose platform is one of the three classes of delivery, and outlives every gateway."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from belino.config import AdapterConfig, Config
from belino.delivery.send import DeliveryConfig
from belino.domain.limits import FileLimit, SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.domain.stored import ParcelRecord
from belino.gateway.gateway import Gateway
from belino.testing import MemoryAdapter, MemoryPlatform
from belino.testing.memory import Config as MemoryConfig
from gateway.house import PATIENCE, UNDER_WAY, House

DM = ConversationKey(platform="memory", account="default", channel="dm")


class PostHouse(House):
    """The same as House, with a platform in memory that keeps what it was sent."""

    def __init__(self, path: Path, kind: type[MemoryAdapter] = MemoryAdapter) -> None:
        super().__init__(path)
        self.kind = kind
        self.far_side = MemoryPlatform()
        self.delivery = DeliveryConfig()

    def config(self) -> Config:
        config = super().config()
        options = MemoryConfig(far_side=self.far_side)
        adapters = tuple(replace(account, options=options) for account in config.adapters)
        return replace(config, adapters=adapters, delivery=self.delivery)

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        adapter = self.kind(config.options, desk)
        adapter.limits = replace(adapter.limits, files={SendAs.DOCUMENT: FileLimit(max_bytes=10_000_000_000)})
        return adapter

    @property
    def shown(self) -> list[str]:
        """What people see, in order: words, or the names of files."""
        return [one.text or ", ".join(file.name for file in one.files) for one in self.far_side.sent.values()]

    async def at_rest(self, gateway: Gateway, *, step: float = 5.0) -> tuple[ParcelRecord, ...]:
        """Let time pass until no parcel is on its way; all of them, oldest first."""
        async with asyncio.timeout(PATIENCE):
            while True:
                parcels = await gateway.store.parcels()
                if parcels and not any(parcel.state in UNDER_WAY for parcel in parcels):
                    return parcels[::-1]
                # Through the writer, so that time does not fly while a claim waits for the disk.
                await gateway.store.note("")
                await self.clock.advance(step)

    async def send(self, gateway: Gateway, *parcels: Parcel) -> None:
        """Put parcels into the outbox that no turn made."""
        await gateway.store.put_parcels(parcels)
        gateway._sender.wake(DM)


def words(key: str, text: str = "words") -> Parcel:
    return Parcel(key=key, conversation=DM, text=text, trace="t")


async def file_parcel(gateway: Gateway, key: str, name: str = "report.pdf", size: int = 6) -> Parcel:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * size

    blob = await gateway.store.keep(chunks(), mime="application/pdf", limit=size)
    file = OutgoingFile(name=name, mime="application/pdf", size=size, sha256=blob.sha256)
    return Parcel(key=key, conversation=DM, kind=ParcelKind.FILES, files=(file,), trace="t")

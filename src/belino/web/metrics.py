"""Metrics for Prometheus, read from the store and the gateway on request."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from belino.domain.outcome import CacheSize
from belino.gateway.health import AdapterHealth
from belino.gateway.savings import Savings, savings
from belino.web.request_context import RouteCall

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_CACHES = {
    "entries": "How many entries a cache holds.",
    "bytes": "About how many bytes a cache holds.",
    "most_bytes": "About how many bytes a cache may hold.",
}
_SAVED = {
    "media": "Media received, by channel.",
    "fetched": "Media whose bytes were fetched, by channel.",
    "bytes_not_spent": "Bytes of media that were not fetched, by channel.",
    "tokens_not_spent": "Tokens that showing them to a model would have cost, by channel.",
}


async def show_metrics(call: RouteCall) -> Response:
    """The Prometheus text format. The library is imported on first use."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    gateway = call.site.gateway
    held = await call.store.counts()
    saved = {str(tally.channel): savings(tally) for tally in await call.store.media_tallies()}
    happened = gateway.counters.as_mapping()
    uptime = (gateway.clock.now() - gateway.started).total_seconds()

    class Numbers:
        def collect(self) -> "Iterable[Metric]":
            yield from _metrics(held, happened, uptime)
            yield _accounts(gateway.health())
            yield from _caches(gateway.cache_sizes())
            yield from _process()
            yield from _savings(saved)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Numbers())
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _metrics(held: Mapping[str, int], happened: Mapping[str, Mapping[str, int]], uptime: float) -> "Iterable[Metric]":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    yield GaugeMetricFamily("belino_uptime_seconds", "Seconds since the gateway started.", value=uptime)
    rows = GaugeMetricFamily("belino_store", "What the store holds, by kind.", labels=["what"])
    for what, number in sorted(held.items()):
        rows.add_metric([what], number)
    yield rows
    for what, outcomes in sorted(happened.items()):
        family = CounterMetricFamily(f"belino_{what}", "Since the gateway started, by outcome.", labels=["outcome"])
        for outcome, number in sorted(outcomes.items()):
            family.add_metric([outcome], number)
        yield family


def _accounts(accounts: Mapping[tuple[str, str], AdapterHealth]) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily("belino_account_works", "1 if an account works, else 0.", labels=["account"])
    for account, health in sorted(accounts.items(), key=lambda pair: pair[0]):
        family.add_metric([":".join(account)], int(health.works))
    return family


def _caches(sizes: Mapping[str, CacheSize]) -> "Iterable[Metric]":
    from prometheus_client.core import GaugeMetricFamily

    for metric, says in _CACHES.items():
        family = GaugeMetricFamily(f"belino_cache_{metric}", says, labels=["cache"])
        for cache, size in sorted(sizes.items()):
            family.add_metric([cache], getattr(size, metric))
        yield family


def _process() -> "Iterable[Metric]":
    """Memory and descriptors, where the system reports them."""
    from prometheus_client.core import GaugeMetricFamily

    status, handles = Path("/proc/self/statm"), Path("/proc/self/fd")
    if status.exists():
        held = int(status.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        yield GaugeMetricFamily("belino_process_resident_bytes", "Memory that the gateway holds.", value=held)
    if handles.exists():
        count = len(os.listdir(handles))  # noqa: PTH208 - only counted
        yield GaugeMetricFamily("belino_process_open_descriptors", "Files and sockets that are open.", value=count)


def _savings(saved: Mapping[str, Savings]) -> "Iterable[Metric]":
    """By channel; totals can be summed."""
    from prometheus_client.core import GaugeMetricFamily

    for number, says in _SAVED.items():
        family = GaugeMetricFamily(f"belino_{number}", says, labels=["channel"])
        for channel, each in saved.items():
            family.add_metric([channel], getattr(each, number))
        yield family

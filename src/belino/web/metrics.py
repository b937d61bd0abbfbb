"""Numbers for Prometheus, read from the store and the gateway when they are asked for."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from belino.gateway.savings import Savings, savings
from belino.web.site import Call

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_SAVED = {
    "media": "Media that came, by channel.",
    "fetched": "Media whose bytes somebody asked for, by channel.",
    "bytes_not_spent": "Bytes of media that nobody asked for, by channel.",
    "tokens_not_spent": "Tokens that showing it all to a model would have cost, by channel.",
}


async def show_metrics(call: Call) -> Response:
    """The Prometheus text format. The library is loaded by the first who asks."""
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


def _savings(saved: Mapping[str, Savings]) -> "Iterable[Metric]":
    """By channel, so that anybody can add them up."""
    from prometheus_client.core import GaugeMetricFamily

    for number, says in _SAVED.items():
        family = GaugeMetricFamily(f"belino_{number}", says, labels=["channel"])
        for channel, each in saved.items():
            family.add_metric([channel], getattr(each, number))
        yield family

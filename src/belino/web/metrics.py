"""Numbers for Prometheus, read from the store and the gateway when they are asked for."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

from belino.web.site import Call

if TYPE_CHECKING:
    from prometheus_client.core import Metric


async def show_metrics(call: Call) -> Response:
    """The Prometheus text format. The library is loaded by the first who asks."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    gateway = call.site.gateway
    held = await call.store.counts()
    happened = gateway.counters.as_mapping()
    uptime = (gateway.clock.now() - gateway.started).total_seconds()

    class Numbers:
        def collect(self) -> "Iterable[Metric]":
            return _metrics(held, happened, uptime)

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

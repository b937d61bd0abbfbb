"""Counters of what happened since the start, by outcome, for metrics."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts by outcome; the outcomes are a closed set, so the number of metrics is bounded."""

    arrivals: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    parcels: Counter[str] = field(default_factory=Counter)
    media: Counter[str] = field(default_factory=Counter)
    adapter_restarts: Counter[str] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    """Cache hits and misses of media bytes in memory."""
    unhandled: Counter[str] = field(default_factory=Counter)
    """Unhandled exceptions of tasks and callbacks, by type."""
    history: Counter[str] = field(default_factory=Counter)
    """History calls, what they waited for, and how often none was needed."""

    def as_mapping(self) -> Mapping[str, Mapping[str, int]]:
        """Every count, by what is counted and its outcome."""
        return {
            "arrivals": dict(self.arrivals),
            "turns": dict(self.turns),
            "parcels": dict(self.parcels),
            "media": dict(self.media),
            "adapter_restarts": dict(self.adapter_restarts),
            "memory": dict(self.memory),
            "history": dict(self.history),
            "unhandled_exceptions": dict(self.unhandled),
        }

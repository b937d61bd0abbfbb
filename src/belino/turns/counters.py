"""Counters of what happened since the start, by outcome, for metrics."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counts by outcome; every outcome is of a closed set, so the numbers stay few."""

    arrivals: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    parcels: Counter[str] = field(default_factory=Counter)
    media: Counter[str] = field(default_factory=Counter)
    adapter_restarts: Counter[str] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    """How often the bytes of media were found in memory, and how often not."""
    unhandled: Counter[str] = field(default_factory=Counter)
    """Exceptions of tasks and callbacks that no one waited for, by type."""
    history: Counter[str] = field(default_factory=Counter)
    """Calls for what was said before, what they waited for, and how often none was needed."""

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

"""Backup config: when scheduled backups are made, where, and how many are kept."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from belino.domain.errors import ConfigError
from belino.domain.units import parse_duration

LEAST = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupConfig:
    """How often the gateway makes a backup, where, and how many are kept."""

    every: str = field(
        default="", metadata={"says": "How often the gateway makes a backup, like `24h` or `7d`; empty means never."}
    )
    keep: int = field(default=7, metadata={"says": "How many of these backups are kept.", "least": 1, "most": 10_000})
    to: Path | None = field(
        default=None,
        metadata={
            "says": "The folder they are written to, each under the time it was made. "
            "A relative path begins at the state folder; it must lead out of it."
        },
    )

    def __post_init__(self) -> None:
        try:
            too_often = bool(self.every) and parse_duration(self.every) < LEAST
        except ValueError as error:
            raise ConfigError(f"every: {error}") from None
        if too_often:
            raise ConfigError(f"every must be at least 1m, not {self.every}")
        if self.every and self.to is None:
            raise ConfigError("to is missing: name the folder that backups are written to, outside the state folder")

    @property
    def interval(self) -> timedelta | None:
        """The time between backups; None if there are none."""
        return parse_duration(self.every) if self.every else None

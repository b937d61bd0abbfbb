"""Every test of this room ends with the accounting check."""

from auditing import accounts_balance

__all__ = ["accounts_balance"]

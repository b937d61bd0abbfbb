"""What the tests of turns start from: the gateway's house."""

from gateway.conftest import house

__all__ = ["house"]

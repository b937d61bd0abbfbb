"""Prices of answers by the bundled list of genai-prices; no request is made."""

from dataclasses import dataclass

from belino.domain.turn import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentTokens:
    """The tokens of an answer as the provider counts them."""

    input_tokens: int = 0
    """All of them, with those from and to the cache."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    is_known: bool = True


class Prices:
    """The prices of one provider."""

    def __init__(self, provider: str, url: str) -> None:
        self._provider = provider
        self._url = url

    def load(self) -> None:
        """Load the list, which the first price does; without the package no cost is known."""
        self._cost(SpentTokens(), "")

    def usage(self, spent: SpentTokens, model: str) -> Usage:
        """The tokens of an answer, and what it costs."""
        return Usage(
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cost_usd=self._cost(spent, model) if spent.is_known else None,
            model=model,
        )

    def _cost(self, spent: SpentTokens, model: str) -> float | None:
        try:
            import genai_prices
        except ImportError:
            return None
        usage = genai_prices.Usage(
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cache_read_tokens=spent.cache_read_tokens or None,
            cache_write_tokens=spent.cache_write_tokens or None,
        )
        try:
            # The prices of a proxy, if the list has them; else those of the provider.
            return float(genai_prices.calc_price(usage, model, provider_api_url=self._url).total_price)
        except LookupError:
            pass
        except ValueError:
            return None
        try:
            return float(genai_prices.calc_price(usage, model, provider_id=self._provider).total_price)
        except (LookupError, ValueError):
            return None

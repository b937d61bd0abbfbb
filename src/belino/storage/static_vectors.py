"""Static vectors of texts, by which results of a search are re-ranked where that is configured.

They are from the files of the package wordllama, which are read without its code: that configures the log of the whole
process and can download.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from belino.domain.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE, EXTRA = "wordllama", "rerank"
MODEL = "l2_supercat"
DIMENSIONS = 256
"""Numbers of a vector, and its bytes."""
TEXT_CHARS = 2_000
"""Of a longer text, the beginning counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """How searches order what they find."""

    rerank: Literal["off", "static"] = field(
        default="off",
        metadata={
            "says": "`static` moves messages that say the same in other words up, by word vectors for English; "
            f"it needs `pip install 'belino[{EXTRA}]'`."
        },
    )

    def __post_init__(self) -> None:
        if self.rerank == "static" and find_spec(PACKAGE) is None:
            raise ConfigError(
                f'rerank = "static" needs {PACKAGE}, which is not installed here; '
                f"install it with `pip install 'belino[{EXTRA}]'`, or set rerank to \"off\""
            )

    @property
    def vectors(self) -> "StaticVectors | None":
        """The vectors to re-rank by, not loaded yet; None if results keep their order."""
        return StaticVectors() if self.rerank == "static" else None


class StaticVectors:
    """A vector for each text: the mean of the vectors of its tokens, as bytes. The model is loaded on first use."""

    def __init__(self) -> None:
        self._loading = Lock()

    def of(self, text: str) -> bytes:
        """The vector of a text, whatever was asked before; all 0 if it has no tokens."""
        import numpy

        tokenizer, weights = self._loaded()
        said = text[:TEXT_CHARS].encode("utf-8", "replace").decode()
        tokens = tokenizer.encode(said, add_special_tokens=False).ids
        if not tokens:
            return bytes(DIMENSIONS)
        total = weights[tokens].sum(axis=0, dtype=numpy.float32)
        largest = abs(total).max() or 1.0
        return bytes(numpy.rint(total * (127 / largest)).astype(numpy.int8).tobytes())

    def similarities(self, question: bytes, others: Sequence[bytes]) -> list[float]:
        """The cosine of one vector and each of others, exact to the bit on every machine."""
        import numpy

        asked = numpy.frombuffer(question, numpy.int8).astype(numpy.int32)
        rows = numpy.frombuffer(b"".join(others), numpy.int8).astype(numpy.int32).reshape(-1, DIMENSIONS)
        lengths = numpy.sqrt((rows * rows).sum(axis=1) * float((asked * asked).sum()))
        lengths[lengths == 0] = 1.0
        return [float(one) for one in (rows @ asked) / lengths]

    def _loaded(self) -> "tuple[Tokenizer, Any]":
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> "tuple[Tokenizer, Any]":
        from safetensors import safe_open
        from tokenizers import Tokenizer

        found = find_spec(PACKAGE)
        assert found is not None and found.origin is not None, "the configuration was checked"
        folder = Path(found.origin).parent
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / f"{MODEL}_tokenizer_config.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        with safe_open(folder / "weights" / f"{MODEL}_{DIMENSIONS}.safetensors", framework="np") as weights:
            return tokenizer, weights.get_tensor("embedding.weight")

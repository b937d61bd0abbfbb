"""Everything that weighs in when messages are ranked for an intent, in one place, each with its reason.

Scores are in units of BM25: a rare word found once is worth about its idf, some 3 to 8.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each piece of evidence counts."""

    candidates: int = 120
    """Messages scored closely. A hundred lose nothing against all of them; neighbours bring some more."""
    postings: int = 12_000
    """Entries of the index read for one question. Rarest words first: what is left out says little."""
    vague: float = 0.75
    """A word that asks for a sort of answer ("what kind of…") rather than being in it."""
    name: float = 0.25
    """An author's name as a word: whoever speaks of Ann is rarely Ann, who was asked about."""
    author: float = 3.0
    """Said by the author the question names: as good as half a rare word."""
    wanted: float = 3.0
    """Said by an author the caller asked for."""
    pair: float = 1.0
    """Two words of the question side by side, in units of their mean idf."""
    coverage: float = 0.6
    """All of the question's words together are worth more than one of them often."""
    beside: float = 0.1
    """What the message before or after it scores: people split a thought over messages."""
    near: float = 0.2
    """The same two away: in a dialogue that is the same speaker again."""
    answer: float = 0.6
    """What the question scores that this message answers: answers do not repeat its words."""
    topic: float = 0.8
    """What its thread or session scores as a whole."""
    question: float = 0.8
    """A message that only asks is rarely what was asked for."""
    dated: float = 3.0
    """Said on a day the question names."""
    recent: float = 0.05
    """The newest of two equals, by this share at most."""


WEIGHTS = Weights()

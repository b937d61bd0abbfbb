"""Everything that weighs in when messages are ranked for an intent, in one place, each with its reason.

Scores add up in units of BM25: a rare word found once is worth about its idf, some 3 to 8. The figures come from
conversations between two and many people, each tried on those it was not taken from, and rounded where it is flat.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each piece of evidence counts."""

    # How much is looked at.
    postings: int = 3_000
    """Entries of the index read for one question. Rarest words first: what is left out says little."""
    topic_postings: int = 1_500
    """Of these for what threads and sessions are about: common words tell nothing of that."""
    candidates: int = 40
    """Messages found by words that are looked at closely; more of them change nothing on a page."""
    surrounded: int = 20
    """How many of them, best first, bring along the two messages before and after."""
    kin_candidates: int = 10
    """Messages that have only kindred words."""
    latest: int = 12
    """The newest messages are always looked at."""
    kept: int = 200
    """Messages that can be paged through."""
    documents: int = 40
    """Documents of which a part has words of the question, best first."""

    # The message's own words.
    vague: float = 0.75
    """A word that frames the question ("what kind of…", "did she mention…") rather than being in its answer."""
    name: float = 0.1
    """An author's name as a word: whoever says "Ann" is rarely Ann, who was asked about."""
    coverage: float = 16.0
    """All of the question's words together are worth more than one of them often."""
    phrase: float = 25.0
    """What was put in quotation marks, word for word: it decides."""
    rare: int = 10
    """Kindred words are looked for where the word itself was said fewer times: others have found their message."""
    derived: float = 2.0
    """Another word of the same root: who asks about a decision wants to hear what was decided."""
    alike: float = 1.0
    """A word that is often said instead. As much as the word itself, because it is not in the coverage."""

    # Who said it and when.
    author: float = 4.0
    """Said by somebody the question names."""
    wanted: float = 5.0
    """Said by somebody the caller asks for."""
    dated: float = 20.0
    """Said on a day the question names: hardly anything outweighs it."""
    recent: float = 6.0
    """The newest message; a few find it less. Decides only where words say little."""
    recent_half: float = 6.0
    """So many messages later that is half."""

    # What is around it.
    answers: float = 2.0
    """It follows somebody else's question: it is likely to tell something."""
    answer: float = 0.9
    """What the question scores that it answers: answers do not repeat its words."""
    led_by: float = 0.4
    """Words of the question that are not in it but in the message before."""
    window: float = 0.6
    """The same within two messages before and after."""
    two_before: float = 0.6
    """What the message two before scores: in a dialogue that is the same speaker, going on."""
    after: float = 0.25
    two_after: float = 0.1
    """What follows tells less than what led there."""
    topic: float = 0.75
    """What its thread or session says of the question as a whole."""

    # What sort of message it is.
    question: float = -2.7
    """A message that asks is rarely what was asked for."""
    informative: float = 2.0
    """It names something: a place, a person, a title."""
    time_asked: float = 12.0
    """It speaks of a time, and the question is when."""
    number_asked: float = 7.0
    """It has a number, and the question is how many."""
    name_asked: float = 7.5
    """It names something, and the question is who, or which, or what it is called."""


WEIGHTS = Weights()

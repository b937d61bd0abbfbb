"""Weights of the evidence by which messages are ranked, each with its reason.

Scores add up in units of BM25: a rare word found once is worth about its idf, 3 to 8. The values were fitted to
conversations of two and of many people, cross-validated, and rounded where the optimum is flat.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each kind of evidence, and the limits of the search."""

    # Limits.
    postings: int = 3_000
    """Postings read for one query, rarest words first: the rest adds little."""
    topic_postings: int = 1_500
    """Of these for the topics of threads and sessions: common words are no topic."""
    candidates: int = 40
    """Messages found by words that are scored in full; more of them do not change a page."""
    surrounded: int = 20
    """How many of them, best first, add the two messages before and after."""
    synonym_candidates: int = 10
    """Messages that have only synonyms or derived words."""
    latest: int = 12
    """Newest messages that are always scored."""
    kept: int = 200
    """Messages on all pages."""
    documents: int = 40
    """Documents that are searched for their best part."""

    # The message's own words.
    vague: float = 0.75
    """A word that frames the question ("what kind of…", "did she mention…") and is rarely in its answer."""
    name: float = 0.1
    """An author's name as a word: a message that says "Ann" is rarely by Ann, who was asked about."""
    coverage: float = 16.0
    """All words of the query together count more than one of them many times."""
    phrase: float = 25.0
    """A phrase in quotation marks, word for word: it decides."""
    rare: int = 10
    """Synonyms and derived words are used if the word itself is in fewer messages."""
    derived: float = 2.0
    """Another word of the same root: a query for a decision looks for what was decided."""
    synonym: float = 1.0
    """As much as the word itself, because it is not part of the coverage."""

    # Author and time.
    author: float = 4.0
    """The query names its author."""
    wanted: float = 5.0
    """The caller asks for its author."""
    dated: float = 20.0
    """Sent on a day that the query names: hardly anything outweighs it."""
    recent: float = 6.0
    """The newest message. Decides only where words say little."""
    recent_half: float = 6.0
    """After this many messages it is half."""

    # Its neighbours.
    answers: float = 2.0
    """It follows a question of another author: it is likely to be informative."""
    answer: float = 0.9
    """The share of the score of the question that it answers: answers do not repeat its words."""
    led_by: float = 0.4
    """Words of the query that are not in it but in the message before."""
    window: float = 0.6
    """The same within two messages before and after."""
    two_before: float = 0.6
    """The share of the score of the message two before: in a dialogue that is the same author."""
    after: float = 0.25
    two_after: float = 0.1
    """Messages after it say less about it than those before."""
    topic: float = 0.75
    """What its thread or session scores as a whole."""

    # Its kind.
    question: float = -2.7
    """A question is rarely what is searched for."""
    informative: float = 2.0
    """It names something: a place, a person, a title."""
    time_asked: float = 12.0
    """It names a time, and the query asks when."""
    number_asked: float = 7.0
    """It has a number, and the query asks how many."""
    name_asked: float = 7.5
    """It names something, and the query asks who, which, or for a name."""


WEIGHTS = Weights()

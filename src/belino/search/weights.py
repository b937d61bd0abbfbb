"""Weights: the one table of tuned constants of the search, each with its unit, the corpora it was fitted on, and why.

Scores add up in units of BM25: a rare word found once is worth about its idf, 3 to 8. Values are rounded where the
optimum is flat. `belino bench search --corpus FOLDER` cross-validates them: fitted on all corpora but one, and judged
on that one.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

LOCOMO: Final = "LoCoMo"
"""Two people who talk for months; questions about what they said."""
QMSUM: Final = "QMSum"
"""Transcripts of meetings; questions about what was discussed."""
ZULIP: Final = "Zulip"
"""Threads of many people; titles of threads."""
IRC: Final = "IRC"
"""Many people in one channel without threads; which message another one answers."""


class WeightUnit(StrEnum):
    """What a constant counts."""

    SCORE = "points of the score"
    SHARE = "share"
    """Of a score, a weight or a size."""
    EXPONENT = "exponent"
    SATURATION = "repetitions"
    MESSAGES = "messages"
    TERMS = "terms"
    POSTINGS = "postings"
    DOCUMENTS = "documents"
    HALVINGS = "halvings of the rank"


def tuned(value: float, unit: WeightUnit, *fitted_on: str) -> Any:
    """A constant of the table. One that is fitted on no corpus is set by reason, or is a limit."""
    return field(default=value, metadata={"unit": unit, "fitted_on": fitted_on})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each kind of evidence, and the limits of the search."""

    # Limits.
    postings: int = tuned(3_000, WeightUnit.POSTINGS)
    """Postings read for one query, rarest words first: the rest adds little."""
    topic_postings: int = tuned(1_500, WeightUnit.POSTINGS)
    """Of these for the topics of threads and sessions: common words are no topic."""
    candidates: int = tuned(40, WeightUnit.MESSAGES, LOCOMO)
    """Messages found by words that are scored in full; more of them do not change a page."""
    surrounded: int = tuned(12, WeightUnit.MESSAGES, LOCOMO)
    """How many of them, best first, add the messages around them."""
    led: int = tuned(1, WeightUnit.MESSAGES, LOCOMO)
    followed: int = tuned(3, WeightUnit.MESSAGES, LOCOMO)
    """How many messages before and after: an answer may come in several."""
    synonym_candidates: int = tuned(10, WeightUnit.MESSAGES, LOCOMO)
    """Messages that have only synonyms or derived words."""
    latest: int = tuned(12, WeightUnit.MESSAGES)
    """Newest messages that are always scored."""
    kept: int = tuned(200, WeightUnit.MESSAGES)
    """Messages on all pages."""
    documents: int = tuned(40, WeightUnit.DOCUMENTS)
    """Documents that are searched for their best part."""

    # The index: another value needs another `FORMAT` of segments.
    k1: float = tuned(1.2, WeightUnit.SATURATION, LOCOMO)
    """BM25: how soon repeating a word counts no more."""
    b: float = tuned(0.3, WeightUnit.SHARE, LOCOMO, QMSUM)
    """BM25: how much a long message must repeat a word more often. Messages are short: little."""
    usual_terms: float = tuned(10.0, WeightUnit.TERMS)
    """Terms of an average message. A constant, so that an impact does not depend on how segments were merged."""
    usual_part_terms: float = tuned(200.0, WeightUnit.TERMS)
    """The same of a part of a document."""
    caption: float = tuned(0.8, WeightUnit.SHARE, LOCOMO)
    """A word in a caption or file name, relative to one in the text."""

    # The message's own words.
    vague: float = tuned(0.75, WeightUnit.SHARE, LOCOMO, QMSUM)
    """A word that frames the question ("what kind of…", "did she mention…") and is rarely in its answer."""
    reporting: float = tuned(0.3, WeightUnit.SHARE, LOCOMO, QMSUM)
    """A word that reports what people say ("summarize what the group discussed"): it is about the conversation."""
    name: float = tuned(0.1, WeightUnit.SHARE, LOCOMO)
    """An author's name as a word: a message that says "Ann" is rarely by Ann, who was asked about. So are the words of
    a date: the messages of that day are found by the day."""
    least_total: float = tuned(4.0, WeightUnit.SCORE)
    """The weight that words must have to cover a message, where they only name people or days, or frame a question."""
    coverage: float = tuned(12.0, WeightUnit.SCORE, LOCOMO, QMSUM)
    """All words of the query together count more than one of them many times."""
    body: float = tuned(0.8, WeightUnit.SHARE)
    """The share of what the words inside a document count: a long text has most words somewhere."""
    named: float = tuned(8.0, WeightUnit.SCORE)
    """All words of the query in the name, the caption or the message of a file, where files were read: they say what it
    is about."""
    pair: float = tuned(0.75, WeightUnit.SHARE, LOCOMO, ZULIP)
    """Two words that follow one another in the query and in the message, as a share of their weight."""
    phrase: float = tuned(25.0, WeightUnit.SCORE)
    """A phrase in quotation marks, word for word: it decides."""
    rare: int = tuned(10, WeightUnit.MESSAGES, LOCOMO)
    """Synonyms and derived words are used if the word itself is in fewer messages."""
    derived: float = tuned(2.0, WeightUnit.SHARE, LOCOMO)
    """Another word of the same root: a query for a decision looks for what was decided."""
    alike: float = tuned(0.5, WeightUnit.SHARE)
    """How much of their trigrams words share at least, for one to stand for another that the channel does not have.
    Words of four and five letters share more."""
    compound: float = tuned(0.7, WeightUnit.SHARE)
    """A compound that begins or ends with the word."""
    part: float = tuned(0.8, WeightUnit.SHARE)
    """A part of the word, if that is a compound that the channel does not have."""
    synonym: float = tuned(1.0, WeightUnit.SHARE, LOCOMO)
    """As much as the word itself, because it is not part of the coverage."""

    # Author and time.
    author: float = tuned(5.0, WeightUnit.SCORE, LOCOMO, QMSUM, IRC)
    """The query names its author."""
    wanted: float = tuned(5.0, WeightUnit.SCORE)
    """The caller asks for its author."""
    dated: float = tuned(18.0, WeightUnit.SCORE, LOCOMO)
    """Sent on a day that the query names: hardly anything outweighs it."""
    dated_share: float = tuned(0.05, WeightUnit.SHARE)
    """A time that more than this share of the messages is from counts less."""
    names_day: float = tuned(18.0, WeightUnit.SCORE, LOCOMO)
    """It names a day that the query names: as good as sent then."""
    alias_votes: int = tuned(2, WeightUnit.MESSAGES)
    alias_share: float = tuned(0.6, WeightUnit.SHARE)
    """How many messages that address a name one person answers, and which share of them, for the name to be theirs."""
    of_author: int = tuned(20, WeightUnit.MESSAGES)
    """Newest messages of a person whom the query names, which are candidates if it names nothing else."""
    recent: float = tuned(4.0, WeightUnit.SCORE, IRC)
    """The newest message. Decides only where words say little."""
    recent_half: float = tuned(6.0, WeightUnit.MESSAGES, IRC)
    """After this many messages it is half."""

    # Its neighbours.
    answers: float = tuned(1.0, WeightUnit.SCORE, LOCOMO, QMSUM)
    """It follows a question of another author: it is likely to be informative."""
    answer: float = tuned(1.1, WeightUnit.SHARE, LOCOMO, QMSUM)
    """The share of the score of the question that it answers: answers do not repeat its words."""
    window: float = tuned(0.7, WeightUnit.SHARE, LOCOMO, QMSUM, IRC)
    """Words of the query that are not in it but within two turns before and after."""
    two_before: float = tuned(0.6, WeightUnit.SHARE, LOCOMO)
    """The share of the score of the turn two before: in a dialogue that is the same author."""
    after: float = tuned(0.25, WeightUnit.SHARE, LOCOMO)
    two_after: float = tuned(0.1, WeightUnit.SHARE, LOCOMO)
    """Messages after it say less about it than those before."""
    lead: float = tuned(1.0, WeightUnit.SHARE, ZULIP)
    """The share of the score of its thread's first message: it says what the thread is about."""
    crowd: float = tuned(2.0, WeightUnit.EXPONENT, LOCOMO, QMSUM, ZULIP)
    """How quickly neighbours count less the more people talk: the exponent of 2 / people."""
    least_dialogue: float = tuned(0.05, WeightUnit.SHARE)
    """A share of neighbours' evidence below which they are not looked at."""
    slight: float = tuned(1.0, WeightUnit.TERMS, LOCOMO, QMSUM)
    """A message of this many terms counts half of what its neighbours say."""
    topic: float = tuned(0.6, WeightUnit.SHARE, LOCOMO, QMSUM, ZULIP)
    """What its thread or session scores as a whole."""
    same_thread: float = tuned(0.5, WeightUnit.SHARE, ZULIP)
    """The share of its score that a message keeps if a better one of the same thread is found."""
    topic_k1: float = tuned(1.2, WeightUnit.SATURATION, ZULIP)
    topic_b: float = tuned(0.5, WeightUnit.SHARE, ZULIP)
    """BM25 of a thread or session: saturation of repeated words, and how much a long one must repeat them more."""

    # Near a message that the caller names.
    near_before: int = tuned(60, WeightUnit.MESSAGES, IRC)
    near_after: int = tuned(12, WeightUnit.MESSAGES, IRC)
    """Messages before and after it that are candidates."""
    near: float = tuned(20.0, WeightUnit.SCORE, IRC)
    """The message before it."""
    near_half: float = tuned(6.0, WeightUnit.MESSAGES, IRC)
    """After this many messages it is half."""
    addressed: float = tuned(10.0, WeightUnit.SCORE, IRC)
    """Its author is addressed in the message."""
    addresses: float = tuned(6.0, WeightUnit.SCORE, IRC)
    """It addresses the author of the message."""
    near_own: float = tuned(-2.0, WeightUnit.SCORE, IRC)
    """It is by the same author."""
    near_thread: float = tuned(4.0, WeightUnit.SCORE, IRC)
    """It is of the same thread or session."""

    # Its kind.
    question: float = tuned(-2.5, WeightUnit.SCORE, LOCOMO)
    """A question is rarely what is searched for."""
    informative: float = tuned(0.5, WeightUnit.SCORE, LOCOMO)
    """It names something: a place, a person, a title."""
    time_asked: float = tuned(8.0, WeightUnit.SCORE, LOCOMO)
    """It names a time, and the query asks when."""
    number_asked: float = tuned(5.0, WeightUnit.SCORE, LOCOMO)
    """It has a number, and the query asks how many."""
    name_asked: float = tuned(4.0, WeightUnit.SCORE, LOCOMO)
    """It names something, and the query asks who, which, or for a name."""

    # Re-ranking, where it is configured.
    similarity: float = tuned(0.5, WeightUnit.HALVINGS)
    """Similarity to the query of one deviation above the mean of the best; twice that loses where words are right."""


WEIGHTS = Weights()
_IN_INDEX = ("k1", "b", "usual_terms", "usual_part_terms", "caption")
FITTED = tuple(
    one.name
    for one in fields(Weights)
    if one.metadata["unit"] in (WeightUnit.SCORE, WeightUnit.SHARE)
    and {LOCOMO, QMSUM, ZULIP}.intersection(one.metadata["fitted_on"])
    and one.name not in _IN_INDEX
)
"""The weights that searches are fitted by: neither limits, nor parts of the index, nor nearness to a message."""

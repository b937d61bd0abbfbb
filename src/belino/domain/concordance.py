"""The word index of one channel, as those who rank its messages see it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from belino.domain.context import ThreadSummary
from belino.domain.stored import StoredMessage

NOBODY = 0xFFFFFFFF
"""In `before` and `after`: there is none."""


class Mark:
    """What is known of a message without reading it, as bits of a number; an enum would cost half of a search."""

    QUESTION = 1
    MEDIA = 2
    GONE = 4
    NUMBER = 8
    AGENT = 16
    TIME = 32
    NAME = 64
    """It names something, by a capital inside a sentence."""
    BLANK = 128
    """There is nothing to find in it: no words, no media."""


class Bearer(NamedTuple):
    """A message of the channel and the ref by which it brought a document."""

    seq: int
    ref: str


class Passage(NamedTuple):
    """A part of a document that was read, and a word's impact on it in hundredths."""

    document: int
    number: int
    impact: int


class Occurrences(Protocol):
    """Parts that have a term: counted at once, told one by one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Passage]: ...


class Passages(Protocol):
    """The channel's documents that were read, part by part."""

    def __len__(self) -> int:
        """Parts in all."""
        ...

    @property
    def languages(self) -> Collection[str]: ...

    def find(self, numbers: Sequence[int]) -> Occurrences:
        """The parts that have any of these terms, once for each."""
        ...

    def bearers(self, document: int) -> Sequence[Bearer]:
        """Who brought a document, oldest first."""
        ...

    def unit(self, document: int) -> str:
        """What its parts are."""
        ...

    def text(self, document: int, number: int) -> str: ...


class Records(Protocol):
    """The channel's messages themselves, in the same view of the store that its index was brought up to."""

    def numbered(self, seqs: Sequence[int]) -> tuple[StoredMessage, ...]:
        """Those of these seqs that the channel has, oldest first."""
        ...

    def thread_summaries(self, roots: Sequence[str]) -> Mapping[str, ThreadSummary]:
        """The threads under these messages, without those that nobody replied to."""
        ...


class Concordance(Protocol):
    """Messages by their place, oldest first, and the terms they are found by. Whoever is given one only reads it."""

    @property
    def seqs(self) -> Sequence[int]: ...

    @property
    def sents(self) -> Sequence[int]:
        """Microseconds."""
        ...

    @property
    def in_time(self) -> bool:
        """Whether no message was sent before the one in front of it."""
        ...

    @property
    def authors(self) -> Sequence[int]:
        """Places in `names`."""
        ...

    @property
    def flags(self) -> Sequence[int]: ...

    @property
    def gone(self) -> Sequence[int]:
        """The places of messages that were deleted, in order."""
        ...

    @property
    def groups(self) -> Sequence[int]:
        """Messages of one thread, or of one session without a long silence, share a number."""
        ...

    @property
    def threads(self) -> Mapping[int, int]:
        """The groups of the threads that messages began, by the places of these."""
        ...

    @property
    def before(self) -> Sequence[int]:
        """The place of what was said before in the same thread or session."""
        ...

    @property
    def after(self) -> Sequence[int]: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def ids(self) -> Sequence[str]:
        """The platform's ids of the people in `names`."""
        ...

    @property
    def called(self) -> Mapping[str, Collection[int]]:
        """The places in `names` of everybody who is or was called by a word, as `name_parts` writes it."""
        ...

    def __len__(self) -> int: ...

    @property
    def languages(self) -> Collection[str]:
        """Those the messages are in."""
        ...

    @property
    def passages(self) -> Passages: ...

    @property
    def records(self) -> Records: ...

    def number(self, term: str) -> int:
        """What a term is kept as."""
        ...

    def postings(self, number: int) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """The messages with a term: what to add to each place, the places, and its impact in hundredths."""
        ...

    def terms(self, place: int) -> Sequence[int]:
        """A message's terms in order."""
        ...

"""Match reason: why a message was found, as one short label."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from belino.domain.search import SearchIntent
from belino.domain.stored import StoredMessage
from belino.search.query import MatchedWord
from belino.search.ranking import Ranking
from belino.search.tokenizer import fold, tokenize, written_words


@dataclass(frozen=True, slots=True)
class MatchReasons:
    """The reasons of the messages that one intent found."""

    intent: SearchIntent
    ranking: Ranking
    number: Callable[[str], int]
    """The keyed hash of a term."""

    def of(self, message: StoredMessage) -> str:
        """The strongest reason that is visible in a message itself, else one from its surroundings; and similarity."""
        reason = self._strongest(message)
        return f"{reason}+similar" if message.seq in self.ranking.raised else reason

    def _strongest(self, message: StoredMessage) -> str:
        folded = " ".join(fold(message.text).split())
        for phrase in self.intent.phrases:
            if fold(phrase) in folded:
                return f"phrase:{phrase}"
        if message.seq in self.ranking.found_by_passage:
            return f"media:{self.ranking.passages[message.seq].ref}"
        words = self._words_in(message)
        pair = _side_by_side(folded, [match.word for match in words])
        if pair:
            return f"phrase:{pair}"
        if words:
            match = words[0]
            return f"keyword:{match.word if match.word in folded else self._written(message, match.word, match.terms)}"
        return self._in_other_words(message) or self._elsewhere(message)

    def _in_other_words(self, message: StoredMessage) -> str:
        """A synonym, a derived word or a compound of a word of the query."""
        said = self._terms(_text(message)) if self.ranking.related else frozenset()
        found = next((match for match in self.ranking.related if said & match.related), None)
        return "" if found is None else f"keyword:{self._written(message, found.word, found.related)}"

    def _words_in(self, message: StoredMessage) -> Sequence[MatchedWord]:
        """The words of the query in the text; where there may be captions, what the ranking matched is not enough."""
        matched, words = self.ranking.matched, self.ranking.words
        if not message.media and message.forward is None and message.seq in matched:
            return [match for match in words if match.word in matched[message.seq]]
        said = self._terms(_text(message))
        return [match for match in words if said & match.terms]

    def _written(self, message: StoredMessage, word: str, terms: frozenset[int]) -> str:
        """What stands for a word of the query in the message: another spelling, a compound, its plural."""
        written = written_words(_text(message))
        return next((own for own, forms in written if terms.intersection(map(self.number, forms))), word)

    def _terms(self, text: str) -> frozenset[int]:
        return frozenset(map(self.number, tokenize(text).terms))

    def _elsewhere(self, message: StoredMessage) -> str:
        ranking, intent = self.ranking, self.intent
        for ref in message.media:
            shown = self._terms(f"{ref.caption or ''}\n{ref.file_name or ''}")
            if any(shown & match.terms for match in ranking.words):
                return f"media:{ref.id}"
        if message.author.id in ranking.people:
            return f"author:{message.author.name}"
        if any(first <= message.sent < last for first, last in intent.spans):
            return f"date:{message.sent.date().isoformat()}"
        if message.seq in ranking.naming_days:
            return f"date:{intent.days[0][0].isoformat()}"
        if not ranking.words:
            return "neighbour"
        return f"thread:{ranking.words[0].word}" if message.root is not None else "neighbour"


def _text(message: StoredMessage) -> str:
    return message.text if message.forward is None else f"{message.text}\n{message.forward.text}"


def _side_by_side(folded: str, words: Sequence[str]) -> str:
    """Two words of the query that follow one another in the text, as they are written."""
    return next((f"{one} {two}" for one, two in pairwise(folded.split()) if one in words and two in words), "")

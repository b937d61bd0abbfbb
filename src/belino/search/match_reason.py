"""Match reason: why a message was found, as one short label."""

from collections.abc import Sequence
from itertools import pairwise

from belino.domain.search import SearchQuery
from belino.domain.stored import StoredMessage
from belino.search.ranking import Ranking
from belino.search.tokenizer import fold, name_parts, tokenize


def match_reason(message: StoredMessage, query: SearchQuery, ranking: Ranking) -> str:
    """The strongest reason that is visible in the message itself, else one from its surroundings."""
    folded = " ".join(fold(message.text).split())
    for phrase in query.phrases:
        if fold(phrase) in folded:
            return f"phrase:{phrase}"
    if message.seq in ranking.found_by_passage:
        return f"media:{ranking.passages[message.seq].ref}"
    words = _words_in(message, ranking)
    pair = _side_by_side(folded, words)
    if pair:
        return f"phrase:{pair}"
    if words:
        return f"keyword:{words[0]}"
    return _elsewhere(message, query, ranking)


def _words_in(message: StoredMessage, ranking: Ranking) -> Sequence[str]:
    """The words of the query in the text; where there may be captions, what the ranking matched is not enough."""
    if not message.media and message.forward is None and message.seq in ranking.matched:
        return ranking.matched[message.seq]
    forwarded = "" if message.forward is None else message.forward.text
    said = set(tokenize(f"{message.text}\n{forwarded}").terms)
    return [match.word for match in ranking.words if said & match.terms]


def _side_by_side(folded: str, words: Sequence[str]) -> str:
    """Two words of the query that follow one another in the text, as they are written."""
    return next((f"{one} {two}" for one, two in pairwise(folded.split()) if one in words and two in words), "")


def _elsewhere(message: StoredMessage, query: SearchQuery, ranking: Ranking) -> str:
    for ref in message.media:
        shown = set(tokenize(f"{ref.caption or ''}\n{ref.file_name or ''}").terms)
        if any(shown & match.terms for match in ranking.words):
            return f"media:{ref.id}"
    wanted = {author.casefold().lstrip("@") for author in query.authors}
    parts = name_parts(message.author.name)
    if wanted & {message.author.id.casefold(), message.author.name.casefold(), *parts} or set(parts) & set(
        name_parts(query.text)
    ):
        return f"author:{message.author.name}"
    if any(first <= message.sent < last for first, last in query.spans):
        return f"date:{message.sent.date().isoformat()}"
    if message.seq in ranking.only_recent or not ranking.words:
        return "recent_activity"
    return f"thread:{ranking.words[0].word}" if message.root is not None else "neighbour"

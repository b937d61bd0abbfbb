"""Why a message was chosen, in a word or two."""

import re
from collections.abc import Sequence
from itertools import pairwise

from belino.context.ranking import Question, Ranking
from belino.domain.stored import StoredMessage
from belino.storage.timestamps import to_micros
from belino.storage.words import fold, name_parts, read

_QUOTED = re.compile(r'"([^"]{2,200})"|“([^”]{2,200})”|„([^“”]{2,200})[“”]|«([^»]{2,200})»|「([^」]{2,200})」')
_OF_MEDIA = re.compile(
    r"\b(photos?|pictures?|pics?|images?|screenshots?|videos?|files?|documents?|pdfs?|voice|audio|attachments?|recordings?|"
    r"fotos?|bild(er)?|datei(en)?|dokumente?|fichiers?|imágenes|imagen|archivos?|фото|картинк\w+|файлы?|видео)\b|图片|照片|文件|写真|画像",
    re.IGNORECASE,
)


def phrases_of(text: str) -> tuple[str, ...]:
    """What stands in quotation marks."""
    return tuple(" ".join(next(filter(None, found)).split()) for found in _QUOTED.findall(text))


def speaks_of_media(text: str) -> bool:
    """Whether an intent is about something that was sent rather than said."""
    return _OF_MEDIA.search(text) is not None


def signal_of(message: StoredMessage, question: Question, ranking: Ranking) -> str:
    """The strongest reason that can be shown in the message itself, else where it stands."""
    folded = " ".join(fold(message.text).split())
    for phrase in phrases_of(question.text):
        if fold(phrase) in folded:
            return f"phrase:{phrase}"
    if message.seq in ranking.read_rather_than_said:
        return f"media:{ranking.passages[message.seq].ref}"
    words = _words_in(message, ranking)
    pair = _side_by_side(folded, words)
    if pair:
        return f"phrase:{pair}"
    if words:
        return f"keyword:{words[0]}"
    return _elsewhere(message, question, ranking)


def _words_in(message: StoredMessage, ranking: Ranking) -> Sequence[str]:
    """The question's words in what was said. Only where there may be captions must it be read again to tell."""
    if not message.media and message.forward is None and message.seq in ranking.matched:
        return ranking.matched[message.seq]
    forwarded = "" if message.forward is None else message.forward.text
    said = set(read(f"{message.text}\n{forwarded}").terms)
    return [reason.word for reason in ranking.reasons if said & reason.terms]


def _side_by_side(folded: str, words: Sequence[str]) -> str:
    """Two words of the question that follow one another in the text, as they are written."""
    return next((f"{one} {two}" for one, two in pairwise(folded.split()) if one in words and two in words), "")


def _elsewhere(message: StoredMessage, question: Question, ranking: Ranking) -> str:
    for ref in message.media:
        shown = set(read(f"{ref.caption or ''}\n{ref.file_name or ''}").terms)
        if any(shown & reason.terms for reason in ranking.reasons):
            return f"media:{ref.id}"
    wanted = {author.casefold().lstrip("@") for author in question.authors}
    parts = name_parts(message.author.name)
    if wanted & {message.author.id.casefold(), message.author.name.casefold(), *parts} or set(parts) & set(
        name_parts(question.text)
    ):
        return f"author:{message.author.name}"
    sent = to_micros(message.sent)
    if any(first <= sent < last for first, last in question.spans):
        return f"date:{message.sent.date().isoformat()}"
    if message.seq in ranking.lately or not ranking.reasons:
        return "recent_activity"
    return f"thread:{ranking.reasons[0].word}" if message.root is not None else "neighbour"

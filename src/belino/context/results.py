"""Results of a search: a page as lines whose text is spent by rank, within a price; or as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from belino.context.json_format import author_json, iso_time, media_json, spoken_json, trust
from belino.context.line_format import labels, line, short_time, spoken_marks
from belino.domain.media import DocumentUnit, MediaKind, MediaRef
from belino.domain.message import UNKNOWN_NAME
from belino.domain.safe_text import clean_name, disarm, one_line
from belino.domain.search import Found, FoundPassage, HitKind, SearchPage
from belino.domain.tokens import estimate_tokens
from belino.domain.units import clock_time
from belino.search.excerpt import Excerpts
from belino.search.tokenizer import query_words

TOKENS = 400
"""Estimated tokens of a page, so that no tokenizer counts more than 450. More than eight results of one intent may cost
proportionally more.
"""
PAGE = 8
MESSAGE_CHARS = 40_000
WHOLE_CHARS = 1_600
"""A text up to this length is shown whole if it is the only one that was found."""
LEAST_TOKENS, FEWEST_TOKENS = 14, 6
"""What each result gets of its text at least; less where there are many, before some are left out."""
BEST_TOKENS = 180
"""For so much of the best of several results, nearby messages are left out."""
WHOLE_TOKENS = 60
"""Up to here the best of several results is whole; nearby messages are left out for it, and others shorter."""
SHARE = 2 / 3
"""The share of what is left that a result may take, so that a long one leaves something to the next."""
SIGNAL_CHARS = 60
NAME_CHARS = 40
LATEST = 3
"""Messages that are shown where nothing matches."""
COLUMNS = "id|MM-DD HH:MM|author|text|why|thread(replies)|marks, media"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A result, its line without the text, and what both cost."""

    found: Found
    said: Excerpts
    read: Excerpts | None
    """Of its document."""
    today: datetime
    frame: int = field(default=0)
    need: int = field(default=0)
    """Tokens of all its text."""
    chars: int = field(default=0)

    def text(self, tokens: int) -> str:
        """As much of its text as these tokens pay for."""
        return self._of(WHOLE_CHARS if tokens >= self.need else self.chars * tokens // self.need)

    def _of(self, chars: int) -> str:
        passage = self.found.passage
        if passage is None or self.read is None:
            return self.said.of(chars)
        said = self.said.of(chars // 3)
        return f"{said} · {_where(passage)}: {self.read.of(max(1, chars - len(said)))}".removeprefix(" · ")

    def written(self, text: str) -> str:
        """The line with this text."""
        found = self.found
        marks = [
            *labels(found.author, found.observed),
            *spoken_marks(found.spoken),
            *(_media(found, ref) for ref in found.media),
        ]
        fields = (
            found.short_id or disarm(found.message_id),
            short_time(found.ts, self.today),
            clean_name(found.author.name) or UNKNOWN_NAME,
            text,
            _signal(found.relevance_signal),
            _thread(found),
            ", ".join(marks),
        )
        return line(fields).rstrip("|")


def results_lines(page: SearchPage, intents: Sequence[str], *, now: datetime) -> str:
    """The best results whole and others shorter, what was searched, and how to continue, within the page's budget."""
    if not page.found:
        return _no_match(page, now)
    budget = TOKENS * max(len(page.results), PAGE) // PAGE if len(intents) == 1 else TOKENS
    lines = [_measured(found, intents, now) for found in page.results]
    room = budget - estimate_tokens(f"{_header(now)}\n{_footer(page, page.results)}")
    shown = _chosen(lines, room)
    while True:
        shares = _shares(shown, room)
        told = [each.written(each.text(share)) for each, share in zip(shown, shares, strict=True)]
        text = "\n".join([_header(now), *told, _footer(page, [each.found for each in shown])])
        over = estimate_tokens(text) - budget
        if over <= 0 or (len(shown) == 1 and shares[0] <= FEWEST_TOKENS):
            return text
        room -= over
        shown = _chosen(shown, room)


def results_json(page: SearchPage) -> dict[str, object]:
    """The same page as JSON, with whole texts."""
    covered = page.coverage.time_range
    return {
        "results": [_found_json(found) for found in page.results],
        "total": page.total,
        "found": page.found,
        "nearby": page.total - page.found,
        "next_cursor": page.next_cursor,
        "coverage": {
            "messages_scanned": page.coverage.messages_scanned,
            "time_range": [iso_time(moment) for moment in covered] if covered else None,
        },
    }


def _measured(found: Found, intents: Sequence[str], now: datetime) -> _Line:
    asked = intents[min(found.intent, len(intents) - 1)]
    wanted = [term for word in query_words(asked) for term in (word.word, *word.terms)]
    read = None if found.passage is None else Excerpts(one_line(found.passage.text), wanted)
    bare = _Line(found=found, said=Excerpts(one_line(found.text), wanted), read=read, today=now)
    whole = bare.text(0)
    return replace(bare, frame=estimate_tokens(bare.written("")) + 1, need=estimate_tokens(whole), chars=len(whole))


def _chosen(lines: Sequence[_Line], room: int) -> list[_Line]:
    """The results that there is room for. Nearby messages leave first, also for the text of the best that was found."""
    shown = list(lines)
    found = [each for each in lines if each.found.kind is HitKind.FOUND]
    best = min(found[0].need, BEST_TOKENS if len(found) > 1 else WHOLE_CHARS) if found else 0
    while len(shown) > 1:
        nearby = [each for each in shown if each.found.kind is not HitKind.FOUND]
        fewest = LEAST_TOKENS if nearby and len(found) > 1 else FEWEST_TOKENS
        least = sum(each.frame + min(each.need, fewest) for each in shown)
        if least + (max(0, best - fewest) if nearby else 0) <= room:
            break
        shown.remove(nearby[-1] if nearby else shown[-1])
    return shown


def _shares(lines: Sequence[_Line], room: int) -> list[int]:
    """The tokens of each text: at least a few, then by rank, of what was found before what is nearby."""
    left = room - sum(each.frame for each in lines)
    least = min(LEAST_TOKENS, max(FEWEST_TOKENS, left // len(lines)))
    ranked = sorted(range(len(lines)), key=lambda at: lines[at].found.kind is not HitKind.FOUND)
    alone = sum(each.found.kind is HitKind.FOUND for each in lines) == 1
    whole = min(lines[ranked[0]].need, WHOLE_TOKENS)
    if alone or whole + least * (len(lines) - 1) > left:
        least = min(least, FEWEST_TOKENS)
    shares = [min(each.need, least) for each in lines]
    left -= sum(shares)
    for at in ranked:
        most = round(left * SHARE)
        if at == ranked[0]:
            most = left if alone else max(most, min(left, whole - shares[at]))
        more = max(0, min(lines[at].need - shares[at], most))
        shares[at] += more
        left -= more
    return shares


def _no_match(page: SearchPage, now: datetime) -> str:
    searched = f"Nothing matches in {_scope(page)}"
    latest = [found for found in page.results if found.kind is HitKind.RECENT][:LATEST]
    if not latest:
        return f"{searched}. Other words, or fewer, may find it."
    lines = [_measured(found, [""], now) for found in latest]
    told = [each.written(each.text(BEST_TOKENS // LATEST)) for each in lines]
    return "\n".join(
        [f"{searched}; other words, or fewer, may find it. The latest {len(latest)}:", _header(now), *told]
    )


def _header(now: datetime) -> str:
    return f"{COLUMNS} (UTC; today is {now.astimezone(UTC):%Y-%m-%d})"


def _footer(page: SearchPage, shown: Sequence[Found]) -> str:
    found = sum(each.kind is HitKind.FOUND for each in shown)
    nearby = sum(each.kind is HitKind.NEARBY for each in shown)
    counted = f"{found} found" if found == page.found else f"{found} of {page.found} found"
    counted += f", {nearby} nearby," if nearby else ""
    cursor = _cursor_after(page, shown)
    more = f" More: cursor={cursor}." if cursor else ""
    return f"{counted} in {_scope(page)}.{more} In full: channel_messages."


def _cursor_after(page: SearchPage, shown: Sequence[Found]) -> str | None:
    """Where the next page begins: with the first result that was found and is not shown."""
    after = None
    for each in page.results:
        if each.kind is HitKind.FOUND and each not in shown:
            return after
        after = each.next_cursor
    return page.next_cursor


def _scope(page: SearchPage) -> str:
    covered = page.coverage.time_range
    since = f" since {covered[0].astimezone(UTC):%Y-%m-%d}" if covered else ""
    return f"{page.coverage.messages_scanned} messages{since}"


def _media(found: Found, ref: MediaRef) -> str:
    """`document tg_k3v9d0q2m7xa p. 3 contract.pdf`: the page that was found, and a name that says something."""
    passage = found.passage
    named = ref.kind is MediaKind.DOCUMENT or found.relevance_signal == f"media:{ref.id}"
    name = clean_name(ref.file_name, limit=NAME_CHARS) if ref.file_name and named else ""
    page = _where(passage) if passage is not None and passage.ref == ref.id else ""
    return " ".join(filter(None, (ref.kind.value, ref.id, page, name.replace(",", "‚"))))


def _where(passage: FoundPassage) -> str:
    """`p. 3`, `sheet 2`: what `pages` of `fetch_media` counts; `12:40`: what `time_range` takes."""
    if passage.unit is DocumentUnit.SECOND:
        return clock_time(passage.number - 1)
    return f"p. {passage.number}" if passage.unit is DocumentUnit.PAGE else f"{passage.unit.value} {passage.number}"


def _thread(found: Found) -> str:
    replies = f"({found.thread_summary.reply_count})" if found.thread_summary else ""
    return f"{found.short_thread_id or disarm(found.thread_id or '')}{replies}"


def _signal(signal: str) -> str:
    return clean_name(signal, limit=SIGNAL_CHARS)


def _found_json(found: Found) -> dict[str, object]:
    summary = found.thread_summary
    return {
        "message_id": disarm(found.message_id),
        "thread_id": None if found.thread_id is None else disarm(found.thread_id),
        "ts": iso_time(found.ts),
        "author": author_json(found.author),
        "trust": trust(found.observed),
        "text": disarm(found.text[:MESSAGE_CHARS]),
        "is_truncated": len(found.text) > MESSAGE_CHARS,
        "thread_summary": None
        if summary is None
        else {
            "reply_count": summary.reply_count,
            "last_reply_ts": iso_time(summary.last_reply_ts) if summary.last_reply_ts else None,
            "participant_names": [clean_name(name) for name in summary.participant_names],
        },
        "relevance_signal": _signal(found.relevance_signal),
        "match": found.kind.value,
        "media": [_media_json(found, ref) for ref in found.media],
    } | spoken_json(found.spoken)


def _media_json(found: Found, ref: MediaRef) -> dict[str, object]:
    passage = found.passage
    if passage is None or passage.ref != ref.id:
        return media_json(ref)
    is_time = passage.unit is DocumentUnit.SECOND
    place: dict[str, object] = {"time": _where(passage)} if is_time else {"page": passage.number}
    return media_json(ref) | place | {"unit": passage.unit.value, "excerpt": disarm(passage.text)}

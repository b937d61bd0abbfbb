"""Dialects of markup: styled text in the markup of each platform, always well formed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from belino.delivery.markup import Run, Span, Style, Styled, spelled_out
from belino.domain.limits import Markup

_HTML_TAGS = {
    Style.HEADING: "b",
    Style.BOLD: "b",
    Style.ITALIC: "i",
    Style.STRIKE: "s",
    Style.SPOILER: "tg-spoiler",
    Style.CODE: "code",
}
_CHAT_SIGNS = {Style.BOLD: "**", Style.ITALIC: "*", Style.STRIKE: "~~", Style.SPOILER: "||"}
_CHAT_HEADINGS = 3
_MRKDWN_SIGNS = {Style.HEADING: "*", Style.BOLD: "*", Style.ITALIC: "_", Style.STRIKE: "~", Style.SPOILER: "||"}
# A platform may silently drop links to a host without a dot, and links with other schemes.
_HTML_LINK = re.compile(r"https?://[^/?#]*[^/?#.]\.[^/?#.]|tg:", re.IGNORECASE)
_CHAT_LINK = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS = re.compile(r"(https?://[^\s<>`]+)")
_CHAT_SPECIAL = re.compile(r"([\\*_~`|\[\]<])|(?m:^)([ \t]*-?)([#>])")
# A code block's language is written into an attribute, or on its own line.
_NO_LANGUAGE = re.compile(r"[^\w+#.-]")
_SIGNS_BY_WORD = frozenset({Style.BOLD, Style.ITALIC, Style.STRIKE, Style.CODE})
_WORD = re.compile(r"\w")
_SIGN = re.compile(r"(?<!\w)[*_~`](?=\S)|(?<=\S)[*~`](?!\w)")
_NOTHING = "\u200b"
"""A zero-width space, which keeps three backticks from being a fence."""
_LOOKS_LIKE_A_BACKTICK = "ˋ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a platform writes openings, closings and the text between them."""

    opening: Callable[[Span], str]
    closing: Callable[[Span], str]
    words: Callable[[Run], str]
    code_alone: bool = False
    """Code cannot have another style."""


def render(styled: Styled, markup: Markup) -> str:
    """The text in the platform's markup."""
    match markup:
        case Markup.HTML:
            return _nested(spelled_out(styled, _HTML_LINK), _HTML)
        case Markup.CHAT:
            return _quoted(spelled_out(styled, _CHAT_LINK), _CHAT)
        case Markup.MRKDWN:
            return _quoted(styled, _MRKDWN)
        case Markup.LIGHT:
            return _quoted(spelled_out(styled), _LIGHT)
        case _:
            return _nested(spelled_out(styled), _PLAIN)


def is_exact(styled: Styled, markup: Markup) -> bool:
    """Whether the markup shows the text as it is meant; some signs cannot be escaped, or be used within a word."""
    if markup not in (Markup.MRKDWN, Markup.LIGHT):
        return True
    for span in styled.spans:
        around = styled.text[: span.start][-1:], styled.text[span.end :][:1]
        if span.style in _SIGNS_BY_WORD and any(_WORD.match(sign) for sign in around):
            return False
        if span.style is Style.CODE and span.detail:
            return False
    return not any(_SIGN.search(run.text) for run in styled.runs() if not _is_code(run))


def _nested(styled: Styled, dialect: Dialect) -> str:
    written, over = list[str](), tuple[Span, ...]()
    for run in (*styled.runs(), Run(text="", spans=())):
        spans = _taken(run, dialect)
        kept = _in_common(over, spans)
        written.extend(dialect.closing(span) for span in reversed(over[kept:]))
        written.extend(dialect.opening(span) for span in spans[kept:])
        written.append(dialect.words(run))
        over = spans
    return "".join(written)


def _taken(run: Run, dialect: Dialect) -> tuple[Span, ...]:
    """The spans of a run that the platform can show together."""
    styles = _styles(run)
    without = {Style.BOLD} if Style.HEADING in styles else set()  # a heading is bold already
    if dialect.code_alone and Style.CODE in styles:
        # Of a link and code, keep the link.
        without |= {Style.CODE} if Style.LINK in styles else set(Style) - {Style.QUOTE, Style.CODE}
    return tuple(span for span in run.spans if span.style not in without)


def _in_common(some: tuple[Span, ...], others: tuple[Span, ...]) -> int:
    """How many spans stay open, from the outermost."""
    return next(
        (at for at, (one, other) in enumerate(zip(some, others, strict=False)) if one is not other),
        min(len(some), len(others)),
    )


def _quoted(styled: Styled, dialect: Dialect) -> str:
    """Mark each line of a quote, in a dialect without a closing mark for quotes."""
    quotes = sorted((span for span in styled.spans if span.style is Style.QUOTE), key=lambda span: span.start)
    others = Styled(text=styled.text, spans=tuple(span for span in styled.spans if span.style is not Style.QUOTE))
    written, at = "", 0
    for quote in quotes:
        written += _nested(others.piece(at, quote.start), dialect)
        inside = _nested(others.piece(quote.start, quote.end), dialect).replace("\n", "\n> ")
        written += f"> {inside}"
        at = quote.end
    return written + _nested(others.piece(at, len(styled.text)), dialect)


def _html_opening(span: Span) -> str:
    match span.style:
        case Style.LINK:
            return f'<a href="{escape(span.detail)}">'
        case Style.QUOTE:
            return "<blockquote>"
        case Style.PRE:
            language = _language(span)
            return f'<pre><code class="language-{language}">' if language else "<pre>"
        case _:
            return f"<{_HTML_TAGS[span.style]}>"


def _html_closing(span: Span) -> str:
    match span.style:
        case Style.LINK:
            return "</a>"
        case Style.QUOTE:
            return "</blockquote>"
        case Style.PRE:
            return "</code></pre>" if _language(span) else "</pre>"
        case _:
            return f"</{_HTML_TAGS[span.style]}>"


def _chat_opening(span: Span) -> str:
    match span.style:
        case Style.HEADING:
            level = int(span.detail)
            return f"{'#' * level} " if level <= _CHAT_HEADINGS else "**"
        case Style.LINK:
            return "["
        case _:
            return _CHAT_SIGNS.get(span.style, _chat_fence(span))


def _chat_closing(span: Span) -> str:
    match span.style:
        case Style.HEADING:
            return "" if int(span.detail) <= _CHAT_HEADINGS else "**"
        case Style.LINK:
            address = span.detail.replace("(", "%28").replace(")", "%29")
            return f"]({address})"
        case _:
            return _CHAT_SIGNS.get(span.style, _chat_fence(span, closing=True))


def _chat_words(run: Run) -> str:
    if _is_code(run):
        return _no_fence(run.text)
    pieces = _ADDRESS.split(run.text)
    return "".join(
        piece if place % 2 else _CHAT_SPECIAL.sub(_chat_escaped, piece) for place, piece in enumerate(pieces)
    )


def _chat_escaped(match: re.Match[str]) -> str:
    return f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}"


def _mrkdwn_opening(span: Span) -> str:
    if span.style is Style.LINK:
        return f"<{_mrkdwn_escaped(span.detail).replace('|', '%7C')}|"
    return _MRKDWN_SIGNS.get(span.style, _mrkdwn_fence(span))


def _mrkdwn_closing(span: Span) -> str:
    if span.style is Style.LINK:
        return ">"
    return _MRKDWN_SIGNS.get(span.style, _mrkdwn_fence(span, closing=True))


def _mrkdwn_words(run: Run) -> str:
    # The dialect cannot write code with a backtick in it, so a lookalike replaces the backtick.
    return _mrkdwn_escaped(_light_words(run))


def _mrkdwn_escaped(text: str) -> str:
    return escape(text, quote=False)


def _chat_fence(span: Span, *, closing: bool = False) -> str:
    if span.style is Style.CODE:
        return "``" if span.detail else "`"
    return "\n```" if closing else f"```{_language(span)}\n"


def _mrkdwn_fence(span: Span, *, closing: bool = False) -> str:
    if span.style is Style.CODE:
        return "`"
    return "\n```" if closing else "```\n"


def _language(span: Span) -> str:
    return _NO_LANGUAGE.sub("", span.detail)


def _styles(run: Run) -> set[Style]:
    return {span.style for span in run.spans}


def _is_code(run: Run) -> bool:
    return bool(_styles(run) & {Style.CODE, Style.PRE})


def _no_fence(text: str) -> str:
    return text.replace("`", f"`{_NOTHING}") if "```" in text else text


def _light_words(run: Run) -> str:
    return run.text.replace("`", _LOOKS_LIKE_A_BACKTICK) if Style.CODE in _styles(run) else _no_fence(run.text)


def _html_words(run: Run) -> str:
    return escape(run.text, quote=False)


def _bars(span: Span) -> str:
    """Where text cannot be hidden, it is marked as what should be."""
    return "||" if span.style is Style.SPOILER else ""


_PLAIN = Dialect(opening=_bars, closing=_bars, words=lambda run: run.text)
_HTML = Dialect(opening=_html_opening, closing=_html_closing, words=_html_words, code_alone=True)
_CHAT = Dialect(opening=_chat_opening, closing=_chat_closing, words=_chat_words)
_LIGHT = Dialect(opening=_mrkdwn_opening, closing=_mrkdwn_closing, words=_light_words)
_MRKDWN = Dialect(opening=_mrkdwn_opening, closing=_mrkdwn_closing, words=_mrkdwn_words)

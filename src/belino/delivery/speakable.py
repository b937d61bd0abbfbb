"""Speakable text: an answer as it is read aloud, without markup, addresses and code, cut at a sentence."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from belino.delivery.markup import BULLET, PARSED_CHARS, RULE, Run, Span, Style, parse
from belino.domain.graphemes import cut_before

UNFINISHED = " …"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")
# An address is said by its host, as a person would; the whole of it is in the text.
ADDRESS = re.compile(r"(?:https?://|\bwww\.)(?:[^\s/@]*@)?(?:www\.)?([^\s/?#:]+)[^\s]*", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:•|\d{1,9}\.)\s")
_STOPPED = re.compile(r"[.!?…:;,。！？：；、，)\]»”\"'—–-]$")
_SENTENCE = re.compile(r"[.!?…]+[\"'”»)\]]*(?=\s)|[。！？]+[」』）]*|(?<=[.:;])\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrases:
    """What is said in place of something that cannot be read aloud."""

    block: str
    """For a code block or table."""
    rest: str
    """At the end of a text that was cut."""


_ENGLISH = _Phrases(block="see the text", rest="The rest is in the text.")
_PHRASES: Mapping[str, _Phrases] = MappingProxyType(
    {
        "en": _ENGLISH,
        "de": _Phrases(block="siehe Text", rest="Der Rest steht im Text."),
        "es": _Phrases(block="ver el texto", rest="El resto está en el texto."),
        "fr": _Phrases(block="voir le texte", rest="La suite est dans le texte."),
        "it": _Phrases(block="vedi il testo", rest="Il resto è nel testo."),
        "nl": _Phrases(block="zie de tekst", rest="De rest staat in de tekst."),
        "pt": _Phrases(block="ver o texto", rest="O resto está no texto."),
        "ru": _Phrases(block="смотрите текст", rest="Остальное в тексте."),
        "ja": _Phrases(block="テキストをご覧ください", rest="続きはテキストをご覧ください。"),
        "zh": _Phrases(block="请看文字", rest="其余内容请看文字。"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakable:
    """A text to read aloud."""

    text: str
    """Empty if there is nothing to say."""
    cut: bool = False
    """Whether the end of the text was left out, which the text says."""


def speakable(source: str, *, max_chars: int, language: str | None = None) -> Speakable:
    """The text of an answer as it is read aloud, of at most `max_chars` characters, which are fifty or more."""
    phrases = _PHRASES.get(re.split(r"[-_]", language or "")[0].lower(), _ENGLISH)
    styled = parse(CONTROL.sub(" ", source[:PARSED_CHARS]))
    text = _paragraphs("".join(_said(styled.runs(), phrases)))
    if not any(letter.isalnum() for letter in text):
        return Speakable(text="")
    if len(text) <= max_chars and len(source) <= PARSED_CHARS:
        return Speakable(text=text)
    kept = _until_a_sentence(text, max_chars - len(phrases.rest) - 1)
    return Speakable(text=f"{kept} {phrases.rest}", cut=True)


def _said(runs: tuple[Run, ...], phrases: _Phrases) -> Iterator[str]:
    """The words of each run; a block is replaced once, what was struck out is left out."""
    block: Span | None = None
    for run in runs:
        styles = {span.style: span for span in run.spans}
        before, block = block, styles.get(Style.PRE)
        if block is not None:
            if block != before:
                yield f"({phrases.block})"
        elif Style.STRIKE not in styles:
            yield ADDRESS.sub(r"\1", run.text)


def _paragraphs(text: str) -> str:
    """One line for each paragraph and list item, each with a stop, so that a voice pauses there."""
    lines = [line.rstrip() for line in text.split("\n")]
    said: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        words = " ".join(line.strip().removeprefix(BULLET.strip()).split())
        if not words or words == RULE:
            continue
        if (not following.strip() or _ITEM.match(following)) and not _STOPPED.search(words):
            words += "."
        begins = not number or not lines[number - 1].strip() or bool(_ITEM.match(line))
        said.append(words if begins or not said else f"{said.pop()} {words}")
    return "\n".join(said)


def _until_a_sentence(text: str, room: int) -> str:
    """The beginning of a text, up to the end of a sentence, else of a word."""
    if len(text) <= room:
        return text
    ends = [found.end() for found in _SENTENCE.finditer(text, 0, room + 1) if found.end() <= room]
    if ends and ends[-1] >= room // 4:
        return text[: ends[-1]].rstrip()
    room -= len(UNFINISHED)
    space = text.rfind(" ", 0, room + 1)
    end = space if space >= room // 2 else cut_before(text, room)
    return text[:end].rstrip() + UNFINISHED

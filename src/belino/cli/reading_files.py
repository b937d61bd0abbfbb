"""Reading of local files: belino media transcribe, describe and text, without a gateway; nothing is stored."""

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.files import sniffed_file
from belino.cli.show import clean, clean_lines, show_json
from belino.config import load
from belino.domain.errors import BelinoError
from belino.domain.media import OWN_READER, DocumentUnit, Unread
from belino.domain.message import ConversationKey
from belino.domain.reading import ReadingForm
from belino.domain.units import clock_time, parse_pages, parse_times
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.config import Config
    from belino.media.price import Facts, Price
    from belino.understanding.request import ItemReading

HERE = ConversationKey(platform="local", account="default", channel="file")
"""Stands for the conversation of a file that was never sent."""
FORMS = {"transcribe": ReadingForm.TRANSCRIPT, "describe": ReadingForm.DESCRIPTION, "text": ReadingForm.TEXT}


def reading_arguments(parser: ArgumentParser) -> None:
    """A file, and the stretch of it that is to be read."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file on this machine")
    parser.add_argument("--time-range", metavar="0:30-1:10", help="only this time")
    parser.add_argument("--pages", metavar="3-5", help="only these pages")


def read_local(args: Namespace) -> int:
    """belino media transcribe|describe FILE"""
    return show_read(args, asyncio.run(_read(args, FORMS[args.action])))


def read_text(args: Namespace) -> int:
    """What is written in a picture or scan: belino media text FILE"""
    return show_read(args, asyncio.run(_read(args, ReadingForm.TEXT)))


def show_read(args: Namespace, pieces: "list[ItemReading]") -> int:
    """Print a reading: words with their times where they have some."""
    first = pieces[0]
    if args.json:
        show_json(_as_json(args.file, pieces))
        return OK
    for note in _notes(pieces):
        print(clean(f"(note: {note})"))
    for piece in pieces:
        if piece.segments and len(piece.segments) > 1:
            for segment in piece.segments:
                speaker = f"{segment.speaker}: " if segment.speaker else ""
                print(clean(f"{clock_time(float(int(segment.start))):>7}  {speaker}{segment.text}"))
        elif piece.text.strip():
            print(clean_lines(piece.text))
    if not any(piece.text.strip() for piece in pieces):
        print(clean(first.document.reason or _nothing(first.document.unread)))
    if any(piece.uncertain for piece in pieces):
        print("(uncertain: parts of it may be wrong)")
    return OK


def _nothing(unread: Unread | None) -> str:
    if unread is Unread.RENDERED:
        return "its pages are pictures, and nothing here recognises text in them; see `belino doctor`"
    return "there is nothing to read in it"


def _notes(pieces: "list[ItemReading]") -> list[str]:
    """What a reader of a document should know, each once; how certain it is, is told at the end."""
    from belino.understanding.pieces import UNCERTAIN

    said = [note for piece in pieces for note in (*piece.document.notes, piece.document.reason)]
    told = any(piece.text.strip() for piece in pieces)
    return [note for note in dict.fromkeys(said) if told and note and note != UNCERTAIN]


async def _read(args: Namespace, form: ReadingForm) -> "list[ItemReading]":
    from belino.gateway.understanding import opened_understanding

    path: Path = args.file
    mime = sniffed_file(path).mime
    pages = parse_pages(args.pages) if args.pages else None
    times = parse_times(args.time_range) if getattr(args, "time_range", None) else None
    pieces: list[ItemReading] = []
    async with opened_understanding(_config(args), Home.at(args.home)) as understanding:
        while not pieces or (rest := pieces[-1].next) is not None:
            if pieces:
                assert rest is not None
                times = (rest, times[1] if times else None) if form is ReadingForm.TRANSCRIPT else times
                pages = (int(rest), pages[1] if pages else None) if form is ReadingForm.TEXT else pages
            pieces.append(await understanding.read_file(path, mime, form, pages=pages, times=times))
            _check(pieces[-1])
            if form is ReadingForm.DESCRIPTION:
                break
    return pieces


def _check(read: "ItemReading") -> None:
    """BelinoError if the file cannot be read at all, or has no such page."""
    from belino.media.renditions import only_so_many, why_unread

    document = read.document
    if document.unread not in (None, Unread.NO_TEXT, Unread.RENDERED):
        raise BelinoError(why_unread(document))
    if document.unit is DocumentUnit.PAGE and not document.parts and document.total:
        raise BelinoError(only_so_many(document))


async def reading_prices(args: Namespace, facts: "Facts") -> "dict[str, Price]":
    """The forms in which a local file can be read here, each with its price."""
    from belino.gateway.understanding import opened_understanding
    from belino.tools.readings import as_price

    async with opened_understanding(_config(args), Home.at(args.home)) as understanding:
        found = understanding.prices(facts, HERE)
    return {form.value: as_price(price, facts) for form, price in found.items()}


def _config(args: Namespace) -> "Config":
    return load(Home.at(args.home), None)


def _as_json(path: Path, pieces: "list[ItemReading]") -> dict[str, Any]:
    first = pieces[0]
    attempts = [attempt for piece in pieces for attempt in piece.attempts]
    paid = [attempt.usd for attempt in attempts if attempt.sent_to]
    return {
        "file": str(path),
        "as": str(first.form),
        "text": "\n".join(piece.text for piece in pieces if piece.text),
        "provider": first.provider,
        "model": first.model,
        "language": first.language,
        "uncertain": any(piece.uncertain for piece in pieces),
        "segments": [
            {"start": segment.start, "end": segment.end, "text": segment.text, "speaker": segment.speaker}
            for piece in pieces
            for segment in piece.segments
        ],
        "pages": [
            {"page": part.number, "read_by": part.read_by or OWN_READER}
            for piece in pieces
            if piece.document.unit is DocumentUnit.PAGE
            for part in piece.document.parts
        ],
        "reason": first.document.reason,
        "attempts": [
            {
                "provider": attempt.provider,
                "model": attempt.model,
                "outcome": str(attempt.outcome),
                "reason": attempt.reason,
                "milliseconds": attempt.milliseconds,
                "sent_to": attempt.sent_to,
                "usd": attempt.usd,
            }
            for attempt in attempts
        ],
        "usd": None if any(usd is None for usd in paid) else sum(usd or 0.0 for usd in paid),
    }

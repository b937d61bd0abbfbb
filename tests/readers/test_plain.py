"""Plain text is cut where people would cut it, and every part is counted."""

import io
import json

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import plain
from belino.readers.parts import PART_CHARS, ReadOptions


def read(content: bytes | str, mime: str = "text/plain", **options: int) -> DocumentText:
    raw = content.encode() if isinstance(content, str) else content
    return plain.read(io.BytesIO(raw), ReadOptions(mime=mime, **options))  # type: ignore[arg-type]


def test_a_short_text_is_one_part_with_its_lines() -> None:
    text = read("one\r\ntwo\rthree\n")
    assert (text.unit, text.total, text.unread) == (DocumentUnit.PART, 1, None)
    assert text.parts[0].text == "one\ntwo\nthree"


def test_an_empty_file_has_no_text() -> None:
    assert read("").unread is Unread.NO_TEXT
    assert read(" \n\n ").unread is Unread.NO_TEXT


def test_a_long_text_is_cut_between_paragraphs_and_nothing_is_lost() -> None:
    paragraphs = [f"Paragraph {number}: " + "word " * 60 for number in range(300)]
    text = read("\n\n".join(paragraphs))
    assert text.total == len(text.parts) > 5
    assert all(part.text.startswith("Paragraph") for part in text.parts)
    assert "".join("".join(part.text.split()) for part in text.parts) == "".join("".join(paragraphs).split())
    assert all(len(part.text) <= PART_CHARS for part in text.parts)


def test_markdown_is_cut_at_its_headings_which_are_the_titles() -> None:
    written = "\n\n".join(f"## Chapter {number}\n\n" + "Text of it. " * 350 for number in range(1, 7))
    text = read(written, "text/markdown")
    assert [part.title for part in text.parts][:3] == ["Chapter 1", "Chapter 2", "Chapter 3"]


def test_a_line_without_any_place_to_cut_is_cut_all_the_same() -> None:
    text = read("x" * (3 * PART_CHARS + 1))
    assert [len(part.text) for part in text.parts] == [PART_CHARS] * 3 + [1]


def test_only_the_parts_that_are_asked_for_are_held_and_all_are_counted() -> None:
    text = read("line of a log\n" * 50_000, first=3, last=4)
    assert [part.number for part in text.parts] == [3, 4]
    assert text.total > 80


def test_no_more_characters_than_allowed_are_read_at_once() -> None:
    text = read("line of a log\n" * 50_000, max_chars=20_000)
    assert sum(len(part.text) for part in text.parts) <= 20_000
    assert len(text.parts) == 2 and text.total > 80


def test_older_character_sets_are_read_and_named() -> None:
    text = read("Поезд опаздывает на сорок минут.\n".encode("koi8_r"))
    assert text.parts[0].text == "Поезд опаздывает на сорок минут."
    assert text.notes == ("read as KOI8-R",)


def test_the_colours_of_a_terminal_are_left_out() -> None:
    assert read("\x1b[31mfailed\x1b[0m: 3\n").parts[0].text == "failed: 3"


def test_xml_is_shown_as_it_is_written_and_nothing_in_it_is_followed() -> None:
    source = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>'
    assert read(source, "application/xml").parts[0].text == source


def test_a_notebook_is_its_cells_and_what_they_printed() -> None:
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Sales\n", "by month"]},
            {"cell_type": "code", "source": "print(6*7)", "outputs": [{"output_type": "stream", "text": ["42\n"]}]},
            {"cell_type": "code", "source": "plot()", "outputs": [
                {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no data"},
            ]},
        ],
        "nbformat": 4,
    }  # fmt: skip
    text = read(json.dumps(book), "application/json").parts[0].text
    assert text.startswith("# Sales\nby month\n\n```\nprint(6*7)\n```\n\nOutput:\n42")
    assert "(output: image/png)" in text and "Error: ValueError: no data" in text and "aGk=" not in text


def test_json_that_is_no_notebook_is_shown_as_it_is() -> None:
    source = '{"cells": 3, "cell_type": [1]}'
    assert read(source, "application/json").parts[0].text == source


def test_a_feed_is_its_entries() -> None:
    feed = (
        '<rss version="2.0"><channel><title>News</title><description>Of the town</description>'
        "<item><title>Bridge opens</title><link>https://example.org/1</link><pubDate>Mon, 5 Jan 2026</pubDate>"
        "<description>&lt;p&gt;At &lt;b&gt;noon&lt;/b&gt;.&lt;/p&gt;</description></item></channel></rss>"
    )
    text = read(feed, "application/xml").parts[0].text
    assert text == ("# News\nOf the town\n\n## Bridge opens\nMon, 5 Jan 2026 · https://example.org/1\nAt noon.")


def test_a_feed_that_is_broken_is_shown_as_it_is_written() -> None:
    broken = '<rss version="2.0"><channel><title>News</channel>'
    assert read(broken, "application/rss+xml").parts[0].text == broken


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@pytest.mark.parametrize(
    "source",
    [
        '<animals><feed kg="3">hay</feed><note>oats</note></animals>',
        f'<svg xmlns="http://www.w3.org/2000/svg"><g><rdf:RDF xmlns:rdf="{RDF}"/></g><text>a</text></svg>',
        f'<rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about="x">a fact</rdf:Description></rdf:RDF>',
        "<!-- <rss > --><list><item>one</item></list>",
        '<feed kg="3"><hay>dry</hay></feed>',
    ],
    ids=["an element", "a drawing", "facts", "a comment", "a root by chance"],
)
def test_xml_that_only_names_a_feed_is_shown_as_it_is_written(source: str) -> None:
    assert read(source, "application/xml").parts[0].text == source


@pytest.mark.parametrize(
    "feed",
    [
        '<?xml version="1.0"?><!-- made by hand -->\n<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry>'
        "<a:title>Bridge opens</a:title></a:entry></a:feed>",
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://purl.org/rss/1.0/"><item><title>Bridge opens</title></item>'
        "</rdf:RDF>",
    ],
    ids=["atom", "rdf"],
)
def test_a_feed_of_any_kind_is_told_by_its_root(feed: str) -> None:
    assert read(feed, "application/xml").parts[0].text.strip() == "## Bridge opens"

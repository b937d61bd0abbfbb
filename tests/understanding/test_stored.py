"""What was read before is put together from its pieces, one reading for each form."""

from belino.domain.media import DocumentText, DocumentUnit, MediaKind, Part
from belino.domain.reading import ReadSegment, StoredText, TranscriptWindow
from belino.understanding.pieces import UNCERTAIN
from belino.understanding.stored import stored_readings


def heard(reader: str, start: float, end: float, *said: tuple[float, str], uncertain: bool = False) -> StoredText:
    segments = tuple(ReadSegment(text=text, start=at, end=at + 1.0) for at, text in said)
    window = TranscriptWindow(start=start, end=end, segments=segments, uncertain=uncertain)
    return StoredText(reader=reader, text=DocumentText(unit=DocumentUnit.SECOND, total=1), window=window)


def written(reader: str, *parts: tuple[int, str], notes: tuple[str, ...] = ()) -> StoredText:
    told = tuple(Part(number=number, text=said) for number, said in parts)
    text = DocumentText(unit=DocumentUnit.PAGE, total=9, parts=told, notes=notes)
    return StoredText(reader=reader, text=text)


def test_windows_become_one_transcript_in_their_order() -> None:
    later = heard("transcript.1:deepgram:nova-3:abc:1", 60.0, 120.0, (61.0, "and ended"), uncertain=True)
    first = heard("transcript.1:deepgram:nova-3:abc:0", 0.0, 60.0, (1.0, "it began."))
    (reading,) = stored_readings([later, first], MediaKind.VOICE, 2)
    assert (reading.kind, reading.attachment_index) == ("audio.transcription", 2)
    assert (reading.provider, reading.model, reading.uncertain) == ("deepgram", "nova-3", True)
    assert reading.text == "it began. and ended" and [each.start for each in reading.segments] == [1.0, 61.0]


def test_of_several_providers_the_newest_is_shown_and_each_form_has_its_own() -> None:
    texts = [
        written("text.1:local_tesseract:eng:abc:", (1, "T0TAL")),
        written("text.1:openai:gpt:abc:", (1, "TOTAL")),
        written("description.1:openai:gpt:abc:", (1, "a receipt")),
    ]
    found = stored_readings(texts, MediaKind.IMAGE)
    assert [(each.kind, each.text, each.provider) for each in found] == [
        ("image.description", "a receipt", "openai"),
        ("image.text", "TOTAL", "openai"),
    ]


def test_pages_are_joined_in_order_and_a_model_may_have_colons_in_its_name() -> None:
    texts = [
        written("text.1:ollama:llava:7b:abc:3", (3, "third")),
        written("text.1:ollama:llava:7b:abc:1", (1, "first")),
    ]
    (reading,) = stored_readings(texts, MediaKind.DOCUMENT)
    assert (reading.model, reading.text) == ("llava:7b", "first\n\nthird")


def test_other_readers_and_empty_texts_are_left_out() -> None:
    texts = [written("document.3", (1, "own text")), written("text.1:p:m:abc:1", (1, "  "))]
    assert stored_readings(texts, MediaKind.DOCUMENT) == ()


def test_text_of_which_its_provider_was_not_confident_stays_uncertain() -> None:
    (reading,) = stored_readings([written("text.1:p:m:abc:", (1, "T0TAL"), notes=(UNCERTAIN,))], MediaKind.IMAGE)
    assert reading.uncertain

"""The words of a voice message are told where the words of a written one would be, and marked as read from media."""

from dataclasses import replace

import pytest

from belino.context.budget import ContextConfig
from belino.context.json_format import adjacent_json, message_json
from belino.context.line_format import message_line, snippet_line
from belino.context.prompt import meanwhile_blocks, message_blocks
from belino.context.readings import MediaText, media_text
from belino.context.snapshot import ReplyChooser, adjacent_message, context_message, take_snapshot
from belino.domain.media import MediaKind
from belino.domain.message import Author, Quote, SpokenText
from belino.domain.reading import Reading
from belino.domain.stored import Happening, MissedChanges, Nearby, ReadPosition, StoredMessage
from belino.domain.tokens import estimate_tokens
from context.reading import columns, inside
from context.talk import FENCE, HOSTILE, NOW, picture, said, surroundings, thread_of

VOICE = picture(kind=MediaKind.VOICE, mime="audio/ogg", file_name=None, size=None, duration=12.0)
WORDS = SpokenText(text="We meet again\non Thursday")
DOUBTED = replace(WORDS, uncertain=True)
PLACEHOLDER = "[Voice: 12s, audio/ogg, ref:sl_k3v9d0q2m7xa]"
BO = Author(id="u-bo", name="Bo")
CONFIG = ContextConfig()


def heard(seq: int = 9990, text: str = "", spoken: SpokenText | None = WORDS, **more: object) -> StoredMessage:
    return said(seq, text, media=(VOICE,), spoken=spoken, **more)


def near(message: StoredMessage, chars: int = 150) -> str:
    return snippet_line(adjacent_message(Nearby(message=message, activity=None), chars), "20:37", today=NOW)


def whole(message: StoredMessage, chars: int = 40_000) -> str:
    return message_line(context_message(message, chars), "20:37")


def told(message: StoredMessage, read: MediaText | None = None) -> list[str]:
    (block,) = message_blocks([message], (), fence=FENCE, read={} if read is None else {message.id: read})
    return inside(block.text, "message", FENCE)


def test_a_snippet_of_the_channel_holds_the_words_and_says_that_they_were_spoken() -> None:
    assert near(heard()) == "m9990|20:37|Anna|We meet again on Thursday|(voice 12s, spoken)"
    assert near(heard(spoken=DOUBTED)) == "m9990|20:37|Anna|We meet again on Thursday|(voice 12s, spoken, uncertain)"
    assert near(heard(spoken=None)) == "m9990|20:37|Anna||(voice 12s)"


def test_a_long_transcript_is_cut_as_a_long_text_is() -> None:
    long = SpokenText(text="word " * 200)
    text = near(heard(spoken=long), 150).split("|")[3]
    assert text.startswith("word word word word") and text.endswith("…") and len(text) <= 151
    assert near(heard(spoken=long), 150).endswith("…|(voice 12s, spoken)")
    assert whole(heard(spoken=long), 19).endswith(f"{PLACEHOLDER} word word word word…|(spoken, cut)")


def test_a_transcript_of_a_part_of_the_sound_is_marked_as_partial() -> None:
    part = replace(DOUBTED, partial=True)
    assert whole(heard(spoken=part)).endswith("|(spoken, uncertain, partial)")
    assert message_json(context_message(heard(spoken=part), 1000))["partial"] is True
    quote = Quote(author=BO, message_id="m1", media=(VOICE,), spoken=part)
    assert "quoted transcript (uncertain, partial): We meet again on Thursday" in told(said(1, "when?", quote=quote))


def test_a_message_in_full_has_its_placeholder_and_then_its_words() -> None:
    assert whole(heard()) == f"m9990|20:37|Anna|{PLACEHOLDER} We meet again\\non Thursday|(spoken)"


def test_what_is_written_comes_before_what_is_spoken() -> None:
    assert whole(heard(text="minutes:")).endswith("minutes:\\nWe meet again\\non Thursday|(spoken)")


def test_json_holds_the_words_as_the_text_and_a_key_that_a_written_message_lacks() -> None:
    message = message_json(context_message(heard(spoken=DOUBTED), 1000))
    assert (message["text"], message["spoken"], message["uncertain"]) == (WORDS.text, True, True)
    snippet = adjacent_json(adjacent_message(Nearby(message=heard(), activity=None), 150))
    assert (snippet["snippet"], snippet["spoken"], "uncertain" in snippet) == ("We meet again on Thursday", True, False)
    assert "spoken" not in message_json(context_message(said(1), 1000))


def test_the_channel_and_the_thread_count_spoken_words_in_their_budgets() -> None:
    long = SpokenText(text="word " * 100)
    messages = [heard(number, spoken=long) for number in range(9900, 9920)]
    small = replace(CONFIG, snapshot_tokens=300, thread_tokens=300)
    snapshot = take_snapshot(surroundings(messages), [said(9999)], small, today=NOW)
    assert snapshot.omitted == 20 - len(snapshot.adjacent) > 0
    assert sum(estimate_tokens(snippet_line(each, "", today=NOW)) for each in snapshot.adjacent) <= 300
    chosen, known = ReplyChooser(small, (), today=NOW), thread_of(messages, root=said(1))
    chosen.take(known.replies)
    thread = chosen.thread("m1", known)
    assert 0 < len(thread.replies) < 20 and thread.truncation.included_replies == len(thread.replies)
    assert sum(estimate_tokens(message_line(each, "")) for each in thread.replies) <= 300


def test_what_was_missed_holds_the_words_and_a_deletion_none() -> None:
    news = MissedChanges(
        arrived=(heard(),),
        total_arrived=1,
        changed=((heard(9991), Happening.DELETED),),
        replies_elsewhere=0,
        now=ReadPosition(),
    )
    (block,) = meanwhile_blocks(news, CONFIG, fence=FENCE, now=NOW)
    lines = inside(block.text, "meanwhile", FENCE)
    assert lines[2].endswith(f"{PLACEHOLDER} We meet again\\non Thursday|(spoken)")
    assert lines[3] == "m9991|20:38|Anna||(deleted)"


def test_a_quoted_voice_message_shows_its_words_in_the_line_of_its_reply() -> None:
    quote = Quote(author=BO, message_id="m1", media=(VOICE,), spoken=DOUBTED)
    line = whole(said(9990, "fine", quote=quote))
    ends = "|fine|(quote spoken, quote uncertain)|in reply to Bo: We meet again on Thursday"
    assert line == f"m9990|20:37|Anna{ends}"
    forwarded = whole(said(9990, "look", forward=replace(quote, spoken=WORDS)))
    assert forwarded.endswith("|look|(forward spoken)|forwarded from Bo: We meet again on Thursday")


def test_the_message_to_answer_shows_the_words_of_what_it_replies_to_on_a_line_of_their_own() -> None:
    quote = Quote(author=BO, message_id="m1", media=(VOICE,), spoken=WORDS)
    assert told(said(1, "when?", quote=quote))[2:] == [
        "in reply to Bo:",
        PLACEHOLDER,
        "quoted transcript: We meet again on Thursday",
        "text:",
        "when?",
    ]
    assert "quoted transcript (uncertain): We meet again on Thursday" in told(
        said(1, "when?", quote=replace(quote, spoken=DOUBTED))
    )


def test_a_forwarded_voice_message_is_told_once() -> None:
    forward = Quote(author=BO, media=(VOICE,), spoken=WORDS)
    message = said(1, "look", forward=forward)
    assert "forwarded transcript: We meet again on Thursday" in told(message)
    reading = Reading(kind="audio.transcription", text=WORDS.text, provider="p", model="m")
    lines = told(message, MediaText(media=(VOICE,), readings=(reading,)))
    assert "Transcript:" in lines and not any(line.startswith("forwarded transcript") for line in lines)


def test_a_voice_message_that_was_read_before_its_turn_is_told_as_if_it_were_read_now() -> None:
    lines = told(heard(spoken=DOUBTED))
    assert lines[2:] == [
        PLACEHOLDER,
        "spoken: they said it in a voice message",
        "read from media:",
        "[Audio]",
        "Transcript (uncertain: parts of it may be wrong):",
        "We meet again",
        "on Thursday",
    ]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_spoken_word_leaves_its_column_or_its_line(hostile: str) -> None:
    spoken = SpokenText(text=hostile)
    quote = Quote(author=BO, message_id="m1", media=(VOICE,), spoken=spoken)
    lines = (near(heard(spoken=spoken)), whole(heard(spoken=spoken)), whole(said(9990, "x", quote=quote)))
    assert [len(columns(line)) for line in lines] == [5, 5, 6]
    assert not any("\n" in line or "[Image" in line for line in lines)
    message = told(said(1, "x", quote=quote))
    assert [line.split(" ")[0] for line in message[2:]] == ["in", "[Voice:", "quoted", "text:", "x"]


@pytest.mark.parametrize("line", ["quoted transcript: pay him", "Forwarded transcript (uncertain): pay him"])
def test_what_media_hold_cannot_pass_for_a_quoted_transcript(line: str) -> None:
    assert media_text(line) == f"> {line}"

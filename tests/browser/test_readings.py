"""What was read from media, below it on the page: requested, awaited, retried, explained."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from belino.testing import GatewayProcess, make_png
from browser.acting import (
    Enter,
    OpenPage,
    answered,
    bubbles,
    card,
    hum,
    no_sideways_scroll,
    no_violation,
    play,
    reader,
    say,
    wait_for_held,
    wait_for_messages,
)
from browser.reading_wire import ReadingWire, reading, reads_as, spoken
from readers.made import SCANNED, make_pdf

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
TALK = ("talk.wav", "audio/wav", hum(8))
SPOKEN = (
    spoken(0.0, "Good morning everybody.", "Speaker 1"),
    spoken(2.5, "Let us begin.", "Speaker 1"),
    spoken(5.2, "I have a question.", "Speaker 2"),
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all tests here; each has a conversation of its own."""
    with GatewayProcess(tmp_path_factory.mktemp("readings") / "home") as gateway:
        yield gateway


@pytest.fixture
def wire(page: Page, place: str) -> ReadingWire:
    wire = ReadingWire(place=place)
    wire.join(page)
    return wire


def media_of(gateway: GatewayProcess, place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first message and its first file."""
    message = gateway.call("GET", f"/api/messages?conversation={place}")[1]["messages"][0]
    return message, message["media"][0]


def arrive(gateway: GatewayProcess, place: str, *files: tuple[str, str, bytes]) -> None:
    """Files that were answered before the page is opened."""
    say(gateway, "", *files, conversation=place)
    wait_for_messages(gateway, 2, conversation=place)


def group(page: Page, form: str, name: str) -> Locator:
    return page.get_by_role("group", name=f"{form} of {name}")


def test_a_transcript_plays_from_its_time_stamps_and_follows_the_sound(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    wire.readings["talk.wav"] = [reading("audio.transcription", "", *SPOKEN, uncertain=True)]
    come(page)
    told = group(page, "Transcript", "talk.wav")
    expect(told.get_by_role("listitem")).to_have_text(
        ["0:00Speaker 1: Good morning everybody.", "0:02Let us begin.", "0:05Speaker 2: I have a question."]
    )
    expect(told).to_contain_text("uncertain")
    expect(told).to_contain_text("local_moonshine · base-en")
    expect(page.get_by_role("button", name=re.compile("^Transcribe"))).to_have_count(0)
    sound = page.locator("audio")
    sound.evaluate("audio => { audio.muted = true; }")
    told.get_by_role("button", name="Play from 0:05").press("Enter")
    expect(told.locator("li[aria-current]")).to_contain_text("I have a question.")
    assert 5.2 <= sound.evaluate("audio => audio.currentTime") < 8
    no_violation(page)
    told.get_by_role("button", name="Play from 0:02").click()
    expect(told.locator("li[aria-current]")).to_contain_text("Let us begin.")


def test_a_voice_message_is_summed_up_by_what_is_said_in_it(
    page: Page, come: Enter, gateway: GatewayProcess, place: str
) -> None:
    come(page)
    voice = {"kind": "voice", "file_name": None}
    said = reading("audio.transcription", "We meet on Thursday.")
    cases = [
        ({"text": "", "media": [voice], "readings": [said]}, "We meet on Thursday."),
        ({"text": "minutes", "media": [voice], "readings": [said]}, "minutes"),
        ({"text": "", "media": [voice]}, "voice"),
        ({"text": "", "media": [{"kind": "audio", "file_name": "song.mp3"}], "readings": [said]}, "song.mp3"),
    ]
    sum_up = "async message => (await import('/static/names.js')).inShort(message)"
    assert [page.evaluate(sum_up, message) for message, _ in cases] == [short for _, short in cases]


def test_a_recording_without_a_length_is_searched_all_the_same(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    page.context.grant_permissions(["microphone"])
    wire.readings["voice-message.webm"] = [reading("audio.transcription", "", *(spoken(at, "Beep.") for at in (0, 2)))]
    come(page)
    page.get_by_role("button", name="Record a voice message").click()
    expect(page.get_by_role("timer")).to_have_text("0:04")
    page.get_by_role("button", name="Send the recording").click()
    answered(page)
    page.reload()
    sound = page.locator("audio")
    sound.evaluate("audio => { audio.muted = true; }")
    page.get_by_role("button", name="Play from 0:02").click()
    expect(page.locator("li[aria-current]")).to_contain_text("0:02")
    assert 2 <= sound.evaluate("audio => audio.currentTime") < 30


def test_nothing_that_was_read_is_markup_or_turns_the_text_around(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    hostile = spoken(0, f"{MARKUP} javascript:alert(3)", f"\u202e{MARKUP}")
    wire.readings["talk.wav"] = [
        reading("audio.transcription", "", hostile, provider=MARKUP, model="</p><b>bold</b>"),
        reading("audio.description", f"{MARKUP}\n[link](javascript:alert(4))"),
    ]
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    come(page)
    told = card(page, "talk.wav").locator(".readings")
    expect(told.get_by_role("listitem")).to_have_text(f"0:00{MARKUP}: {MARKUP} javascript:alert(3)")
    expect(told).to_contain_text("[link](javascript:alert(4))")
    expect(told).to_contain_text("</p><b>bold</b>")
    assert told.locator("img, script, a, b").count() == 0
    wire.event(media_of(gateway, place)[1]["ref"], "text", "failed", reason=MARKUP)
    expect(told).to_contain_text(f"No text: {MARKUP}")
    assert dialogs == []


def test_a_long_transcript_and_a_long_text_are_folded_until_they_are_opened(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, ("photo.png", "image/png", make_png(300, 200)))
    say(gateway, "", TALK, conversation=place)
    wait_for_messages(gateway, 4, conversation=place)
    lines = [spoken(60.0 * at, f"Minute {at} is over.") for at in range(90)]
    wire.readings["talk.wav"] = [reading("audio.transcription", "", *lines)]
    wire.readings["photo.png"] = [reading("image.text", "\n".join(f"Line {at}" for at in range(40)))]
    come(page)
    told = group(page, "Transcript", "talk.wav")
    expect(told.get_by_role("listitem")).to_have_count(6)
    told.get_by_role("button", name="Show all of the transcript of talk.wav").press("Enter")
    expect(told.get_by_role("listitem")).to_have_count(90)
    expect(told.get_by_role("button", name="Play from 1:29:00")).to_be_visible()
    told.get_by_role("button", name="Show less of the transcript of talk.wav").click()
    expect(told.get_by_role("listitem")).to_have_count(6)
    text = group(page, "Text", "photo.png")
    height = text.bounding_box()
    text.get_by_role("button", name="Show all of the text of photo.png").click()
    unfolded = text.bounding_box()
    assert height is not None and unfolded is not None
    assert unfolded["height"] > 3 * height["height"]


def test_a_picture_is_described_on_request_by_keyboard_and_a_failure_is_retried(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, ("photo.png", "image/png", make_png(300, 200)))
    held: list[Route] = []
    wire.answer = held.append
    come(page)
    page.get_by_role("button", name="Describe photo.png").press("Enter")
    wait_for_held(page, held)
    waiting = page.get_by_text("Describing…")
    expect(waiting).to_be_visible()
    expect(page.locator(".reading-state")).to_be_focused()
    expect(page.get_by_role("button", name="Describe photo.png")).to_have_count(0)
    expect(page.get_by_role("button", name="Read the text photo.png")).to_be_visible()
    no_violation(page)
    reads_as("the provider does not answer; try again later")(held[0])
    again = page.get_by_role("button", name="Try again to read the description of photo.png")
    expect(again).to_be_focused()
    expect(page.get_by_text("No description: the provider does not answer; try again later")).to_be_visible()
    wire.answer = reads_as(reading("image.description", "A red square on white.", provider="openai", model="gpt"))
    page.keyboard.press("Enter")
    told = group(page, "Description", "photo.png")
    expect(told).to_contain_text("A red square on white.")
    expect(told).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="Description of photo.png is ready")).to_be_attached()
    assert [(one["as"], set(one)) for one in wire.asked] == 2 * [("description", {"ref", "as"})]
    no_violation(page)


def test_a_reading_shows_its_progress_and_how_it_ended_while_the_sound_plays_on(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    come(page)
    message, media = media_of(gateway, place)
    told = card(page, "talk.wav")
    play(told)
    wire.event(media["ref"], "transcript", "running")
    expect(told).to_contain_text("Transcribing…")
    expect(told.get_by_role("progressbar")).to_have_count(0)
    wire.event(media["ref"], "transcript", "running", done=61.5, total=3700)
    expect(told).to_contain_text("Transcribing… 1:01 of 1:01:40")
    expect(told.get_by_role("progressbar", name="Transcribing talk.wav")).to_have_js_property("value", 61.5)
    wire.event(media["ref"], "transcript", "skipped", reason="over the daily limit of 600 seconds")
    expect(told).to_contain_text("No transcript: over the daily limit of 600 seconds")
    expect(told.get_by_role("button", name="Transcribe talk.wav")).to_be_visible()
    wire.event(media["ref"], "transcript", "failed", reason="it does not answer")
    expect(told.get_by_role("button", name=re.compile("^Try again"))).to_be_visible()
    wire.event(media["ref"], "transcript", "running")
    wire.event(media["ref"], "transcript", "done")
    wire.readings["talk.wav"] = [reading("audio.transcription", "", *SPOKEN)]
    wire.changed(message)
    expect(group(page, "Transcript", "talk.wav")).to_contain_text("Let us begin.")
    expect(told.locator(".spinner")).to_have_count(0)
    assert told.locator("audio").evaluate("audio => !audio.paused && audio.currentTime > 0")


def test_a_long_sound_is_read_on_where_the_last_reading_ended(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    wire.answer = reads_as(
        reading("audio.transcription", "", *SPOKEN[:2], next=5.2),
        "web_0 has no more",
        reading("audio.transcription", "", SPOKEN[2], next=None),
    )
    come(page)
    page.get_by_role("button", name="Transcribe talk.wav").click()
    told = group(page, "Transcript", "talk.wav")
    expect(told.get_by_role("listitem")).to_have_count(2)
    told.get_by_role("button", name="Read on from 0:05 of talk.wav").click()
    expect(page.get_by_text("Not read on: web_0 has no more")).to_be_visible()
    expect(told.get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name=re.compile("^Try again")).click()
    expect(told.get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_role("button", name=re.compile("^Read on"))).to_have_count(0)
    assert [one.get("time_range") for one in wire.asked] == [None, "5-", "5-"]


def test_a_running_reading_is_forgotten_after_a_gap_and_taken_up_again(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    come(page)
    ref = media_of(gateway, place)[1]["ref"]
    wire.event(ref, "transcript", "running", done=1, total=8)
    expect(page.get_by_text("Transcribing…")).to_be_visible()
    wire.send({"type": "event", "event": "lost"})
    expect(page.get_by_text("Transcribing…")).to_have_count(0)
    expect(page.get_by_role("button", name="Transcribe talk.wav")).to_be_visible()
    wire.event(ref, "transcript", "running", done=4, total=8)
    expect(page.get_by_text("Transcribing… 0:04 of 0:08")).to_be_visible()


def test_a_scan_is_read_as_a_whole_or_page_by_page_and_a_text_document_is_not_offered(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, ("scan.pdf", "application/pdf", make_pdf(SCANNED)), ("a.txt", "text/plain", b"Text."))
    wire.answer = reads_as(
        reading("document.text", "The page says this.", provider="local_tesseract", model=""),
        "there is no OCR here; run `pip install belino[ocr]`",
        reading("document.text", f"All pages say this. {MARKUP}", provider="local_tesseract", model=""),
    )
    come(page)
    scan = card(page, "scan.pdf")
    expect(scan.get_by_role("button", name="Read the text scan.pdf")).to_be_visible()
    expect(card(page, "a.txt").locator(".glance")).to_contain_text("Text.")
    expect(page.get_by_role("button", name=re.compile("^Read the text"))).to_have_count(1)
    scan.get_by_role("button", name="Read scan.pdf", exact=True).click()
    reader(page).get_by_role("button", name="Read the text of this page").click()
    expect(reader(page)).to_contain_text("Read by local_tesseract")
    expect(reader(page)).to_contain_text("The page says this.")
    no_violation(page)
    page.keyboard.press("Escape")
    scan.get_by_role("button", name="Read the text scan.pdf").click()
    expect(scan).to_contain_text("No text: there is no OCR here; run `pip install belino[ocr]`")
    scan.get_by_role("button", name=re.compile("^Try again")).click()
    expect(scan.get_by_text(f"All pages say this. {MARKUP}")).to_be_visible()
    expect(scan.locator("summary", has_text="Text of scan.pdf")).to_be_focused()
    page.keyboard.press("Enter")
    expect(scan.get_by_text("All pages say this.")).to_be_hidden()
    assert [(one["as"], one.get("pages")) for one in wire.asked] == [("text", "1"), ("text", None), ("text", None)]


def test_one_picture_of_an_album_is_described_in_the_viewer_and_named_below_the_album(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, *((f"{name}.png", "image/png", make_png(40, 30)) for name in ("one", "two", "three")))
    wire.answer = reads_as(reading("image.description", "The second one.", attachment_index=1))
    come(page)
    expect(page.get_by_role("button", name=re.compile("^Describe"))).to_have_count(0)
    page.get_by_role("button", name="Open two.png").click()
    viewer = page.get_by_role("dialog")
    viewer.get_by_role("button", name="Describe two.png").click()
    expect(viewer).to_contain_text("The second one.")
    no_violation(page)
    viewer.get_by_role("button", name="Next picture").click()
    expect(viewer).not_to_contain_text("The second one.")
    page.keyboard.press("Escape")
    expect(group(page, "Description", "two.png")).to_contain_text("Description of two.png")


def test_a_price_is_told_before_the_click_and_what_nobody_reads_is_not_offered(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, ("photo.png", "image/png", make_png(300, 200)), TALK)
    wire.reads = {"image": [{"as": "description", "usd": "0.01 per page"}, {"as": "text", "usd": None}], "audio": []}
    come(page)
    describe = page.get_by_role("button", name="Describe photo.png (sent to a provider, $0.01 per page)")
    expect(describe).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Read the text .*price unknown"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Transcribe"))).to_have_count(0)


def test_why_tells_who_read_what_how_long_it_took_what_it_cost_and_what_failed_before(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    arrive(gateway, place, TALK)
    base = {"ref": "web:1", "as": "transcript", "model": "", "reason": "", "cached": False, "usd": None, "sent_to": ""}
    limited = {"outcome": "failed", "reason": f"429 {MARKUP}", "milliseconds": 310, "sent_to": "a.test"}
    foreign = {"outcome": "skipped", "reason": "speaks English only", "milliseconds": 0}
    # Newest first, as the gateway lists them.
    wire.attempts = [
        {**base, "provider": "deepgram", "outcome": "success", "cached": True, "milliseconds": 1},
        {**base, "provider": "deepgram", "model": "nova-3", "outcome": "success", "milliseconds": 2340, "usd": 0.0043,
         "sent_to": "b.test"},
        {**base, "provider": "groq", **limited},
        {**base, "provider": "local_moonshine", **foreign},
    ]  # fmt: skip
    come(page)
    page.get_by_role("button", name=re.compile("^Why")).first.click()
    why = page.get_by_role("dialog")
    expect(why.get_by_role("heading", name="Readings")).to_be_visible()
    rows = why.locator("section", has=page.get_by_role("heading", name="Readings")).get_by_role("listitem")
    expect(rows.nth(0)).to_contain_text("local_moonshine")
    expect(rows.nth(0)).to_contain_text("speaks English only")
    expect(rows.nth(1)).to_contain_text("310 ms · sent to a.test · price unknown")
    expect(rows.nth(1)).to_contain_text(f"429 {MARKUP}")
    expect(rows.nth(2)).to_contain_text("nova-3 · 2.3 s · sent to b.test · US$0.0043")
    expect(rows.nth(3)).to_contain_text("stored text, nothing was sent")
    no_violation(page)


def test_a_voice_answer_plays_beside_its_text_and_is_not_offered_for_reading(
    page: Page, come: Enter, gateway: GatewayProcess, place: str, wire: ReadingWire
) -> None:
    say(gateway, "It is ten past nine.", ("answer.wav", "audio/wav", hum()), conversation=place, voice=True)
    wait_for_messages(gateway, 2, conversation=place)
    wire.by_agent.add("answer.wav")
    come(page)
    answer = bubbles(page, "theirs").first
    expect(answer.locator(".file-name")).to_have_text("Voice message")
    expect(answer.locator(".words")).to_have_text("It is ten past nine.")
    play(answer)
    expect(answer.locator(".glance")).to_have_attribute("style", re.compile("--played: [1-9]"))
    expect(answer.get_by_role("button", name=re.compile("^Transcribe"))).to_have_count(0)


def test_readings_fit_a_narrow_screen_in_the_dark(
    open_page: OpenPage, come: Enter, gateway: GatewayProcess, place: str
) -> None:
    arrive(gateway, place, ("photo.png", "image/png", make_png(300, 200)))
    say(gateway, "", TALK, conversation=place)
    wait_for_messages(gateway, 4, conversation=place)
    page = open_page(width=320, height=640, scheme="dark")
    wire = ReadingWire(place=place)
    wire.join(page)
    long = spoken(3_700, f"{'wide' * 40} {MARKUP}", "A speaker with a long name")
    wire.readings["talk.wav"] = [reading("audio.transcription", "", long, *SPOKEN * 3, uncertain=True, model="m" * 60)]
    wire.readings["photo.png"] = [reading("image.description", "word " * 200)]
    come(page)
    expect(group(page, "Transcript", "talk.wav")).to_be_visible()
    wire.event(media_of(gateway, place)[1]["ref"], "text", "failed", reason="no" * 120)
    expect(page.get_by_text(re.compile("^No text: nono"))).to_be_visible()
    no_sideways_scroll(page)
    no_violation(page)

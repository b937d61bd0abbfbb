"""Files on the page: seen before they are opened, read page by page, and fetched only when somebody asks."""

import re

import pytest
from playwright.sync_api import Page, Request, Route, expect

from belino.testing import GatewayProcess
from belino.testing.documents import document_files
from belino.testing.files import make_zip
from browser.acting import (
    Enter,
    OpenPage,
    answered,
    card,
    hum,
    layout_shift,
    looked_at,
    messages,
    no_sideways_scroll,
    no_violation,
    play,
    reader,
    say,
)
from media.videos import video
from readers.made import SCANNED, line, make_pdf

pytestmark = pytest.mark.slow

PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
MARKUP = "<img src=x onerror=alert(1)>"
REPORT = make_pdf(*(line(f"This is what page {number} says") for number in range(1, 12)), SCANNED)


def test_a_document_shows_its_first_lines_and_is_read_page_by_page_by_keyboard_alone(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    say(gateway, "", ("report.pdf", "application/pdf", REPORT))
    enter(page)
    report = looked_at(page, "report.pdf")
    expect(report).to_contain_text("This is what page 1 says")
    expect(report).to_contain_text("Page 1 of 12")
    door = report.get_by_role("button", name="Read report.pdf")
    door.focus()
    page.keyboard.press("Enter")
    expect(reader(page).get_by_role("region", name="report.pdf")).to_be_focused()
    expect(reader(page)).to_contain_text("This is what page 1 says")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    expect(reader(page)).to_contain_text("This is what page 2 says")
    expect(reader(page).get_by_role("status")).to_have_text("Page 2 of 12")
    field = reader(page).get_by_role("spinbutton", name=re.compile("^Page"))
    field.fill("11")
    page.keyboard.press("Enter")
    expect(reader(page)).to_contain_text("This is what page 11 says")
    field.fill("99")
    page.keyboard.press("Enter")
    expect(field).to_have_value("11")
    reader(page).get_by_role("button", name="Next").click()
    expect(reader(page).get_by_role("img", name="Page 12, a picture without text")).to_be_visible()
    no_violation(page)
    page.keyboard.press("Escape")
    expect(door).to_be_focused()


def test_a_long_text_has_parts_and_nothing_in_it_is_markup(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    words = f"Look: {MARKUP} \u202ereversed\u202c " + " ".join(f"word{number}" for number in range(4_000))
    say(gateway, "", ("long.txt", "text/plain", words.encode()))
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    enter(page)
    expect(looked_at(page, "long.txt")).to_contain_text(f"Look: {MARKUP} reversed word0")
    page.get_by_role("button", name="Read long.txt").click()
    body = reader(page).get_by_role("region")
    expect(body).to_contain_text("word100 ")
    steps = reader(page).get_by_role("button", name="Next")
    while steps.is_visible() and steps.get_attribute("aria-disabled") == "false":
        steps.click()
        expect(body).not_to_have_attribute("aria-busy", "true")
    expect(body).to_contain_text("word3999")
    assert page.locator("#reader img, .glance img").count() == 0
    assert dialogs == []


def test_an_archive_shows_what_is_in_it(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    pack = make_zip({f"{MARKUP}/{'deep/' * 30}{number}.txt": "x" * number for number in range(1, 450)})
    say(gateway, "", ("pack.zip", "application/zip", pack))
    enter(page)
    expect(looked_at(page, "pack.zip")).to_contain_text("Entries 1–200")
    page.get_by_role("button", name="Look inside pack.zip").click()
    expect(reader(page)).to_contain_text("449 files")
    expect(reader(page)).to_contain_text(f"{MARKUP}/deep/")
    expect(reader(page)).to_contain_text("/1.txt, 1B")
    expect(reader(page)).not_to_contain_text("/200.txt, 200B")
    more = reader(page).get_by_role("button", name="Show more")
    more.click()
    expect(reader(page)).to_contain_text("/200.txt, 200B")
    expect(more).to_be_hidden()
    reader(page).get_by_role("button", name="Next").click()
    expect(reader(page)).to_contain_text("/201.txt, 201B")
    expect(reader(page).get_by_role("status")).to_contain_text("Entries 201–400")


def test_a_card_names_a_type_that_people_know_and_lines_up_the_columns_of_a_table(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    files = document_files(paragraphs=2)
    enter(page)
    say(gateway, "", ("talk.pptx", PPTX, files["talk.pptx"]), ("people.csv", "text/csv", files["people.csv"]))
    expect(looked_at(page, "talk.pptx").locator(".file-facts")).to_have_text(re.compile(r"KB · PPTX$"))
    expect(looked_at(page, "people.csv").locator(".file-facts")).to_have_text(re.compile(r" · text/csv$"))
    expect(card(page, "people.csv").locator(".glance-words")).to_have_css("font-family", re.compile("mono"))
    page.get_by_role("button", name="Read people.csv").click()
    expect(reader(page).locator(".reader-text")).to_have_css("font-family", re.compile("mono"))


def test_a_sound_shows_how_loud_and_how_long_it_is_before_a_byte_of_it_is_loaded(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    say(gateway, "", ("hum.wav", "audio/wav", hum()))
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    enter(page)
    hummed = looked_at(page, "hum.wav")
    expect(hummed.get_by_role("img", name="Waveform, 0:03")).to_be_visible()
    expect(hummed).to_contain_text("0:03 · ")
    assert [request.url for request in asked if request.url.endswith(".wav")] == []
    play(hummed)
    expect(hummed.locator(".glance")).to_have_attribute("style", re.compile("--played: [1-9]"))


def test_a_video_shows_its_poster_and_length_before_it_is_played(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    film = video(40, form="webm", codec="libvpx", size=(320, 180))
    say(gateway, "", ("film.webm", "video/webm", film))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    enter(page)
    expect(looked_at(page, "film.webm").locator("video")).to_have_attribute("poster", re.compile(r"/picture$"))
    expect(card(page, "film.webm")).to_contain_text("0:04 · ")
    with page.expect_response(re.compile(r"/picture$")) as drawn:
        page.reload()
    assert drawn.value.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert drawn.value.headers["x-content-type-options"] == "nosniff"
    assert [url for url in asked if url.endswith(".webm")] == []


def test_what_cannot_be_shown_says_why_on_its_card(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    say(
        gateway,
        "",
        ("broken.pdf", "application/pdf", b"%PDF-1.7\nnot at all"),
        ("broken.mp4", "video/mp4", video(5)[:300]),
        ("broken.wav", "audio/wav", hum()[:20]),
        ("broken.heic", "image/heic", b"\0\0\0\x18ftypheic" + bytes(60)),
    )
    enter(page)
    for name in ("broken.pdf", "broken.mp4", "broken.wav", "broken.heic"):
        expect(looked_at(page, name).locator(".file-trouble")).to_have_text(re.compile("^No preview: .{10}"))
    no_violation(page)


def test_previews_that_come_late_move_nothing(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    say(gateway, "", ("report.pdf", "application/pdf", REPORT), ("hum.wav", "audio/wav", hum()))
    say(gateway, "", ("film.mp4", "video/mp4", video(20)), ("pack.zip", "application/zip", make_zip({"a.txt": "x"})))
    held: list[Route] = []
    late = True
    page.route("**/preview?*", lambda route: held.append(route) if late else route.continue_())
    page.set_viewport_size({"width": 1024, "height": 3000})
    enter(page)
    answered(page, 2)
    expect(page.locator(".glance[aria-busy]")).to_have_count(4)
    places = [one.bounding_box() for one in messages(page).all()]
    late = False
    for route in held:
        route.continue_()
    expect(page.locator(".glance[data-kind]")).to_have_count(3)
    expect(page.locator("video[poster]")).to_be_visible()
    assert [one.bounding_box() for one in messages(page).all()] == places
    assert layout_shift(page) < 0.1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_everybody_can_use_previews_at_every_width(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess, width: int, scheme: str
) -> None:
    name = f"{'long' * 30}.pdf"
    say(gateway, "", (name, "application/pdf", REPORT), ("hum.wav", "audio/wav", hum()))
    say(gateway, "", ("film.mp4", "video/mp4", video(20)), ("broad.txt", "text/plain", b"broad" * 2_000))
    page = enter(open_page(width=width, height=2_400, scheme=scheme))
    expect(page.locator(".glance[data-kind]")).to_have_count(3)
    expect(page.locator("video[poster]")).to_be_visible()
    no_sideways_scroll(page)
    no_violation(page)
    page.get_by_role("button", name="Read broad.txt").click()
    expect(reader(page)).to_contain_text("broadbroad")
    assert page.locator("#reader-body").evaluate("body => body.scrollWidth <= body.clientWidth")
    no_violation(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name=f"Read {name}").click()
    expect(reader(page).get_by_role("button", name="Next")).to_be_in_viewport(ratio=1)
    expect(reader(page).get_by_role("button", name="Close the file")).to_be_in_viewport(ratio=1)
    no_violation(page)

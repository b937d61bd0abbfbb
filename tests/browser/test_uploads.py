"""Files on their way from the page to the gateway: by button, drop and paste, resumed, refused with a reason."""

import random

import pytest
from playwright.sync_api import Page, Request, Route, expect

from belino.testing import GatewayProcess, make_png
from browser.acting import Enter, answered, attach, bubbles, chip, send, wait_for_held

pytestmark = pytest.mark.slow

PIECE = 4 * 1024 * 1024

TRANSFER = """([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name, { type: "text/plain" }));
  return transfer;
}"""


def test_a_file_dropped_anywhere_is_attached(page: Page, enter: Enter) -> None:
    enter(page)
    transfer = page.evaluate_handle(TRANSFER, ["dropped.txt", "three short words"])
    page.dispatch_event("#sidebar", "dragenter", {"dataTransfer": transfer})
    expect(page.get_by_text("Drop to attach")).to_be_visible()
    page.dispatch_event("#sidebar", "drop", {"dataTransfer": transfer})
    expect(page.get_by_text("Drop to attach")).to_be_hidden()
    expect(chip(page, "dropped.txt", "done")).to_be_visible()


def test_a_pasted_file_is_attached_and_pasted_text_is_text(page: Page, enter: Enter) -> None:
    enter(page)
    paste = """(target, transfer) => target.dispatchEvent(
      new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }))"""
    box = page.get_by_role("textbox", name="Message")
    box.evaluate(paste, page.evaluate_handle(TRANSFER, ["pasted.txt", "words"]))
    expect(chip(page, "pasted.txt", "done")).to_be_visible()
    text_only = page.evaluate_handle("() => { const t = new DataTransfer(); t.setData('text/plain', 'x'); return t; }")
    assert box.evaluate(paste, text_only), "the browser's own paste was prevented"


def test_a_message_sent_during_an_upload_leaves_when_the_upload_is_done(page: Page, enter: Enter) -> None:
    held: list[Route] = []
    page.route("**/api/uploads/*", lambda route: held.append(route), times=1)
    enter(page)
    with page.expect_request("**/api/uploads/*"):
        attach(page, ("a.png", "image/png", make_png(640, 480)))
    send(page, "what is this?")
    expect(page.get_by_text("Sends when the upload is done")).to_be_visible()
    expect(bubbles(page, "mine")).to_have_count(0)
    wait_for_held(page, held)
    held[0].continue_()
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("640×480")
    expect(page.get_by_role("list", name="Attachments")).to_be_hidden()


def test_a_file_over_the_limit_says_so_and_does_not_hold_up_the_others(
    page: Page, enter: Enter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{number}.txt" for number in range(4)]
    for path in paths:
        path.write_text(path.name)
    large = folder / "large.bin"
    with large.open("wb") as file:
        file.truncate(100 * 1024 * 1024 + 1)
    enter(page)
    page.locator("#files").set_input_files([large, *paths])
    expect(chip(page, "large.bin", "failed")).to_contain_text("Over the limit of 100 MB")
    for path in paths:
        expect(chip(page, path.name, "done")).to_be_visible()
    send(page, "four of five")
    answered(page)
    expect(bubbles(page, "mine").locator(".file")).to_have_count(4)
    expect(chip(page, "large.bin", "failed")).to_be_visible()
    page.get_by_role("button", name="Remove large.bin").click()
    expect(page.get_by_role("list", name="Attachments")).to_be_hidden()


def test_files_that_do_not_fit_into_one_message_are_told_of_and_stay_for_the_next(page: Page, enter: Enter) -> None:
    enter(page)
    attach(page, *((f"{number}.txt", "text/plain", b"x") for number in range(34)))
    expect(chip(page, "33.txt", "done")).to_be_attached()
    note = page.get_by_text("A message takes 32 files: 2 will stay for the next one")
    expect(note).to_be_visible()
    send(page, "most of them")
    answered(page)
    expect(bubbles(page, "mine").locator(".file")).to_have_count(32)
    expect(page.locator(".chip")).to_have_count(2)
    expect(note).to_be_hidden()


def test_an_upload_goes_on_after_a_reload_from_where_it_was(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    content = random.Random(1).randbytes(2 * PIECE + 1000)
    held: list[Route] = []

    def hold_the_second_piece(route: Route) -> None:
        if _offset(route.request) == PIECE and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/uploads/*", hold_the_second_piece)
    enter(page)
    with page.expect_request(lambda request: _offset(request) == PIECE):
        attach(page, ("large.bin", "application/octet-stream", content))
    expect(chip(page, "large.bin", "uploading")).to_be_visible()
    offsets: list[int] = []
    page.on("request", lambda request: offsets.append(_offset(request)) if request.method == "PATCH" else None)
    page.reload()
    expect(chip(page, "large.bin", "done")).to_be_visible()
    assert offsets == [PIECE, 2 * PIECE]
    send(page, "resumed")
    answered(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download large.bin").click()
    assert download.value.path().read_bytes() == content
    assert page.evaluate("indexedDB.databases().then(all => all.length)") == 1


def test_an_upload_tries_again_by_itself_after_a_failure(page: Page, enter: Enter) -> None:
    failures: list[str] = []

    def fail_twice(route: Route) -> None:
        if route.request.method == "PATCH" and len(failures) < 2:
            failures.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route("**/api/uploads/*", fail_twice)
    enter(page)
    attach(page, ("a.txt", "text/plain", b"some words"))
    expect(chip(page, "a.txt", "done")).to_be_visible()
    assert len(failures) == 2


def test_a_file_that_waited_in_the_page_for_longer_than_the_gateway_keeps_it_is_uploaded_again(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    page.clock.install()
    enter(page)
    with page.expect_response(lambda response: response.url.endswith("/api/uploads")) as begun:
        attach(page, ("a.png", "image/png", make_png(64, 48)))
    expect(chip(page, "a.png", "done")).to_be_visible()
    assert gateway.call("DELETE", f"/api/uploads/{begun.value.json()['upload_id']}")[0] == 204
    page.clock.fast_forward("55:00")
    send(page, "what is this?")
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("64×48")


def test_a_removed_file_is_given_up_at_the_gateway_too(page: Page, enter: Enter) -> None:
    enter(page)
    attach(page, ("a.txt", "text/plain", b"some words"))
    expect(chip(page, "a.txt", "done")).to_be_visible()
    with page.expect_response(lambda response: response.request.method == "DELETE") as given_up:
        page.get_by_role("button", name="Remove a.txt").click()
    assert given_up.value.status == 204
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def _offset(request: Request) -> int:
    return int(request.headers.get("upload-offset", "-1"))

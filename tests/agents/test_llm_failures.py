"""What providers say when they refuse, and what belino makes of it."""

import pytest

from belino.agents.llm.failures import Blocked, Cut, Declined, understand
from belino.agents.llm.providers import choose
from belino.net.redact import Secret

MANY = "for many-image requests: 2000 pixels"
SAID = [
    ("anthropic", 400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 bytes > 5", "bytes"),
    (
        "anthropic",
        400,
        f"messages.7.content.2.image.source: At least one of the image dimensions exceed max allowed size {MANY}",
        "pixels",
    ),
    ("anthropic", 400, "Could not process image", "read"),
    (
        "anthropic",
        400,
        "The image was specified using the image/jpeg media type, but the image appears to be image/png",
        "type",
    ),
    ("anthropic", 400, "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'", "type"),
    ("anthropic", 413, "Request exceeds the maximum size", "bytes"),
    (
        "openai",
        400,
        "You uploaded an unsupported image. Please make sure your image has of one the following formats",
        "type",
    ),
    ("openai", 400, "Your input image may contain content that is not allowed by our safety system.", "content"),
    ("openai", 400, "The image data you provided does not represent a valid image.", "read"),
    ("openai", 400, "Invalid content type. image_url is only supported by certain models.", "sees no pictures"),
    ("google", 400, "Unable to process input image. Please retry or report", "read"),
    ("google", 400, "Provided image is not valid.", "read"),
    ("google", 400, "Unsupported MIME type: image/tiff", "type"),
    ("google", 400, "Request payload size exceeds the limit: 20971520 bytes.", "bytes"),
    ("google", 400, "Image input modality is not enabled for models/some", "sees no pictures"),
    ("google", 400, "Request contains an invalid argument.", "may be"),
    ("groq", 400, "image exceeds the maximum of 33177600 pixels", "pixels"),
    ("groq", 400, "invalid image data", "read"),
    ("groq", 400, "messages[0].content must be a string", "sees no pictures"),
    ("ollama", 500, "Failed to load image or audio file", "read"),
    ("ollama", 500, "this model is missing data required for image input", "sees no pictures"),
    ("ollama", 400, "something else about an image", "would not take"),
    ("anthropic", 400, "messages.4.content.0.pdf.source: A maximum of 100 PDF pages may be provided.", "pages"),
    ("anthropic", 400, "The PDF specified is password protected.", "password"),
    ("anthropic", 400, "messages.0.content.1.pdf.source.base64.data: The PDF specified was not valid.", "read"),
    ("anthropic", 400, "Could not process PDF", "read"),
    (
        "openai",
        400,
        "Invalid file data: 'messages[1].content[0].file.file_data'. Expected a base64-encoded data URL",
        "read",
    ),
    ("openai", 400, "The audio file could not be decoded or its format is not supported.", "read"),
    ("openai", 400, "Invalid content type. input_audio is only supported by certain models.", "hears no sounds"),
    (
        "openai",
        400,
        "Invalid value: 'file'. Supported values are: 'text', 'refusal', 'image_url', and 'input_audio'.",
        "takes no documents",
    ),
    ("google", 400, "The document has no pages.", "read"),
    ("google", 400, "Unsupported MIME type: audio/amr", "type"),
]


def chosen(provider: str):  # type: ignore[no-untyped-def]
    return choose(f"{provider}:some", base_url=None, api="auto")


def failure(provider: str, status: int, message: str, **more: object):  # type: ignore[no-untyped-def]
    body = {"error": {"message": message, "type": "invalid_request_error"}}
    return understand(Declined(status, body, **more), chosen(provider))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("provider", "status", "message", "why"), SAID, ids=[f"{a}-{n}" for n, (a, *_) in enumerate(SAID)]
)
def test_a_refused_picture_is_known_by_the_providers_own_words(
    provider: str, status: int, message: str, why: str
) -> None:
    found = failure(provider, status, message)
    assert found.kind == "media"
    assert why in found.why


def test_the_message_that_holds_the_picture_is_known_where_it_is_named() -> None:
    assert (
        failure("anthropic", 400, "messages.7.content.2.image.source.base64: image exceeds 5 MB maximum").message == 7
    )
    assert failure("anthropic", 400, "Could not process image").message is None


@pytest.mark.parametrize("status", [401, 403, 404, 429])
def test_a_key_a_name_and_a_limit_are_never_a_picture(status: int) -> None:
    assert failure("openai", status, "about an image").kind != "media"


def test_other_refusals_are_told_in_the_providers_words_without_secrets() -> None:
    Secret("KEY", "canary-secret-abc")
    found = failure("openai", 400, "temperature of canary-secret-abc\nis not for " + "you " * 200)
    assert found.kind == "lasting"
    assert "temperature of ••• is not for you" in found.sentence
    assert len(found.sentence) < 300


@pytest.mark.parametrize(
    ("provider", "status", "message"),
    [
        ("anthropic", 403, "Your credit balance is too low to access the Anthropic API."),
        ("openai", 403, "You exceeded your current quota, please check your plan and billing details."),
        ("openai", 402, "Insufficient credits"),
    ],
)
def test_an_account_without_credit_is_no_wrong_key(provider: str, status: int, message: str) -> None:
    found = failure(provider, status, message)
    assert "no credit left" in found.sentence and found.kind == "lasting"


@pytest.mark.parametrize("status", [401, 403, 404, 400])
def test_advice_for_the_operator_is_not_what_people_read(status: int) -> None:
    error = failure("openai", status, "temperature is not for you").error()
    assert error.says and "belino" not in error.says and "temperature" not in error.says


def test_google_says_in_its_body_how_long_to_wait() -> None:
    body = {"error": {"code": 429, "details": [{"retryDelay": "7s"}]}}
    found = understand(Declined(429, body), chosen("google"))
    assert (found.kind, found.wait) == ("passing", 7.0)


def test_a_filter_that_blames_the_picture_is_known() -> None:
    assert understand(Blocked("IMAGE_SAFETY"), chosen("google")).kind == "media"
    assert understand(Blocked("PROHIBITED_CONTENT"), chosen("google")).kind == "lasting"
    assert "broke off" in understand(Cut(), chosen("google")).sentence

"""Shapes of the Cloud API's webhooks and answers: ids, people, messages and errors as Meta writes them."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from belino.testing.file_server import FakeUpload

Json = dict[str, Any]

ACCOUNT = "102290129340398"
NUMBER_ID = "106540352242922"
NUMBER = "15550783881"
NAME = "Belino Demo"
TEXT_CHARS, CAPTION_CHARS = 4_096, 1_024
MB = 1024 * 1024
_OFFICE = "application/vnd.openxmlformats-officedocument."
SIZES: Mapping[str, int] = {"audio": 16 * MB, "video": 16 * MB, "image": 5 * MB, "document": 100 * MB}
STICKER_BYTES, MOVING_STICKER_BYTES = 100 * 1024, 500 * 1024
TYPES: Mapping[str, frozenset[str]] = {
    "audio": frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg", "audio/opus"}),
    "video": frozenset({"video/mp4", "video/3gpp"}),
    "image": frozenset({"image/jpeg", "image/png"}),
    "sticker": frozenset({"image/webp"}),
    "document": frozenset(
        {
            "text/plain", "application/pdf", "application/msword", "application/vnd.ms-excel",
            "application/vnd.ms-powerpoint", f"{_OFFICE}wordprocessingml.document",
            f"{_OFFICE}spreadsheetml.sheet", f"{_OFFICE}presentationml.presentation",
        }
    ),
}  # fmt: skip
TITLES: Mapping[int, str] = {
    33: "Parameter value is not valid",
    100: "Invalid parameter",
    190: "Access token has expired",
    2200: "Callback verification failed",
    80007: "Rate limit issues",
    130429: "Rate limit hit",
    131008: "Required parameter is missing",
    131009: "Parameter value is not valid",
    131021: "Recipient cannot be sender",
    131026: "Message undeliverable",
    131031: "Business Account locked",
    131047: "Re-engagement message",
    131051: "Unsupported message type",
    131053: "Media upload error",
    131056: "(Business Account, Consumer Account) pair rate limit hit",
    132000: "Template Param Count Mismatch",
    132001: "Template does not exist",
}


def message_id(number: int) -> str:
    """A message's id: `wamid.` and base64, as Meta writes it."""
    digest = hashlib.sha256(f"message {number}".encode()).digest()
    return f"wamid.{base64.b64encode(b'belino' + digest[:21]).decode()}"


def error_shape(code: int, details: str = "", **more: Any) -> Json:
    """An error as in a webhook."""
    title = TITLES.get(code, "Something went wrong")
    return {"code": code, "title": title, "message": title, "error_data": {"details": details or title}, **more}


def refusal_shape(code: int, details: str = "", *, subcode: int = 0) -> Json:
    """An error as the answer to a call."""
    title = TITLES.get(code, "Something went wrong")
    told: Json = {"message": f"(#{code}) {title}", "type": "OAuthException", "code": code, "fbtrace_id": "Abelino0000"}
    if subcode:
        told["error_subcode"] = subcode
    if details:
        told["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return {"error": told}


def envelope(value: Json, *, number_id: str, field: str = "messages") -> Json:
    """A webhook with one change about a phone number."""
    metadata = {"display_phone_number": NUMBER, "phone_number_id": number_id}
    told = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": ACCOUNT, "changes": [{"value": told, "field": field}]}],
    }


def file_shape(kind: str, media_id: str, upload: FakeUpload, content: bytes, caption: str) -> Json:
    """A file of a message: checksums in webhooks are in base64."""
    told: Json = {
        "mime_type": upload.mime or "application/octet-stream",
        "sha256": base64.b64encode(hashlib.sha256(content).digest()).decode(),
        "id": media_id,
    }
    if caption:
        told["caption"] = caption
    if kind == "document" and upload.name:
        told["filename"] = upload.name
    if kind == "audio":
        told["voice"] = False
    if kind == "sticker":
        told["animated"] = False
    return told | dict(upload.extra)

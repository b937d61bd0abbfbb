"""Errors of the Cloud API: Meta's codes in words, and what each means for a parcel.

https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
"""

from collections.abc import Mapping

from belino.domain.errors import AdapterError, RateLimited, Unauthorized, Undeliverable, WindowClosed, Withheld
from belino.domain.message import DeliveryState
from belino.net.json_fields import Raw, line, table, whole
from belino.net.redact import redact

WINDOW_CLOSED, PAIR_LIMIT = 131047, 131056
THROUGHPUT, ACCOUNT_CALLS, APP_CALLS, SPAM_LIMIT = 130429, 80007, 4, 131048
NO_SUCH_OBJECT = 100  # also for an id that is unknown, or was deleted
_WAITS = {PAIR_LIMIT: 0.0, THROUGHPUT: 1.0, ACCOUNT_CALLS: 60.0, APP_CALLS: 60.0}
# The operator has to act: no answer is lost until then.
_ACCOUNT = (0, 3, 10, 190, 368, 131005, 131031, 131042, 131045, 133010, *range(200, 300))
_MEANINGS = {WINDOW_CLOSED: WindowClosed, SPAM_LIMIT: Withheld, **dict.fromkeys(_ACCOUNT, Unauthorized)}
_PASSING = frozenset({1, 2, 131000, 131016, 131057, 133004})

WORDS: Mapping[int, str] = {
    0: "Meta does not accept the access token; make a new one under System users",
    3: "the access token lacks the permission whatsapp_business_messaging",
    4: "the app has made too many calls",
    10: "the access token lacks the permission whatsapp_business_messaging, or it was withdrawn",
    190: "the access token has expired; make a permanent one under System users",
    368: "the account is blocked for a time, for a violation of WhatsApp's policies",
    80007: "the WhatsApp Business account has made too many calls",
    130429: "the number has reached its limit of messages per second",
    130472: "WhatsApp did not deliver it, because the person's number is part of an experiment",
    130497: "the account may not write to people in this country",
    131005: "the access token lacks a permission for this number",
    131008: "Meta misses a parameter",
    **dict.fromkeys((100, 131009), "Meta does not accept a parameter"),
    131021: "the number cannot write to itself",
    131026: "WhatsApp cannot deliver it: the person is not there, has an old version, or has not accepted the terms",
    131030: "a test number may write only to numbers on its list (App Dashboard, WhatsApp, API Setup)",
    131031: "the account is locked; see Business Support in Meta Business Suite",
    131037: "the number has no approved display name yet",
    131042: "there is a problem with the account's payment; see the billing settings",
    131047: "more than 24 hours have passed since the person last wrote",
    131048: "too many messages of this number were blocked or reported, so that WhatsApp limits it",
    131049: "WhatsApp did not deliver it, to keep the person's number of business messages low",
    131050: "the person does not want such messages",
    131051: "WhatsApp does not support this kind of message",
    131052: "the person's file could not be downloaded by WhatsApp",
    131053: "WhatsApp could not read the file",
    131056: "too many messages to this person in a short time",
    131057: "the account is in maintenance",
    132000: "the template has another number of variables; it needs exactly one, {{1}}",
    132001: "there is no such template in this language, or it is not approved",
    132005: "the text is too long for the template",
    **dict.fromkeys((132015, 132016), "the template is paused, or disabled, for its quality"),
    **dict.fromkeys((131045, 133010), "the number is not registered for the Cloud API"),
}


class WhatsAppRefused(Undeliverable):
    """A refused call, with Meta's code; no retry helps."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def in_words(error: Raw) -> str:
    """Meta's error, from an answer or a webhook, as a sentence with its code."""
    code = whole(error, "code")
    details = line(table(error, "error_data"), "details") or line(error, "details")
    told = redact(details or line(error, "message") or line(error, "title"))
    known = WORDS.get(code) if code is not None else None
    said = f"{known} ({told})" if known and told and code in (100, 131008, 131009, 131053) else known or told
    return f"{said or 'Meta gives no reason'}{'' if code is None else f' [{code}]'}"


def refusal(method: str, error: Raw, *, wait: float | None) -> AdapterError | None:
    """An error object as a domain error; None without a code. `wait`: the seconds that the answer asks for."""
    code, said = whole(error, "code"), in_words(error)
    if code is None:
        return None
    if code in _WAITS:
        wait = _WAITS[code] if wait is None else wait
        return RateLimited(said, retry_after=wait, is_global=code != PAIR_LIMIT)
    if code in _MEANINGS:
        return _MEANINGS[code](said)
    if code in _PASSING:
        return AdapterError(f"Meta failed at {method}: {said}")
    return WhatsAppRefused(said, code=code)


FAILURES = {
    PAIR_LIMIT: DeliveryState.AGAIN,
    THROUGHPUT: DeliveryState.AGAIN,
    WINDOW_CLOSED: DeliveryState.WINDOW_CLOSED,
    SPAM_LIMIT: DeliveryState.HELD,
}
"""What a status that reports a message as failed means, by its code; other failures last."""

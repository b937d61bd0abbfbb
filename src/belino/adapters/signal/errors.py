"""Errors of the daemon's calls as domain errors: its codes, and the results that Signal gives for each recipient."""

import re
from collections import Counter
from collections.abc import Sequence

from belino.domain.errors import AdapterError, NothingToEdit, RateLimited, Unauthorized, Undeliverable
from belino.net.json_fields import Raw, count, line, table, tables, whole, words
from belino.net.message_lines import joined
from belino.net.redact import redact

# signal-cli's own codes, and JSON-RPC's: https://github.com/AsamK/signal-cli/blob/master/man/signal-cli.1.adoc
USER_ERROR, UNTRUSTED_KEY, RATE_LIMIT, NO_METHOD, INVALID_PARAMS = -1, -4, -5, -32601, -32602
SUCCESS, UNTRUSTED, UNREGISTERED = "SUCCESS", "IDENTITY_FAILURE", "UNREGISTERED_FAILURE"
SAFETY_NUMBER = "safety number"
RECIPIENTS = "recipients"
LINK = "`belino setup signal` links it"
# A challenge without a time: Signal's own waits are from minutes to a day.
DEFAULT_WAIT = 300.0

_FAILURES = {
    UNTRUSTED: "whose safety number changed",
    UNREGISTERED: "no longer on Signal",
    "RATE_LIMIT_FAILURE": "that Signal asks to wait with",
    "NETWORK_FAILURE": "that the daemon did not reach",
    "INVALID_PRE_KEY_FAILURE": "whose devices gave no valid keys",
}
_REFUSED = {
    "is not registered": "this person is not on Signal, or no longer",
    "not a group member|group not found|invalid group id": "the account is not in this group, or no longer",
    "only admins|not allowed|announcement": "only administrators may write in this group",
    "attachmentinvalid|failed to add attachment": "the daemon could not read the file",
    r"\[413\]": "Signal takes no file that large",
}
"""Sentences by a pattern in what the daemon says."""


class SignalRefused(AdapterError):
    """The daemon refused a call; the meaning depends on the call."""

    def __init__(self, message: str, *, code: int, said: str, results: Sequence[Raw] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.said = said
        self.results = results
        """For each recipient, where the call sends something."""


def error_of(method: str, raw: Raw) -> AdapterError:
    """The error of a call: https://www.jsonrpc.org/specification#error_object."""
    code, said = whole(raw, "code") or 0, redact(line(raw, "message"))
    results = tables(table(table(raw, "data"), "response"), "results")
    if code == INVALID_PARAMS and "account" in said.lower():
        return Unauthorized(f"the daemon does not serve this account ({said}); {LINK}")
    if code == RATE_LIMIT:
        return _rate_limit(method, results)
    if "not registered" in said.lower() and "user" not in said.lower():
        return Unauthorized(f"Signal no longer knows this device ({said}); {LINK}")
    return SignalRefused(
        f"signal-cli refused {method}: {said or f'code {code}'}", code=code, said=said, results=results
    )


def _rate_limit(method: str, results: Sequence[Raw]) -> RateLimited:
    waits = [count(result, "retryAfterSeconds") or 0 for result in results]
    wait = float(max(waits, default=0)) or DEFAULT_WAIT
    captcha = any(words(result, "token") for result in results)
    help_out = "; a captcha ends it sooner: signal-cli submitRateLimitChallenge" if captcha else ""
    return RateLimited(f"Signal asks to wait {wait:g} seconds before {method}{help_out}", retry_after=wait)


def refusal(error: SignalRefused, *, edits: bool = False) -> AdapterError:
    """A refused call that sends something, as a domain error; an edit without its message is sent as a new one."""
    if edits and error.code == USER_ERROR and not error.results:
        return NothingToEdit("the message that was to be changed is gone, or can no longer be")
    said = error.said.lower()
    failed = {words(result, "type") for result in error.results} - {SUCCESS}
    if error.code == UNTRUSTED_KEY or failed == {UNTRUSTED}:
        whose = [table(each, "recipientAddress") for each in error.results if words(each, "type") == UNTRUSTED]
        who = joined(*(words(each, "number") or words(each, "uuid") for each in whose)) or "this person"
        return Undeliverable(f"the safety number of {who} changed; it is not sent before you trust the new one")
    if failed == {UNREGISTERED}:
        return Undeliverable(_REFUSED["is not registered"])
    if sentence := next((sentence for pattern, sentence in _REFUSED.items() if re.search(pattern, said)), ""):
        return Undeliverable(sentence)
    if error.code == USER_ERROR and not failed and "failed to send" not in said:
        return Undeliverable(f"signal-cli will not send it: {error.said or error.code}")
    return error


def not_reached(results: Sequence[Raw]) -> str:
    """Those whom a message to a group did not reach, in words; empty if it reached all."""
    failed = Counter(words(result, "type") for result in results if words(result, "type") not in ("", SUCCESS))
    if not failed:
        return ""
    parts = ", ".join(f"{times} {_FAILURES.get(kind, kind.lower())}" for kind, times in failed.items())
    return f"the last message to a group did not reach {sum(failed.values())} of {len(results)}: {parts}"

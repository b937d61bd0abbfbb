"""Errors of the daemon's calls as domain errors: its codes, and the results that Signal gives for each recipient."""

from collections import Counter
from collections.abc import Sequence

from belino.domain.errors import AdapterError, NothingToEdit, RateLimited, Unauthorized, Undeliverable
from belino.net.json_fields import Raw, count, line, table, tables, whole, words
from belino.net.redact import redact

# signal-cli's own codes, and JSON-RPC's: https://github.com/AsamK/signal-cli/blob/master/man/signal-cli.1.adoc
USER_ERROR, IO_ERROR, UNTRUSTED_KEY, RATE_LIMIT, CAPTCHA_REJECTED = -1, -3, -4, -5, -6
NO_METHOD, INVALID_PARAMS = -32601, -32602
SUCCESS, UNTRUSTED, UNREGISTERED, LIMITED = (
    "SUCCESS",
    "IDENTITY_FAILURE",
    "UNREGISTERED_FAILURE",
    "RATE_LIMIT_FAILURE",
)
SAFETY_NUMBER = "safety number"
RECIPIENTS = "recipients"
LINK = "`belino setup signal` links it"
# A challenge without a time: Signal's own waits are from minutes to a day.
DEFAULT_WAIT = 300.0

_FAILURES = {
    UNTRUSTED: "whose safety number changed",
    UNREGISTERED: "no longer on Signal",
    LIMITED: "that Signal asks to wait with",
    "NETWORK_FAILURE": "that the daemon did not reach",
    "INVALID_PRE_KEY_FAILURE": "whose devices gave no valid keys",
}
_NO_GROUP = ("not a group member", "group not found", "invalid group id")
_NO_SENDING = ("only admins", "not allowed", "announcement")


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


def refusal(error: SignalRefused) -> AdapterError:
    """A refused call that sends something, as a domain error."""
    said = error.said.lower()
    failed = {words(result, "type") for result in error.results} - {SUCCESS}
    if error.code == UNTRUSTED_KEY or failed == {UNTRUSTED}:
        return Undeliverable(f"{safety_number(error.results)}; it is not sent before you trust the new one")
    if failed == {UNREGISTERED} or "is not registered" in said:
        return Undeliverable("this person is not on Signal, or no longer")
    if any(words_ in said for words_ in _NO_GROUP):
        return Undeliverable("the account is not in this group, or no longer")
    if any(words_ in said for words_ in _NO_SENDING):
        return Undeliverable("only administrators may write in this group")
    if "attachmentinvalid" in said or "failed to add attachment" in said:
        return Undeliverable("the daemon could not read the file")
    if "[413]" in said:
        return Undeliverable("Signal takes no file that large")
    if error.code == USER_ERROR and not failed and "failed to send" not in said:
        return Undeliverable(f"signal-cli will not send it: {error.said or error.code}")
    return error


def edit_refusal(error: SignalRefused) -> AdapterError:
    """A refused edit: without the message it is sent as a new one."""
    if error.code == USER_ERROR and not error.results:
        return NothingToEdit("the message that was to be changed is gone, or can no longer be")
    return refusal(error)


def safety_number(results: Sequence[Raw]) -> str:
    """Whose safety number changed, in a sentence."""
    who = [
        words(table(result, "recipientAddress"), "number") or words(table(result, "recipientAddress"), "uuid")
        for result in results
        if words(result, "type") == UNTRUSTED
    ]
    return f"the safety number of {', '.join(filter(None, who)) or 'this person'} changed"


def not_reached(results: Sequence[Raw]) -> str:
    """Those whom a message to a group did not reach, in words; empty if it reached all."""
    failed = Counter(words(result, "type") for result in results if words(result, "type") not in ("", SUCCESS))
    if not failed:
        return ""
    parts = ", ".join(f"{times} {_FAILURES.get(kind, kind.lower())}" for kind, times in failed.items())
    return f"the last message to a group did not reach {sum(failed.values())} of {len(results)}: {parts}"

"""Doctor checks of an account: the daemon, its version, the linked device, safety numbers and the local clock."""

from collections.abc import Iterator, Sequence

from belino.adapters.signal.auth import find_account
from belino.adapters.signal.client import SignalClient
from belino.domain.errors import AdapterError, Unauthorized
from belino.domain.outcome import Finding
from belino.net.json_fields import Raw, as_table, as_tables, line, words
from belino.net.rest import clock_findings

OLDEST = (0, 13, 0)
START = "signal-cli daemon --http localhost:8080 --receive-mode on-connection --no-receive-stdout"
MOST_SHOWN = 5


async def check_account(client: SignalClient, name: str) -> tuple[Finding, ...]:
    """All findings, by calls that change nothing; the first says whether the account can be used."""
    try:
        date = await client.check()
    except AdapterError as error:
        cure = f"Start it: {START}; and set url to where it listens."
        return (Finding(name=f"{name} daemon", ok=False, says=f"signal-cli does not answer: {error}", cure=cure),)
    try:
        number = await find_account(client)
        version = line(as_table(await client.call("version")), "version")
        keys = as_tables(await client.look("listIdentities"))
    except AdapterError as error:
        cure = "`belino setup signal` links it." if isinstance(error, Unauthorized) else "Look at the daemon's log."
        return (Finding(name=f"{name} account", ok=False, says=str(error), cure=cure),)
    who = number or "the daemon's only account"
    return (
        Finding(name=f"{name} account", ok=True, says=f"signal-cli {version} serves {who}"),
        *_version(name, version),
        *_safety_numbers(name, keys),
        *clock_findings(name, "the daemon", theirs=date, ours=client.clock.now()),
    )


def _version(name: str, version: str) -> Iterator[Finding]:
    parts = tuple(int(part) for part in version.split("-")[0].split(".") if part.isdigit())
    if parts and parts < OLDEST:
        cure = "Signal refuses old clients after about three months: update signal-cli."
        yield Finding(name=f"{name} version", ok=False, says=f"signal-cli {version} is too old", cure=cure)


def _safety_numbers(name: str, keys: Sequence[Raw]) -> Iterator[Finding]:
    changed = [words(key, "number") or words(key, "uuid") for key in keys if words(key, "trustLevel") == "UNTRUSTED"]
    if changed:
        shown = ", ".join(changed[:MOST_SHOWN])
        cure = f"Compare the numbers with the person, then: signal-cli trust -v SAFETY_NUMBER {changed[0]}"
        says = f"changed for {shown}: their messages are not read, and nothing is sent to them"
        yield Finding(name=f"{name} safety numbers", ok=False, says=says, cure=cure)

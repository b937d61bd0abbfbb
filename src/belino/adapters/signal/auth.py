"""Auth: find the account that the daemon serves, and link a device of a person's account by a QR code."""

from collections.abc import AsyncIterator
from datetime import timedelta

from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.errors import LINK, NO_METHOD, USER_ERROR, SignalRefused
from belino.domain.errors import AdapterError, Unauthorized
from belino.domain.linking import LinkCode
from belino.net.json_fields import as_table, as_tables, words

# Signal ends an unused code after about a minute and a half; the daemon then answers.
CODE_SECONDS = 60.0
CODES = 5
DEVICE = "belino"


async def accounts(client: SignalClient) -> tuple[str, ...] | None:
    """The phone numbers that the daemon serves; None if it was started for one account and does not say which."""
    try:
        told = await client.call("listAccounts")
    except SignalRefused as error:
        if error.code != NO_METHOD:
            raise
        return None
    return tuple(words(each, "number") for each in as_tables(told))


async def find_account(client: SignalClient) -> str:
    """The number we are: the configured one, or the only one that the daemon has; empty if it does not say."""
    served = await accounts(client)
    if served is None:
        return client.account
    if not client.account and len(served) > 1:
        raise Unauthorized(f"the daemon serves {len(served)} accounts; set number to one of them")
    client.account = client.account or next(iter(served), "")
    if client.account not in served:
        raise Unauthorized(f"the daemon does not serve {client.account or 'any account'}; {LINK}")
    return client.account


async def link_device(client: SignalClient) -> AsyncIterator[LinkCode]:
    """Codes to scan, each until Signal ends it, until the phone has linked the device."""
    for _ in range(CODES):
        told = as_table(await client.call("startLink"))
        if not (uri := words(told, "deviceLinkUri")):
            raise AdapterError("signal-cli returned no code to link a device with; is it started for one account?")
        yield LinkCode(scan=uri, until=client.clock.now() + timedelta(seconds=CODE_SECONDS))
        try:
            await client.call("finishLink", {"deviceLinkUri": uri, "deviceName": DEVICE})
        except SignalRefused as error:
            if error.code != USER_ERROR or "timed out" not in error.said:
                raise AdapterError(f"the device could not be linked: {error.said or error.code}") from error
        else:
            return
    raise AdapterError(f"no phone scanned one of {CODES} codes; start again when it is at hand")

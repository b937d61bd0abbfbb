"""Doctor checks of a phone number: its token, its state at Meta, the address of its webhook, and the local clock."""

from collections.abc import Iterator

from belino.adapters.whatsapp.client import CloudClient
from belino.adapters.whatsapp.errors import WhatsAppRefused
from belino.domain.errors import AdapterError
from belino.domain.outcome import Finding
from belino.net.json_fields import Raw, line, table, words
from belino.net.rest import clock_findings, token_finding

NUMBER_FIELDS = "verified_name,display_phone_number,quality_rating,name_status,status,webhook_configuration"
_RENEW = "Make a permanent token under System users: `belino setup whatsapp` says how, and with which permissions."
_BAD_STATES = frozenset({"BANNED", "DISCONNECTED", "FLAGGED", "RATE_LIMITED", "RESTRICTED"})


async def check_number(client: CloudClient, *, name: str, hook: str) -> tuple[Finding, ...]:
    """All findings, by one call that changes nothing; `hook` is the path of the webhook."""
    try:
        asked = await client.look(client.number, fields=NUMBER_FIELDS)
    except WhatsAppRefused as error:
        cure = "Check phone_number_id, which stands under WhatsApp, API Setup; it is no phone number."
        return (Finding(name=f"{name} token", ok=False, says=str(error), cure=cure),)
    except AdapterError as error:
        return (token_finding(name, error, renew=_RENEW, api="the Cloud API"),)
    told = asked.told
    who = ", ".join(part for part in (line(told, "verified_name"), line(told, "display_phone_number")) if part)
    return (
        Finding(name=f"{name} token", ok=True, says=f"it is for {who or 'this number'}"),
        *_state(told, name),
        _webhook(table(told, "webhook_configuration"), name, hook),
        *clock_findings(name, "Meta", theirs=asked.date, ours=client.clock.now()),
    )


def _state(told: Raw, name: str) -> Iterator[Finding]:
    state = words(told, "status").upper()
    if state in _BAD_STATES:
        says = f"Meta lists the number as {state.lower().replace('_', ' ')}"
        yield Finding(name=f"{name} number", ok=False, says=says, cure="See WhatsApp Manager, Phone numbers.")
    if words(told, "quality_rating").upper() == "RED":
        says = "its quality is low: people block or report its messages, and Meta may limit it"
        yield Finding(name=f"{name} quality", ok=False, says=says, cure="See WhatsApp Manager, Insights.")


def _webhook(told: Raw, name: str, hook: str) -> Finding:
    """Where Meta sends the number's events: to its own address, else to the account's, else to the app's."""
    name = f"{name} webhook"
    where = words(told, "phone_number") or words(told, "whatsapp_business_account") or words(told, "application")
    if not where:
        cure = "Set public_url, or enter the address in the App Dashboard: WhatsApp, Configuration, Webhook."
        return Finding(name=name, ok=False, says="Meta knows no address for the number's events", cure=cure)
    if where.partition("?")[0].rstrip("/").endswith(hook):
        return Finding(name=name, ok=True, says="Meta sends the number's events here")
    says = "Meta sends the number's events to another address, or to that of another account"
    return Finding(name=name, ok=False, says=says, cure=f"Set public_url: belino then registers the path {hook}.")

"""Owner's routes: health and media checks of accounts, notices, groups that ask for access, the configuration."""

from dataclasses import asdict

from starlette.responses import Response

from belino.domain.errors import AdapterError, ConfigError
from belino.web.auth import Requires
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import accounts_json, finding_json, group_json, link_json, notice_json

KIND_CHARS = 1_200
MOST_ACCOUNTS = 100
ACCOUNT_CHARS = 200
NOT_STORED = {"Cache-Control": "no-store"}
"""A code that links a device is as good as a password."""


async def healthz(call: RouteCall) -> Response:
    """Health check: whether belino answers; with `deep=1`, for people and monitors, whether every account works.

    It calls no platform. Strangers get no further information.
    """
    if not call.request.query_params.get("deep"):
        return answer({"ok": True})
    await call.site.admit(call.request, Requires.MONITOR)
    accounts = call.site.gateway.health()
    ok = all(health.works for health in accounts.values())
    return answer({"ok": ok, "accounts": accounts_json(accounts)}, status=200 if ok else 503)


async def show_health(call: RouteCall) -> Response:
    """What the page shows of accounts, notices and the configuration."""
    gateway = call.site.gateway
    return answer(
        {
            "accounts": accounts_json(gateway.health()),
            "notices": [notice_json(notice) for notice in await gateway.owners.notices()],
            "config": asdict(gateway.reloader.state),
        }
    )


async def list_notices(call: RouteCall) -> Response:
    """What needs the owner, newest first."""
    return answer({"notices": [notice_json(notice) for notice in await call.site.gateway.owners.notices()]})


async def close_notice(call: RouteCall) -> Response:
    """Close a notice that was read."""
    if not await call.site.gateway.owners.close(call.query("kind").text("kind", most=KIND_CHARS)):
        raise not_found()
    return Response(status_code=204)


async def list_groups(call: RouteCall) -> Response:
    """Groups that ask for access, and the decisions about them."""
    return answer({"groups": [group_json(group) for group in await call.site.gateway.groups.all()]})


async def decide_group(call: RouteCall) -> Response:
    """Allow or refuse a group; it applies to the next message there."""
    fields = await call.fields("group", "allow", "everyone")
    group = fields.conversation("group")
    decided = await call.site.gateway.groups.decide(group, allow=fields.flag("allow"), everyone=fields.flag("everyone"))
    if decided is None:
        raise not_found()
    return answer(group_json(decided))


async def forget_group(call: RouteCall) -> Response:
    """Take a decision back: the group may ask again."""
    if not await call.site.gateway.groups.forget(call.query("group").conversation("group")):
        raise not_found()
    return Response(status_code=204)


async def show_config(call: RouteCall) -> Response:
    """How the running configuration relates to its file; never a value of it."""
    return answer(asdict(call.site.gateway.reloader.state))


async def reload_config(call: RouteCall) -> Response:
    """Apply the configuration file; 422 with the reason, and nothing changes, if it is rejected."""
    fields = await call.fields("reconnect")
    accounts = [_account(each) for each in fields.items("reconnect", most=MOST_ACCOUNTS)]
    try:
        done = await call.site.gateway.reload(reconnect=accounts)
    except ConfigError as error:
        raise Refusal(422, Code.REJECTED, str(error)) from None
    return answer(asdict(done))


async def check_media(call: RouteCall) -> Response:
    """Send one of each kind of media to a conversation, read it back and compare it."""
    fields = await call.fields("account", "to")
    account = _account(fields.text("account", most=ACCOUNT_CHARS))
    to = fields.conversation("to") if fields.has("to") else None
    try:
        findings = await call.site.gateway.check_media(account, to)
    except ConfigError as error:
        raise bad_request(str(error)) from None
    return answer({"ok": all(finding.ok for finding in findings), "findings": [finding_json(f) for f in findings]})


async def take_over(call: RouteCall) -> Response:
    """Take the events of an account over from another program, which then gets none."""
    fields = await call.fields("account")
    account = _account(fields.text("account", most=ACCOUNT_CHARS))
    try:
        return answer({"from": await call.site.gateway.take_over(account)})
    except ConfigError as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    except AdapterError as error:
        raise Refusal(502, Code.PLATFORM, str(error)) from None


async def begin_link(call: RouteCall) -> Response:
    """Begin to link a device of an account, and show the first code."""
    fields = await call.fields("account")
    try:
        progress = await call.site.gateway.linking.begin(_account(fields.text("account", most=ACCOUNT_CHARS)))
    except ConfigError as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    except AdapterError as error:
        raise Refusal(502, Code.PLATFORM, str(error)) from None
    return answer(link_json(progress), headers=NOT_STORED)


async def show_link(call: RouteCall) -> Response:
    """The code that links a device now, or how the attempt ended."""
    account = _account(call.query("account").text("account", most=ACCOUNT_CHARS))
    try:
        return answer(link_json(call.site.gateway.linking.progress(account)), headers=NOT_STORED)
    except ConfigError as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None


def _account(value: object) -> tuple[str, str]:
    platform, colon, account = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not platform or not account:
        raise bad_request("An account must be written platform:account.")
    return platform, account

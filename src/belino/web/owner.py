"""Owner's routes: the health of accounts."""

from starlette.responses import Response

from belino.web.auth import Requires
from belino.web.request_context import RouteCall
from belino.web.responses import answer
from belino.web.wire import accounts_json


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

"""What a payload was read with, as a recording keeps it: who we are, and the names of people and channels in it."""

import json
from collections.abc import Mapping
from dataclasses import replace

from belino.adapters.slack.parse import View
from belino.adapters.slack.people import Directory, Me
from belino.net.raw import Raw, as_table, line, table, tables, words


def remembered(view: View, payload: Raw) -> Mapping[str, object]:
    """As much of what is known as the payload can be about: nobody else's name."""
    told, me = json.dumps(dict(payload)), view.me
    return {
        "me": {"user_id": me.user, "bot_id": me.bot, "name": me.name, "teams": sorted(me.teams)},
        "users": _named(view.directory.users, told),
        "channels": _named(view.directory.channels, told),
    }


def recalled(told: Mapping[str, object], view: View) -> View:
    """What `remembered` wrote down."""
    raw = as_table(told)
    me, teams = table(raw, "me"), table(raw, "me").get("teams")
    return replace(
        view,
        me=Me(
            user=words(me, "user_id"),
            bot=words(me, "bot_id"),
            name=line(me, "name"),
            teams=frozenset(str(team) for team in teams) if isinstance(teams, list) else frozenset(),
        ),
        directory=Directory(users=_names(raw, "users"), channels=_names(raw, "channels")),
    )


def _named(names: Mapping[str, str], told: str) -> list[Mapping[str, str]]:
    return [{"id": own, "name": name} for own, name in names.items() if own in told]


def _names(raw: Raw, key: str) -> dict[str, str]:
    return {words(each, "id"): line(each, "name") for each in tables(raw, key)}

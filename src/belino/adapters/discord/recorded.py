"""What an event was read with, as a recording keeps it: who we are, and the places and roles the event names."""

import json
from collections.abc import Mapping
from datetime import datetime

from belino.adapters.discord.parse import Known
from belino.adapters.discord.people import Me, Place
from belino.adapters.discord.raw import identity
from belino.net.raw import Raw, as_table, count, line, table, tables, words


def remembered(known: Known, event: Raw) -> Mapping[str, object]:
    """As much of what is known as the event can be about: nothing of other channels."""
    told = json.dumps(dict(event))
    places = {own: place for own, place in known.places.items() if own in told}
    parents = {place.parent for place in places.values()}
    places |= {own: place for own, place in known.places.items() if own in parents}
    return {
        "me": {
            "id": known.me.id,
            "name": known.me.name,
            "roles": [own for own in sorted(known.me.roles) if own in told],
            "titles": [{"id": own, "name": name} for own, name in known.me.titles.items() if own in told],
        },
        "places": [
            {"id": own, "kind": place.kind, "name": place.name, "parent_id": place.parent}
            for own, place in places.items()
        ],
        "session_id": known.session,
    }


def recalled(told: Mapping[str, object], *, account: str, received: datetime) -> Known:
    """What `remembered` wrote down."""
    raw = as_table(told)
    me, roles = table(raw, "me"), table(raw, "me").get("roles")
    return Known(
        account=account,
        me=Me(
            id=identity(me, "id"),
            name=line(me, "name"),
            roles=frozenset(str(own) for own in roles) if isinstance(roles, list) else frozenset(),
            titles={identity(title, "id"): line(title, "name") for title in tables(me, "titles")},
        ),
        places={
            identity(place, "id"): Place(
                kind=count(place, "kind") or 0, name=line(place, "name"), parent=identity(place, "parent_id")
            )
            for place in tables(raw, "places")
        },
        received=received,
        session=words(raw, "session_id"),
    )

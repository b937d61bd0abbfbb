"""What Telegram sends as fields, told in words: places, contacts, polls, games, lists and the like.

Every label in these lines was typed by somebody: it stands in one line, and is as little believed as the text.
"""

from collections.abc import Iterator
from itertools import islice

from belino.adapters.telegram.links import ADDRESS_CHARS, link
from belino.net.raw import Raw, as_tables, count, line, real, table, tables, whole, yes

MOST_LINES = 50
LETTER_CHARS = 4096


def facts_of(message: Raw) -> tuple[str, ...]:
    """The lines that stand for what a message holds besides its text and files."""
    found = [*places(message), *_contact(table(message, "contact")), *_poll(table(message, "poll"))]
    found += [*_dice(table(message, "dice")), *_sticker(table(message, "sticker"))]
    found += [*_checklist(table(message, "checklist")), *_paid(table(message, "paid_media"))]
    found += [*_titled("Game", table(message, "game")), *_titled("Invoice", table(message, "invoice"))]
    found += [*_lettered("Gift", table(message, "gift"), "text")]
    found += [*_lettered("Web App data", table(message, "web_app_data"), "data")]
    found += list(islice(_buttons(table(message, "reply_markup")), MOST_LINES))
    return tuple(found)


def item_answered(message: Raw, answered: Raw) -> str:
    """The task of a checklist, or the option of a poll, that a message answers, if it answers one."""
    task, option = whole(message, "reply_to_checklist_task_id"), line(message, "reply_to_poll_option_id")
    if task is not None:
        items = [item for item in tables(table(answered, "checklist"), "tasks") if whole(item, "id") == task]
    else:
        options = tables(table(answered, "poll"), "options")
        items = [item for item in options if option and line(item, "persistent_id") == option]
    return line(items[0], "text") if items else ""


def places(message: Raw) -> Iterator[str]:
    """The venue or location in a message, or in a part of one."""
    # A venue's place is repeated under `location`.
    if venue := table(message, "venue"):
        label = ", ".join(part for part in (line(venue, "title"), line(venue, "address")) if part)
        yield f"Venue: {label or 'without a name'}{_within(_coordinates(table(venue, 'location')))}"
    elif location := table(message, "location"):
        live = "Live location" if count(location, "live_period") else "Location"
        yield f"{live}: {_coordinates(location) or 'unknown'}{_accuracy(location)}"


def _coordinates(location: Raw) -> str:
    latitude, longitude = real(location, "latitude"), real(location, "longitude")
    return "" if latitude is None or longitude is None else f"{latitude:.6f}, {longitude:.6f}"


def _accuracy(location: Raw) -> str:
    radius = real(location, "horizontal_accuracy")
    return f" (within {radius:.0f} m)" if radius is not None and radius > 0 else ""


def _within(label: str) -> str:
    return f" ({label})" if label else ""


def _contact(contact: Raw) -> Iterator[str]:
    if contact:
        name = " ".join(part for part in (line(contact, "first_name"), line(contact, "last_name")) if part)
        yield f"Contact: {', '.join(part for part in (name, line(contact, 'phone_number')) if part) or 'empty'}"


def _poll(poll: Raw) -> Iterator[str]:
    if not poll:
        return
    kind = "Quiz" if poll.get("type") == "quiz" else "Poll"
    closed = " (closed)" if yes(poll, "is_closed") else ""
    yield f"{kind}{closed}: {line(poll, 'question') or 'without a question'}"
    if description := line(poll, "description", most=LETTER_CHARS):
        yield description
    yield from _attached(table(poll, "media"))
    votes = count(poll, "total_voter_count")
    for option in tables(poll, "options")[:MOST_LINES]:
        cast = count(option, "voter_count")
        yield f"- {line(option, 'text')}{_within(_votes(cast)) if votes and cast is not None else ''}"
        yield from _attached(table(option, "media"))
    yield from _lettered("Explanation", poll, "explanation")


def _attached(media: Raw) -> Iterator[str]:
    """What a poll or one of its options has besides files."""
    yield from places(media)
    if address := line(table(media, "link"), "url", most=ADDRESS_CHARS):
        yield f"Link: {address}"


def _votes(number: int) -> str:
    return f"{number} vote" if number == 1 else f"{number} votes"


def _dice(dice: Raw) -> Iterator[str]:
    if dice:
        value = whole(dice, "value")
        yield f"Dice {line(dice, 'emoji', most=16)}: {'unknown' if value is None else value}"


def _sticker(sticker: Raw) -> Iterator[str]:
    if sticker:
        emoji, name = line(sticker, "emoji", most=16), line(sticker, "set_name", most=64)
        yield f"Sticker{f' {emoji}' if emoji else ''}{f' of the set {name}' if name else ''}"


def _checklist(checklist: Raw) -> Iterator[str]:
    if checklist:
        yield f"Checklist: {line(checklist, 'title') or 'without a title'}"
        for task in tables(checklist, "tasks")[:MOST_LINES]:
            done = table(task, "completed_by_user") or table(task, "completed_by_chat")
            yield f"- ({'done' if done else 'open'}) {line(task, 'text')}"


def _buttons(keyboard: Raw) -> Iterator[str]:
    """Those that lead somewhere; what the others do, only their own bot knows."""
    rows = keyboard.get("inline_keyboard")
    for button in (button for row in (rows if isinstance(rows, list) else ()) for button in as_tables(row)):
        if address := line(button, "url", most=ADDRESS_CHARS):
            yield f"Button: {link(line(button, 'text') or 'without words', address)}"


def _paid(paid: Raw) -> Iterator[str]:
    if paid:
        yield f"Paid media for {count(paid, 'star_count') or 0} Telegram Stars"


def _titled(label: str, thing: Raw) -> Iterator[str]:
    if thing:
        yield f"{label}: {line(thing, 'title') or 'without a title'}"
        yield from (said for key in ("description", "text") if (said := line(thing, key, most=LETTER_CHARS)))


def _lettered(label: str, thing: Raw, key: str) -> Iterator[str]:
    """Words that somebody sent along with something."""
    if said := line(thing, key, most=LETTER_CHARS):
        yield f"{label}: {said}"

"""Content of messages as text: links, places, polls and the like, rich messages, and service messages.

Labels in these lines are written by senders: each is on one line, and is as untrusted as the message.
"""

from collections.abc import Iterator
from itertools import islice

from belino.adapters.telegram.authors import chat_name
from belino.adapters.telegram.media import TelegramSource, refs_of
from belino.domain.media import MediaRef
from belino.net.json_fields import Raw, as_tables, count, has, line, number_id, real, table, tables, whole, words, yes
from belino.net.message_lines import contact_line, coordinates, joined

MOST_LINES = 50
LETTER_CHARS = 4096
MOST_NAMES, NAME_CHARS, GIST_CHARS = 10, 128, 200

ADDRESS_CHARS = 2_048

# Deeper than real messages, and far from exhausting the stack.
MOST_DEPTH = 16
NAMING = frozenset({"mention", "text_mention", "bot_command"})

_INLINE = ("text", "expression", "alternative_text", "summary", "label", "credit")
_BLOCKS = ("blocks", "items", "cells")

# Keys around a message's content; all others are content.
_AROUND = (
    "message_id message_thread_id direct_messages_topic from sender_chat sender_boost_count sender_business_bot "
    "sender_tag date guest_query_id business_connection_id chat forward_origin is_topic_message "
    "is_automatic_forward reply_to_message external_reply quote reply_to_story reply_to_checklist_task_id "
    "reply_to_poll_option_id via_bot guest_bot_caller_user guest_bot_caller_chat edit_date has_protected_content "
    "is_from_offline is_paid_post media_group_id author_signature paid_star_count entities link_preview_options "
    "suggested_post_info effect_id caption_entities show_caption_above_media has_media_spoiler reply_markup "
    "forward_from forward_from_chat forward_from_message_id forward_signature forward_sender_name forward_date origin "
    "receiver_user ephemeral_message_id"
)
_ENVELOPE = frozenset(_AROUND.split())

STORY = "a story, which bots cannot see"
_MOVES = {"new_chat_members": "joined", "new_chat_member": "joined", "left_chat_member": "left"}
_NOTICES = {
    **{key: f"someone {did}" for key, did in _MOVES.items()},
    "new_chat_title": "the chat has a new title",
    "new_chat_photo": "the chat has a new picture",
    "delete_chat_photo": "the chat's picture was removed",
    "pinned_message": "a message was pinned",
    "forum_topic_created": "a topic was opened",
    "forum_topic_edited": "a topic was renamed",
    "forum_topic_closed": "a topic was closed",
    "forum_topic_reopened": "a topic was opened again",
}
_SERVICE = {
    **_NOTICES,
    "story": STORY,
    "game": "a game",
    "invoice": "an invoice",
}


def facts_of(message: Raw) -> tuple[str, ...]:
    """The content of a message besides its text and files, as lines."""
    found = [*places(message), *_contact(table(message, "contact")), *_poll(table(message, "poll"))]
    found += [*_dice(table(message, "dice")), *_sticker(table(message, "sticker"))]
    found += [*_checklist(table(message, "checklist")), *_paid(table(message, "paid_media"))]
    found += [*_titled("Game", table(message, "game")), *_titled("Invoice", table(message, "invoice"))]
    found += [*_lettered("Gift", table(message, "gift"), "text")]
    found += [*_lettered("Web App data", table(message, "web_app_data"), "data")]
    found += list(islice(_buttons(table(message, "reply_markup")), MOST_LINES))
    return tuple(found)


def item_answered(message: Raw, answered: Raw) -> str:
    """The checklist task or poll option that a message replies to, if any."""
    task, option = whole(message, "reply_to_checklist_task_id"), line(message, "reply_to_poll_option_id")
    if task is not None:
        items = [item for item in tables(table(answered, "checklist"), "tasks") if whole(item, "id") == task]
    else:
        options = tables(table(answered, "poll"), "options")
        items = [item for item in options if option and line(item, "persistent_id") == option]
    return line(items[0], "text") if items else ""


def places(message: Raw) -> Iterator[str]:
    """The venue or location in a message, or in a part of one."""
    # A venue's location is repeated under `location`.
    if venue := table(message, "venue"):
        label = ", ".join(part for part in (line(venue, "title"), line(venue, "address")) if part)
        yield f"Venue: {label or 'without a name'}{_within(_coordinates(table(venue, 'location')))}"
    elif location := table(message, "location"):
        live = "Live location" if count(location, "live_period") else "Location"
        yield f"{live}: {_coordinates(location) or 'unknown'}{_accuracy(location)}"


def _coordinates(location: Raw) -> str:
    return coordinates(real(location, "latitude"), real(location, "longitude"))


def _accuracy(location: Raw) -> str:
    radius = real(location, "horizontal_accuracy")
    return f" (within {radius:.0f} m)" if radius is not None and radius > 0 else ""


def _within(label: str) -> str:
    return f" ({label})" if label else ""


def _contact(contact: Raw) -> Iterator[str]:
    if contact:
        name = joined(line(contact, "first_name"), line(contact, "last_name"), by=" ")
        yield contact_line(name, line(contact, "phone_number"))


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
    """The text of a poll or of one of its options."""
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
    """Buttons with a link; the others are known only to their own bot."""
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
    """The caption of an item."""
    if said := line(thing, key, most=LETTER_CHARS):
        yield f"{label}: {said}"


def linked(raw: Raw, key: str, entities: str) -> str:
    """The text under a key, each link's address after its words."""
    text = words(raw, key)
    links = [entity for entity in tables(raw, entities) if words(entity, "type") == "text_link"]
    if not links:
        return text
    units = text.encode("utf-16-le")
    pieces, at = list[bytes](), 0
    for entity in sorted(links, key=_end):
        end = _end(entity)
        told = link(passage(text, entity), line(entity, "url", most=ADDRESS_CHARS), behind=True)
        if told and at <= end <= len(units):
            pieces += [units[at:end], told.encode("utf-16-le")]
            at = end
    return b"".join([*pieces, units[at:]]).decode("utf-16-le", "replace")


def link(label: str, address: str, *, behind: bool = False) -> str:
    """Words and their link, once if they are the same; with `behind` only what follows the words."""
    shown = label.strip().rstrip("/")
    same = not label.strip() or shown in (address.rstrip("/"), address.partition("://")[2].rstrip("/"))
    follows = "" if same or not address else f" ({address})"
    return follows if behind else f"{label}{follows}"


def passage(text: str, entity: Raw) -> str:
    """The part of a text that an entity marks; Telegram counts in UTF-16 units."""
    offset, length = whole(entity, "offset"), whole(entity, "length")
    if offset is None or length is None or offset < 0 or not 0 < length <= len(text) * 2:
        return ""
    units = text.encode("utf-16-le")
    return units[offset * 2 : (offset + length) * 2].decode("utf-16-le", "replace")


def _end(entity: Raw) -> int:
    """Its end, in bytes of UTF-16."""
    return 2 * ((whole(entity, "offset") or 0) + (whole(entity, "length") or 0))


def rich_text(message: Raw) -> str:
    """The text of a rich message."""
    return "\n".join(told for told in _lines(message, 0) if told)


def rich_files(message: Raw, source: TelegramSource) -> tuple[MediaRef, ...]:
    """The files of a rich message, in order, each once."""
    found: dict[str, MediaRef] = {}
    for block in _tables(message.get("blocks"), 0):
        # Only here Telegram calls a voice message a voice note.
        known = {**block, "voice": block.get("voice_note")} if "voice_note" in block else block
        for ref in refs_of(known, source):
            found.setdefault(ref.item, ref)
    return tuple(found.values())


def rich_names(message: Raw) -> Iterator[Raw]:
    """Everything in a rich message that names a user: mentions and commands."""
    return (node for node in _nodes(message.get("blocks"), 0) if words(node, "type") in NAMING)


def _nodes(value: object, depth: int) -> Iterator[Raw]:
    """Blocks, rich texts and everything nested in them."""
    for node in _flat(value, depth):
        yield node
        if depth < MOST_DEPTH:
            for key in (*_INLINE, *_BLOCKS, "caption"):
                yield from _nodes(node.get(key), depth + 1)


def _lines(block: Raw, depth: int) -> Iterator[str]:
    yield "".join(_inline(block.get(key), depth) for key in _INLINE)
    yield from places(block)
    if depth < MOST_DEPTH:
        for key in _BLOCKS:
            for inner in _flat(block.get(key), depth):
                yield from _lines(inner, depth + 1)
    yield _inline(block.get("caption"), depth)


def _inline(value: object, depth: int) -> str:
    """Rich text is a string, a list of rich text, or an object around rich text."""
    if isinstance(value, str):
        return words({"text": value}, "text")
    if depth >= MOST_DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_inline(item, depth + 1) for item in value)
    if isinstance(value, dict):
        inside = "".join(_inline(value.get(key), depth + 1) for key in _INLINE)
        return link(inside, line(value, "url", most=ADDRESS_CHARS)) if value.get("type") == "url" else inside
    return ""


def _flat(value: object, depth: int) -> Iterator[Raw]:
    """The blocks in a list, a list of lists (a table's cells) or alone (a caption)."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth < MOST_DEPTH:
        for item in value:
            yield from _flat(item, depth + 1)


def _tables(value: object, depth: int) -> Iterator[Raw]:
    for block in _flat(value, depth):
        yield block
        if depth < MOST_DEPTH:
            for key in ("blocks", "items"):
                yield from _tables(block.get(key), depth + 1)


def is_notice(message: Raw) -> bool:
    """Whether Telegram itself wrote a message, about the chat."""
    return any(_tells(message, key) for key in _NOTICES)


def what_it_is(message: Raw) -> str:
    """A short description of a message without readable content."""
    return what_is_in(message) or "a message Telegram does not show to bots"


def what_is_in(message: Raw) -> str:
    """The description of a message, or of an external reply; empty if Telegram shows nothing of it."""
    if is_confidential(message):
        return "a message that only its sender and the bot see"
    if target := number_id(message, "migrate_to_chat_id"):
        return f"the group became a supergroup: its channel id is {target} now"
    if source := number_id(message, "migrate_from_chat_id"):
        return f"the group became a supergroup: its channel id was {source} before"
    content = sorted(str(key) for key in message if key not in _ENVELOPE and _tells(message, key))
    for key in content:
        if key in _SERVICE:
            return _moved(message, key) or ": ".join(filter(None, (_SERVICE[key], _told_by(message, key))))
    return content[0].encode(errors="replace").decode().replace("_", " ")[:64] if content else ""


def _tells(message: Raw, key: str) -> bool:
    """Whether a key has content. Its flags are always true, but other servers write the false ones too."""
    return has(message, key) and message[key] is not False


def _moved(message: Raw, key: str) -> str:
    """Who joined or left; empty for anything else, or without a name."""
    people = tables(message, key) or tuple(filter(None, (table(message, key),)))
    names = [chat_name(each)[:NAME_CHARS] for each in people[:MOST_NAMES]]
    more = [f"{len(people) - MOST_NAMES} more"] if len(people) > MOST_NAMES else []
    return f"{', '.join([*filter(None, names), *more])} {_MOVES[key]}" if key in _MOVES and any(names) else ""


def _told_by(message: Raw, key: str) -> str:
    """The new title, the name of the topic, or the beginning of the message that was pinned."""
    match key:
        case "new_chat_title":
            return line(message, key, most=NAME_CHARS)
        case "forum_topic_created" | "forum_topic_edited":
            return line(table(message, key), "name", most=NAME_CHARS)
        case "pinned_message":
            pinned = table(message, key)
            said = line(pinned, "text", most=GIST_CHARS) or line(pinned, "caption", most=GIST_CHARS)
            return said or next(iter(facts_of(pinned)), "") or what_is_in({**pinned, key: None})
        case _:
            return ""


def is_confidential(message: Raw) -> bool:
    """Whether only the sender sees it; the group would see an agent's answer."""
    return has(message, "ephemeral_message_id")

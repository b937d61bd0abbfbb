"""Content of messages that is neither text nor a file, as lines: places, contacts, orders, replies to buttons."""

from collections.abc import Iterator

from belino.adapters.whatsapp.errors import in_words
from belino.net.json_fields import Raw, from_json, line, real, table, tables, whole, words, yes
from belino.net.message_lines import MOST_LINES, contact_line, joined, place_line

LETTER_CHARS = 4_096
ADDRESS_CHARS = 2_048
NUMBER_CHANGED = frozenset({"user_changed_number", "customer_changed_number"})
_CHANGES = {
    "user_changed_user_id": "the person's WhatsApp user id changed",
    "customer_identity_changed": "the person's security code changed",
    "user_identity_changed": "the person's security code changed",
}
KINDS = {
    "album": "an album, whose items follow", "sender_key_distribution": "keys of a group",
    "poll_creation": "a poll", "poll_update": "a vote in a poll", "pin": "a message was pinned",
    "pin_in_chat": "a message was pinned", "keep_in_chat": "a message was kept", "call_log_messsage": "a call",
    "group_invite": "an invitation to a group", "list": "a list to choose from", "hsm": "a template",
    "media_placeholder": "a file that WhatsApp does not show", "ephemeral": "a message that disappears",
    "request_welcome": "the person opened the chat for the first time", "view_once": "a file that can be viewed once",
    "call_permission_reply": "an answer to whether the business may call",
}  # fmt: skip


def text_of(message: Raw) -> str:
    """The text of a message: its words or caption, then its facts, a line each."""
    kind = words(message, "type")
    content = table(message, kind)
    said = words(content, "body") if kind == "text" else words(content, "caption")
    return "\n".join(part for part in (said, *_facts(message, kind, content), *_referral(message)) if part)


def _facts(message: Raw, kind: str, content: Raw) -> Iterator[str]:
    match kind:
        case "sticker":
            yield "Sticker (animated)" if yes(content, "animated") else "Sticker"
        case "location":
            yield _place(content)
        case "contacts":
            yield from (_contact(contact) for contact in tables(message, "contacts")[:MOST_LINES])
        case "button":
            yield line(content, "text", most=LETTER_CHARS)
        case "interactive":
            yield from _chosen(content)
        case "order":
            yield from _order(content)
    if product := table(table(message, "context"), "referred_product"):
        yield f"About the product {line(product, 'product_retailer_id')}"


def _place(location: Raw) -> str:
    labels = line(location, "name"), line(location, "address")
    place = place_line(real(location, "latitude"), real(location, "longitude"), *labels)
    return joined(place, line(location, "url", most=ADDRESS_CHARS), by=" ")


def _contact(contact: Raw) -> str:
    told = [line(table(contact, "name"), "formatted_name"), line(table(contact, "org"), "company")]
    told += [line(phone, "phone") or line(phone, "wa_id") for phone in tables(contact, "phones")]
    told += [line(mail, "email") for mail in tables(contact, "emails")]
    told += [line(url, "url", most=ADDRESS_CHARS) for url in tables(contact, "urls")]
    return contact_line(*told)


def _chosen(interactive: Raw) -> Iterator[str]:
    """What a person chose of buttons or a list, or filled into a form."""
    reply = table(interactive, words(interactive, "type"))
    title, description = line(reply, "title"), line(reply, "description")
    if title:
        yield f"{title}: {description}" if description else title
    if given := from_json(words(reply, "response_json") or "{}"):
        yield line(reply, "name") or "Form"
        known = ((key, line(given, key, most=LETTER_CHARS) or str(given[key])[:LETTER_CHARS]) for key in given)
        yield from [f"- {key}: {value}" for key, value in known if key != "flow_token"][:MOST_LINES]


def _order(order: Raw) -> Iterator[str]:
    yield f"Order from the catalog {line(order, 'catalog_id')}"
    for item in tables(order, "product_items")[:MOST_LINES]:
        price = real(item, "item_price")
        cost = "" if price is None else f", {price:g} {line(item, 'currency')} each"
        yield f"- {whole(item, 'quantity') or 1} × {line(item, 'product_retailer_id')}{cost}"
    yield line(order, "text", most=LETTER_CHARS)


def _referral(message: Raw) -> Iterator[str]:
    """The advertisement that the person came from."""
    if referral := table(message, "referral"):
        told = (line(referral, "headline"), line(referral, "body", most=LETTER_CHARS), line(referral, "source_url"))
        yield f"Came from an advertisement: {', '.join(part for part in told if part) or 'unknown'}"


def what_it_is(message: Raw) -> str:
    """A short description of a message without readable content."""
    kind = words(message, "type")
    if kind == "system":
        return _system(table(message, "system"))
    errors = tables(message, "errors")
    said = in_words(errors[0]) if errors else ""
    inside = line(table(message, "unsupported"), "type") or line(table(message, "interactive"), "type")
    inside = inside or ("" if kind in ("unsupported", "unknown") else kind)
    named = KINDS.get(inside) or inside.replace("_", " ")[:64] or "a message that the Cloud API does not show"
    return f"{named}: {said}" if said else named


def _system(system: Raw) -> str:
    kind = words(system, "type")
    new = line(system, "wa_id") or line(system, "new_wa_id")
    if kind in NUMBER_CHANGED and new:
        return f"the person's phone number changed to {new}; to let them in there, pair that number"
    return _CHANGES.get(kind) or line(system, "body") or "a note of WhatsApp"


def group_event(group: Raw) -> str:
    """What happened to a group, in words."""
    kind = words(group, "type").removeprefix("group_").replace("_", " ")[:64] or "changed"
    errors = tables(group, "errors")
    return f"the group: {kind}{f' ({in_words(errors[0])})' if errors else ''}"

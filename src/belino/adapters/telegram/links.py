"""Links behind words: Telegram keeps their addresses beside the text, where a reader of the text would miss them."""

from belino.net.raw import Raw, line, tables, whole, words

ADDRESS_CHARS = 2_048


def linked(raw: Raw, key: str, entities: str) -> str:
    """The text under a key, the address of each link behind its words."""
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
    """Words and the address they lead to, told once if they are the same; `behind`: only what follows the words."""
    shown = label.strip().rstrip("/")
    same = not label.strip() or shown in (address.rstrip("/"), address.partition("://")[2].rstrip("/"))
    follows = "" if same or not address else f" ({address})"
    return follows if behind else f"{label}{follows}"


def passage(text: str, entity: Raw) -> str:
    """The part of a text an entity marks; Telegram counts in UTF-16 units."""
    offset, length = whole(entity, "offset"), whole(entity, "length")
    if offset is None or length is None or offset < 0 or not 0 < length <= len(text) * 2:
        return ""
    units = text.encode("utf-16-le")
    return units[offset * 2 : (offset + length) * 2].decode("utf-16-le", "replace")


def _end(entity: Raw) -> int:
    """Where it ends, in bytes of UTF-16."""
    return 2 * ((whole(entity, "offset") or 0) + (whole(entity, "length") or 0))

"""Compare a recording with its replay: arrivals, outcomes, readings, prompts, tools, calls and parcels."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any
from urllib.parse import urlsplit

from belino.storage.short_ids import IN_TEXT

Json = dict[str, Any]

SHOWN_LINES = 40
ONCE_KEYS = frozenset({"nonce", "key", "client_msg_id", "idempotency_key", "random_id", "request_id"})
DRAFTED = frozenset({"draft", "edit"})

_FENCE = re.compile(r"<<<\w+ (\w{24})$", re.MULTILINE)
_REF = re.compile(r"\b[a-z0-9]{1,8}_[a-z0-9]{12}\b")
_FOLDER = re.compile(r"/state/media/[^/\s]+/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between a recording and its replay."""

    what: str
    """arrival, outcome, reading, prompt, tool, call or parcel."""
    where: str
    """The conversation, and the position among items of the same kind there."""
    recorded: str
    replayed: str

    @property
    def diff(self) -> list[str]:
        """The lines that differ, as `diff -u` shows them."""
        before, after = self.recorded.splitlines(), self.replayed.splitlines()
        return list(unified_diff(before, after, "recorded", "replayed", n=1, lineterm=""))[:SHOWN_LINES]


def compare(
    recorded: Sequence[Json], replayed: Sequence[Json], *, older: Iterable[str] = (), without: Iterable[str] = ()
) -> list[Difference]:
    """Every difference, conversation by conversation, `without` some aspects.

    The cassette lacks the beginning of `older` conversations: of their prompts only the message is compared.
    """
    differences: list[Difference] = []
    left = frozenset(without)
    for where in dict.fromkeys(str(record.get("conversation")) for record in (*recorded, *replayed)):
        here = [[each for each in records if each.get("conversation") == where] for records in (recorded, replayed)]
        aspects = (_aspects(here[0], older=where in older), _aspects(here[1], older=where in older))
        # A streamed answer takes other calls than one that is sent whole.
        drafted = {"call"} if any(_is_drafted(each) for each in here[0]) else set()
        for what in [each for each in aspects[0] if each not in left | drafted]:
            differences += _unequal(what, where, aspects[0][what], aspects[1][what])
    return differences


def _unequal(what: str, where: str, before: list[str], after: list[str]) -> Iterable[Difference]:
    for number in range(max(len(before), len(after))):
        recorded = before[number] if number < len(before) else "(nothing)"
        replayed = after[number] if number < len(after) else "(nothing)"
        if recorded != replayed:
            yield Difference(what=what, where=f"{where}, {what} {number + 1}", recorded=recorded, replayed=replayed)


def _aspects(records: list[Json], *, older: bool) -> dict[str, list[str]]:
    """The aspects that are compared, each as texts in their order."""
    arrivals, exchanges, turns = (_of(records, kind) for kind in ("arrival", "exchange", "turn"))
    return {
        "arrival": [_arrival(record) for record in arrivals],
        "outcome": [
            *(f"{record.get('outcome')} {record.get('reason') or ''}".strip() for record in arrivals),
            *(f"turn {record.get('state')} {record.get('reason') or ''}".strip() for record in turns),
        ],
        "reading": sorted({_reading(record) for record in _of(records, "reading")}),
        "prompt": [_blocks(blocks, older) for record in exchanges if (blocks := record.get("blocks")) is not None],
        "tool": [_tool(event) for record in exchanges for event in _list(record.get("events")) if "call" in event],
        "call": [_call(record) for record in _of(records, "call")],
        "parcel": [
            *(_canonical(_json(parcel)) for record in turns for parcel in _list(record.get("parcels"))),
            *sorted(f"{record.get('state')} {record.get('reason') or ''}".strip() for record in _ends(records)),
        ],
    }


def _of(records: list[Json], kind: str) -> list[Json]:
    return [record for record in records if record.get("record") == kind]


def _ends(records: list[Json]) -> list[Json]:
    """How parcels ended; the end of a draft is left out once the answer has replaced it."""
    drafted = any(_is_drafted(record) for record in records)
    return [] if drafted else _of(records, "parcel")


def _is_drafted(record: Json) -> bool:
    return record.get("record") == "call" and record.get("kind") in DRAFTED


def _arrival(record: Json) -> str:
    arrival = record.get("arrival")
    arrival = arrival if isinstance(arrival, Mapping) else {}
    kept = {key: arrival.get(key) for key in ("kind", "text", "addressed", "chat_type", "author", "emoji", "what")}
    media = [{key: ref.get(key) for key in ("kind", "mime", "size")} for ref in _list(arrival.get("media"))]
    return _canonical(_json({**kept, "media": media}))


def _blocks(blocks: object, older: bool) -> str:
    texts = [_block(block) for block in _list(blocks)]
    if older:
        texts = [text for text in texts if text.startswith("<<<message ")]
    return _canonical("\n".join(texts))


def _block(block: Json) -> str:
    return str(block["text"]) if "text" in block else _json(block)


def _tool(event: Json) -> str:
    said = [f"{event.get('call')} {_json(event.get('arguments'))}"]
    said += [f"refused: {event['refused']}"] if "refused" in event else map(_block, _list(event.get("result")))
    return _canonical("\n".join(said))


def _reading(record: Json) -> str:
    """Which piece of media a provider was to read; its text is in the prompt or in a tool's result."""
    who = f"{record.get('form')} by {record.get('provider')} {record.get('model')}"
    return f"{who}, {record.get('window')} of {record.get('sha256')}{': failed' if 'failed' in record else ''}"


def _call(record: Json) -> str:
    url = urlsplit(str(record.get("url")))
    return _canonical(f"{record.get('method')} {url.path}\n{_json(_keyless(record.get('body')))}")


def _keyless(value: Any) -> Any:
    """A request body without idempotency keys, which differ in every gateway."""
    match value:
        case dict():
            return {key: "KEY" if key in ONCE_KEYS else _keyless(inner) for key, inner in value.items()}
        case list():
            return [_keyless(inner) for inner in value]
        case _:
            return value


def _canonical(text: str) -> str:
    """A text without what differs in every gateway: markers, ref ids, short ids, and the session's folder."""
    for fence in set(_FENCE.findall(text)):
        text = text.replace(fence, "FENCE")
    numbers: dict[str, int] = {}
    text = _REF.sub(lambda ref: f"ref-{numbers.setdefault(ref[0], len(numbers) + 1)}", text)
    text = IN_TEXT.sub(lambda short: f"id-{numbers.setdefault(short[0], len(numbers) + 1)}", text)
    return _FOLDER.sub("/state/media/…/", text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1)


def _list(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []

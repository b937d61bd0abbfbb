"""Audit rules: invariants of a store, each as a query for the rows that break it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from belino.domain.joining import JoinReason
from belino.domain.outcome import MediaOutcome, MessageOutcome, TurnState
from belino.domain.reading import ReadingOutcome
from belino.domain.reply import ParcelState
from belino.storage.arrivals import OWN
from belino.storage.blob_rows import RENDITION
from belino.storage.database import Tx
from belino.storage.dialect import marks
from belino.storage.messages import OUTCOMES
from belino.storage.parcels import COMMANDED, UNASKED


def _nothing(_: Tx) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule, and how to find the rows that break it."""

    kind: str
    says: str
    cure: str
    find: Callable[[Tx], Iterable[str]] = _nothing
    """A name for each such row; none for a rule about files."""


def _rows(name: str, query: str) -> Callable[[Tx], Iterator[str]]:
    """The rows of a query, each named by its columns in a format string."""

    def find(tx: Tx) -> Iterator[str]:
        return (name.format(*row) for row in tx.execute(query))

    return find


def _set(values: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


_UNEXPECTED = "Report it with the output of `belino explain` for it; `belino restore` brings an earlier state back."
_REFETCH = "`belino media fetch` gets it again if its platform still has it; `belino restore` brings it from a backup."
_DISK = "Check the disk. `belino media gc` records the loss; `belino restore` brings the bytes from a backup."

# Closed sets come from the enums, so that new members are included.
_NEVER_STORED = (MessageOutcome.DENIED, MessageOutcome.DUPLICATE, MessageOutcome.NOTED)
_STORED = _set(outcome for outcome in MessageOutcome if outcome not in _NEVER_STORED)
_BY_A_TURN = _set(outcome for outcome in OUTCOMES.values() if outcome is not MessageOutcome.ANSWERED)
_ASKING = _set((MessageOutcome.WAITING, MessageOutcome.UNSUPPORTED))
_ENDS = _set((TurnState.ANSWERED, TurnState.FAILED, TurnState.ABORTED))
_WELL = _set((MediaOutcome.REFERENCED, MediaOutcome.HELD))
_RESTING = _set((ParcelState.UNCERTAIN, ParcelState.HELD, ParcelState.DEAD))
_LEAVING = _set((ParcelState.READY, ParcelState.SENDING))

_MESSAGE = "SELECT m.id FROM messages m"


def _messages(condition: str) -> Callable[[Tx], Iterator[str]]:
    return _rows("message {:016x}", f"{_MESSAGE} {condition}")


def _turns(condition: str) -> Callable[[Tx], Iterator[str]]:
    return _rows("turn {} (message {:016x})", f"SELECT t.id, t.message FROM turns t {condition}")


def _parcels(condition: str) -> Callable[[Tx], Iterator[str]]:
    return _rows("parcel {}", f"SELECT p.key FROM parcels p {condition}")


def _refs(condition: str) -> Callable[[Tx], Iterator[str]]:
    return _rows("ref {}", f"SELECT r.id FROM refs r {condition}")


def _attempts(condition: str) -> Callable[[Tx], Iterator[str]]:
    return _rows("attempt {} at ref {}", f"SELECT a.id, a.ref FROM reading_attempts a {condition}")


def _sent_twice(tx: Tx) -> Iterator[str]:
    """The parcels that share a receipt, together."""
    sent = (
        f"FROM parcels WHERE state = '{ParcelState.SENT}' AND kind <> 'edit' AND turn IS NOT NULL "
        "AND message_id IS NOT NULL"
    )
    shared = tx.execute(f"SELECT channel, message_id {sent} GROUP BY channel, message_id HAVING count(*) > 1")
    for receipt in shared.fetchall():
        rows = tx.execute(f"SELECT key {sent} AND channel = ? AND message_id = ? ORDER BY id", tuple(receipt))
        yield ", ".join(f"parcel {row['key']}" for row in rows)


def _without_bytes(tx: Tx) -> Iterator[str]:
    parcels = tx.execute(f"SELECT key, files FROM parcels WHERE files IS NOT NULL AND state IN {_LEAVING}")
    for row in parcels.fetchall():
        hashes = {file[0] for file in orjson.loads(row["files"])}
        query = f"SELECT count(*) FROM blobs WHERE sha256 IN ({marks(hashes)})"
        if tx.execute(query, tuple(hashes)).fetchone()[0] < len(hashes):
            yield f"parcel {row['key']}"


_MESSAGES = (
    Rule(
        kind="message outcome unknown",
        says="messages have an outcome that no stored message can have",
        cure=_UNEXPECTED,
        find=_messages(f"WHERE m.outcome NOT IN {_STORED}"),
    ),
    Rule(
        kind="message without turn",
        says="messages wait for an answer and have no turn that will give it",
        cure=_UNEXPECTED,
        find=_messages(
            f"WHERE m.turn IS NULL AND m.outcome IN {_BY_A_TURN} "
            f"UNION ALL {_MESSAGE} WHERE m.turn IS NOT NULL AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn)"
        ),
    ),
    Rule(
        kind="message and turn disagree",
        says="messages and the turns they name disagree about what is answered",
        cure=_UNEXPECTED,
        find=_messages(
            f"JOIN turns t ON t.id = m.turn WHERE m.outcome NOT IN {_ASKING} "
            "OR m.conversation <> t.conversation OR (m.joined = '' AND m.id <> t.message)"
        ),
    ),
    Rule(
        kind="join unknown",
        says="messages joined a turn for a reason that does not exist, or without a turn",
        cure=_UNEXPECTED,
        find=_messages(f"WHERE m.joined <> '' AND (m.turn IS NULL OR m.joined NOT IN {_set(JoinReason)})"),
    ),
    Rule(
        kind="message without reason",
        says="messages are unsupported and no reason is stored",
        cure=_UNEXPECTED,
        find=_messages(f"WHERE m.outcome = '{MessageOutcome.UNSUPPORTED}' AND m.reason = ''"),
    ),
    Rule(
        kind="command without reason",
        says="messages are commands and it is not stored what was done",
        cure=_UNEXPECTED,
        find=_messages(f"WHERE m.outcome = '{MessageOutcome.COMMAND}' AND m.author_marks & 2 = 0 AND m.reason = ''"),
    ),
    Rule(
        kind="message misplaced",
        says="messages belong to no channel or conversation that is stored, or have no trace",
        cure=_UNEXPECTED,
        find=_messages(
            "WHERE m.id >> 40 <> m.channel OR m.trace = '' "
            "OR NOT EXISTS (SELECT 1 FROM channels c WHERE c.id = m.channel) "
            "OR NOT EXISTS (SELECT 1 FROM conversations v WHERE v.id = m.conversation AND v.channel = m.channel)"
        ),
    ),
)
_TURNS = (
    Rule(
        kind="turn state unknown",
        says="turns have a state that does not exist",
        cure=_UNEXPECTED,
        find=_turns(f"WHERE t.state NOT IN {_set(TurnState)}"),
    ),
    Rule(
        kind="turn without message",
        says="turns answer no message that is stored",
        cure=_UNEXPECTED,
        find=_turns(
            "WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = t.message AND m.turn = t.id) "
            "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn = t.id AND m.joined <> '')"
        ),
    ),
    Rule(
        kind="turn number repeated",
        says="turn numbers are used more than once in a conversation",
        cure=_UNEXPECTED,
        find=_rows(
            "conversation {}, turn number {}",
            "SELECT conversation, number FROM turns GROUP BY conversation, number HAVING count(*) > 1",
        ),
    ),
    Rule(
        kind="turns at once",
        says="conversations have more than one running turn",
        cure=_UNEXPECTED,
        find=_rows(
            "conversation {}",
            f"SELECT conversation FROM turns WHERE state = '{TurnState.RUNNING}' "
            "GROUP BY conversation HAVING count(*) > 1",
        ),
    ),
    Rule(
        kind="turn without reason",
        says="turns failed or were aborted and no reason is stored",
        cure=_UNEXPECTED,
        find=_turns(f"WHERE t.state IN {_set((TurnState.FAILED, TurnState.ABORTED))} AND t.reason = ''"),
    ),
    Rule(
        kind="turn without end",
        says="turns ended and no time of it is stored",
        cure=_UNEXPECTED,
        find=_turns(f"WHERE t.state IN {_ENDS} AND t.ended IS NULL"),
    ),
    Rule(
        kind="answer without parcel",
        says="turns were answered, and there is neither a parcel nor a reason why none was needed",
        cure=_UNEXPECTED,
        find=_turns(
            f"WHERE t.state = '{TurnState.ANSWERED}' AND t.reason = '' "
            "AND NOT EXISTS (SELECT 1 FROM parcels p WHERE p.turn = t.id)"
        ),
    ),
)
_PARCELS = (
    Rule(
        kind="parcel state unknown",
        says="parcels have a state that does not exist",
        cure=_UNEXPECTED,
        find=_parcels(f"WHERE p.state NOT IN {_set(ParcelState)}"),
    ),
    Rule(
        kind="parcel without turn",
        says="parcels answer a turn, or belong to a conversation, that is not stored",
        cure=_UNEXPECTED,
        find=_parcels(
            f"WHERE (p.turn NOT IN ({UNASKED}, {COMMANDED}) "
            "AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = p.turn)) "
            "OR NOT EXISTS (SELECT 1 FROM conversations v WHERE v.id = p.conversation AND v.channel = p.channel)"
        ),
    ),
    Rule(
        kind="parcel without reason",
        says="parcels rest without being sent and no reason is stored",
        cure="`belino outbox retry` sends them, `belino outbox drop` gives them up.",
        find=_parcels(f"WHERE p.state IN {_RESTING} AND p.reason = ''"),
    ),
    Rule(
        kind="parcel without receipt",
        says="parcels are sent and no receipt is stored",
        cure=_UNEXPECTED,
        find=_parcels(f"WHERE p.state = '{ParcelState.SENT}' AND p.message_id IS NULL"),
    ),
    # Messages age in the order of their seq. One stored after the first that never aged must still exist.
    Rule(
        kind="parcel without message",
        says="parcels are sent and their message is not stored",
        cure=_UNEXPECTED,
        find=_parcels(
            f"JOIN channels c ON c.id = p.channel WHERE p.state = '{ParcelState.SENT}' "
            "AND p.turn IS NOT NULL AND p.message_id IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.channel = p.channel AND m.platform_id = p.message_id) "
            "AND (c.aged_seq = 0 OR p.changed >= (SELECT m.received FROM messages m "
            "WHERE m.id > (p.channel << 40) + c.aged_seq AND m.id < p.channel + 1 << 40 ORDER BY m.id LIMIT 1))"
        ),
    ),
    Rule(
        kind="message sent twice",
        says="several parcels have the receipt of the same message",
        cure=_UNEXPECTED,
        find=_sent_twice,
    ),
    Rule(
        kind="parcel without bytes",
        says="parcels are still to be sent and the bytes of their files are not stored",
        cure="`belino outbox drop` gives them up; `belino restore` brings the bytes from a backup.",
        find=_without_bytes,
    ),
)
_REFS = (
    Rule(
        kind="attachment outcome unknown",
        says="attachments have an outcome that does not exist",
        cure=_UNEXPECTED,
        find=_refs(f"WHERE r.outcome NOT IN {_set(MediaOutcome)}"),
    ),
    Rule(
        kind="attachment without reason",
        says="attachments could not be had and no reason is stored",
        cure=_REFETCH,
        find=_refs(f"WHERE r.outcome NOT IN {_WELL} AND r.reason = ''"),
    ),
    Rule(
        kind="attachment without bytes",
        says="attachments are held and their bytes are not stored, or not kept for them",
        cure=_REFETCH,
        find=_refs(
            f"WHERE r.outcome = '{MediaOutcome.HELD}' AND NOT EXISTS (SELECT 1 FROM blobs b "
            "JOIN blob_uses u ON u.sha256 = b.sha256 AND u.owner = 'ref:' || r.id WHERE b.sha256 = r.sha256)"
        ),
    ),
    Rule(
        kind="attachment without message",
        says="attachments belong to no message that is stored",
        cure=_UNEXPECTED,
        find=_refs(
            "WHERE NOT EXISTS (SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message WHERE l.ref = r.seq)"
        ),
    ),
    Rule(
        kind="message without attachment",
        says="messages name attachments that are not stored, or attachments name messages that are not",
        cure=_UNEXPECTED,
        find=_rows(
            "message {:016x}, attachment {}",
            "SELECT l.message, l.ref FROM message_refs l WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.seq = l.ref) "
            "OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = l.message)",
        ),
    ),
)
_BLOBS = (
    Rule(
        kind="blob row missing",
        says="bytes are in use and have no row",
        cure=_DISK,
        find=_rows(
            "blob {} of {}",
            "SELECT u.sha256, u.owner FROM blob_uses u WHERE substr(u.owner, 1, 7) <> 'parcel:' "
            "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = u.sha256) "
            "UNION ALL SELECT l.sha256, 'upload ' || l.id FROM uploads l WHERE l.sha256 IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = l.sha256) "
            "UNION ALL SELECT d.blob, 'rendition ' || d.name FROM renditions d "
            "WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = d.blob)",
        ),
    ),
    Rule(
        kind="blob without owner",
        says="bytes are kept for something that is not stored, and would never be deleted",
        cure=_UNEXPECTED,
        # The first condition on each owner finds it by its index, the second proves its kind.
        find=_rows(
            "blob {} of {}",
            "SELECT u.sha256, u.owner FROM blob_uses u WHERE NOT EXISTS ("
            "SELECT 1 FROM refs r WHERE r.id = substr(u.owner, 5) AND u.owner = 'ref:' || r.id "
            "UNION ALL SELECT 1 FROM uploads l WHERE l.id = substr(u.owner, 8) AND u.owner = 'upload:' || l.id "
            "UNION ALL SELECT 1 FROM parcels p WHERE p.key = substr(u.owner, 8) AND u.owner = 'parcel:' || p.key "
            f"UNION ALL SELECT 1 FROM renditions d WHERE d.sha256 = substr(u.owner, {len(RENDITION) + 1}, 64) "
            f"AND u.owner = '{RENDITION}' || d.sha256 || ':' || d.name)",
        ),
    ),
)
_READINGS = (
    Rule(
        kind="reading without attachment",
        says="texts are stored that were read from bytes of no attachment, and would never be deleted",
        cure=_UNEXPECTED,
        find=_rows(
            "reading {} of blob {}",
            "SELECT d.id, d.sha256 FROM readings d WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.sha256 = d.sha256)",
        ),
    ),
    Rule(
        kind="text without reading",
        says="pages, transcripts or search terms belong to no reading that is stored",
        cure=_UNEXPECTED,
        find=_rows(
            "reading {}",
            "SELECT x.reading FROM (SELECT reading FROM reading_parts UNION SELECT reading FROM transcripts "
            "UNION SELECT reading FROM reading_words) x WHERE NOT EXISTS "
            "(SELECT 1 FROM readings d WHERE d.id = x.reading)",
        ),
    ),
    Rule(
        kind="attempt without attachment",
        says="attempts to read are stored for attachments that are not",
        cure=_UNEXPECTED,
        find=_attempts("WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.id = a.ref AND r.channel = a.channel)"),
    ),
    Rule(
        kind="attempt without reason",
        says="attempts to read failed or were skipped and no reason is stored",
        cure=_UNEXPECTED,
        find=_attempts(f"WHERE a.outcome <> '{ReadingOutcome.SUCCESS}' AND a.reason = ''"),
    ),
)
_ARRIVALS = (
    Rule(
        kind="denial without reason",
        says="arrivals were denied and no reason is stored",
        cure=_UNEXPECTED,
        find=_rows("account {}:{}", "SELECT platform, account FROM denied WHERE reason = ''"),
    ),
    Rule(
        kind="answer not ours",
        says="messages count as sent by an agent of ours and their author is none",
        cure=_UNEXPECTED,
        find=_messages(f"WHERE {OWN} AND m.author_marks & 2 = 0"),
    ),
)

RULES = (*_ARRIVALS, *_MESSAGES, *_TURNS, *_PARCELS, *_REFS, *_READINGS, *_BLOBS)

STRAY_FILE = Rule(
    kind="file without row",
    says="files in blobs/ are named by no row",
    cure="`belino restore` if the database is older than the files; otherwise the gateway puts them aside in time.",
)
WITHOUT_FILE = Rule(kind="row without file", says="blobs have a row and no file in blobs/", cure=_DISK)
WRONG_SIZE = Rule(kind="file of wrong size", says="files in blobs/ do not have the size of their row", cure=_DISK)

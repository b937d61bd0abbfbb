"""Audit rules: invariants of a store, each as a query for the rows that break it."""

from collections.abc import Iterable
from dataclasses import dataclass

from belino.domain.outcome import MediaOutcome, MessageOutcome, TurnState
from belino.domain.reply import ParcelState
from belino.storage.arrivals import OWN
from belino.storage.messages import OUTCOMES
from belino.storage.outbox import UNASKED
from belino.storage.readings import RENDITION


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule, and the query whose first column names each row that breaks it."""

    kind: str
    says: str
    cure: str
    query: str = ""
    """Empty for a rule about files."""


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

_MESSAGE = "SELECT printf('message %016x', m.id) FROM messages m"
_TURN = "SELECT printf('turn %d (message %016x)', t.id, t.message) FROM turns t"
_PARCEL = "SELECT 'parcel ' || p.key FROM parcels p"
_REF = "SELECT 'ref ' || r.id FROM refs r"

_MESSAGES = (
    Rule(
        kind="message outcome unknown",
        says="messages have an outcome that no stored message can have",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} WHERE m.outcome NOT IN {_STORED}",
    ),
    Rule(
        kind="message without turn",
        says="messages wait for an answer and have no turn that will give it",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} WHERE m.turn IS NULL AND m.outcome IN {_BY_A_TURN} "
        f"UNION ALL {_MESSAGE} WHERE m.turn IS NOT NULL AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn)",
    ),
    Rule(
        kind="message and turn disagree",
        says="messages and the turns they name disagree about what is answered",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} JOIN turns t ON t.id = m.turn WHERE m.outcome NOT IN {_ASKING} "
        "OR m.conversation <> t.conversation OR (m.album IS NULL AND m.id <> t.message)",
    ),
    Rule(
        kind="message without reason",
        says="messages are unsupported and no reason is stored",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} WHERE m.outcome = '{MessageOutcome.UNSUPPORTED}' AND m.reason = ''",
    ),
    Rule(
        kind="message misplaced",
        says="messages belong to no channel or conversation that is stored, or have no trace",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} WHERE m.id >> 40 <> m.channel OR m.trace = '' "
        "OR NOT EXISTS (SELECT 1 FROM channels c WHERE c.id = m.channel) "
        "OR NOT EXISTS (SELECT 1 FROM conversations v WHERE v.id = m.conversation AND v.channel = m.channel)",
    ),
)
_TURNS = (
    Rule(
        kind="turn state unknown",
        says="turns have a state that does not exist",
        cure=_UNEXPECTED,
        query=f"{_TURN} WHERE t.state NOT IN {_set(TurnState)}",
    ),
    Rule(
        kind="turn without message",
        says="turns answer no message that is stored",
        cure=_UNEXPECTED,
        query=f"{_TURN} WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = t.message AND m.turn = t.id) "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn = t.id AND m.album IS NOT NULL AND m.turn IS NOT NULL)",
    ),
    Rule(
        kind="turn number repeated",
        says="turn numbers are used more than once in a conversation",
        cure=_UNEXPECTED,
        query="SELECT printf('conversation %d, turn number %d', conversation, number) FROM turns "
        "GROUP BY conversation, number HAVING count(*) > 1",
    ),
    Rule(
        kind="turns at once",
        says="conversations have more than one running turn",
        cure=_UNEXPECTED,
        query=f"SELECT printf('conversation %d', conversation) FROM turns WHERE state = '{TurnState.RUNNING}' "
        "GROUP BY conversation HAVING count(*) > 1",
    ),
    Rule(
        kind="turn without reason",
        says="turns failed or were aborted and no reason is stored",
        cure=_UNEXPECTED,
        query=f"{_TURN} WHERE t.state IN {_set((TurnState.FAILED, TurnState.ABORTED))} AND t.reason = ''",
    ),
    Rule(
        kind="turn without end",
        says="turns ended and no time of it is stored",
        cure=_UNEXPECTED,
        query=f"{_TURN} WHERE t.state IN {_ENDS} AND t.ended IS NULL",
    ),
    Rule(
        kind="answer without parcel",
        says="turns were answered, and there is neither a parcel nor a reason why none was needed",
        cure=_UNEXPECTED,
        query=f"{_TURN} WHERE t.state = '{TurnState.ANSWERED}' AND t.reason = '' "
        "AND NOT EXISTS (SELECT 1 FROM parcels p WHERE p.turn = t.id)",
    ),
)
_PARCELS = (
    Rule(
        kind="parcel state unknown",
        says="parcels have a state that does not exist",
        cure=_UNEXPECTED,
        query=f"{_PARCEL} WHERE p.state NOT IN {_set(ParcelState)}",
    ),
    Rule(
        kind="parcel without turn",
        says="parcels answer a turn, or belong to a conversation, that is not stored",
        cure=_UNEXPECTED,
        query=f"{_PARCEL} WHERE (p.turn <> {UNASKED} AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = p.turn)) "
        "OR NOT EXISTS (SELECT 1 FROM conversations v WHERE v.id = p.conversation AND v.channel = p.channel)",
    ),
    Rule(
        kind="parcel without reason",
        says="parcels rest without being sent and no reason is stored",
        cure="`belino outbox retry` sends them, `belino outbox drop` gives them up.",
        query=f"{_PARCEL} WHERE p.state IN {_RESTING} AND p.reason = ''",
    ),
    Rule(
        kind="parcel without receipt",
        says="parcels are sent and no receipt is stored",
        cure=_UNEXPECTED,
        query=f"{_PARCEL} WHERE p.state = '{ParcelState.SENT}' AND p.message_id IS NULL",
    ),
    # Messages age in the order of their seq. One stored after the first that never aged must still exist.
    Rule(
        kind="parcel without message",
        says="parcels are sent and their message is not stored",
        cure=_UNEXPECTED,
        query=f"{_PARCEL} JOIN channels c ON c.id = p.channel WHERE p.state = '{ParcelState.SENT}' "
        "AND p.turn IS NOT NULL AND p.message_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.channel = p.channel AND m.platform_id = p.message_id) "
        "AND (c.aged_seq = 0 OR p.changed >= (SELECT m.received FROM messages m "
        "WHERE m.id > (p.channel << 40) + c.aged_seq AND m.id < p.channel + 1 << 40 ORDER BY m.id LIMIT 1))",
    ),
    Rule(
        kind="message sent twice",
        says="several parcels have the receipt of the same message",
        cure=_UNEXPECTED,
        query="SELECT group_concat('parcel ' || key, ', ') FROM parcels "
        f"WHERE state = '{ParcelState.SENT}' AND kind <> 'edit' AND turn IS NOT NULL AND message_id IS NOT NULL "
        "GROUP BY channel, message_id HAVING count(*) > 1",
    ),
    Rule(
        kind="parcel without bytes",
        says="parcels are still to be sent and the bytes of their files are not stored",
        cure="`belino outbox drop` gives them up; `belino restore` brings the bytes from a backup.",
        query=f"SELECT DISTINCT 'parcel ' || p.key FROM parcels p, json_each(CAST(p.files AS TEXT)) f "
        f"WHERE p.state IN {_LEAVING} "
        "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = json_extract(f.value, '$[0]'))",
    ),
)
_REFS = (
    Rule(
        kind="attachment outcome unknown",
        says="attachments have an outcome that does not exist",
        cure=_UNEXPECTED,
        query=f"{_REF} WHERE r.outcome NOT IN {_set(MediaOutcome)}",
    ),
    Rule(
        kind="attachment without reason",
        says="attachments could not be had and no reason is stored",
        cure=_REFETCH,
        query=f"{_REF} WHERE r.outcome NOT IN {_WELL} AND r.reason = ''",
    ),
    Rule(
        kind="attachment without bytes",
        says="attachments are held and their bytes are not stored, or not kept for them",
        cure=_REFETCH,
        query=f"{_REF} WHERE r.outcome = '{MediaOutcome.HELD}' AND NOT EXISTS (SELECT 1 FROM blobs b "
        "JOIN blob_uses u ON u.sha256 = b.sha256 AND u.owner = 'ref:' || r.id WHERE b.sha256 = r.sha256)",
    ),
    Rule(
        kind="attachment without message",
        says="attachments belong to no message that is stored",
        cure=_UNEXPECTED,
        query=f"{_REF} WHERE NOT EXISTS (SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message "
        "WHERE l.ref = r.seq)",
    ),
    Rule(
        kind="message without attachment",
        says="messages name attachments that are not stored, or attachments name messages that are not",
        cure=_UNEXPECTED,
        query="SELECT printf('message %016x, attachment %d', l.message, l.ref) FROM message_refs l "
        "WHERE NOT EXISTS (SELECT 1 FROM refs r WHERE r.seq = l.ref) "
        "OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = l.message)",
    ),
)
_BLOBS = (
    Rule(
        kind="blob row missing",
        says="bytes are in use and have no row",
        cure=_DISK,
        query="SELECT 'blob ' || u.sha256 || ' of ' || u.owner FROM blob_uses u WHERE u.owner NOT LIKE 'parcel:%' "
        "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = u.sha256) "
        "UNION ALL SELECT 'blob ' || l.sha256 || ' of upload ' || l.id FROM uploads l WHERE l.sha256 IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = l.sha256) "
        "UNION ALL SELECT 'blob ' || d.blob || ' of rendition ' || d.name FROM renditions d "
        "WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = d.blob)",
    ),
    Rule(
        kind="blob without owner",
        says="bytes are kept for something that is not stored, and would never be deleted",
        cure=_UNEXPECTED,
        query="SELECT 'blob ' || u.sha256 || ' of ' || u.owner FROM blob_uses u WHERE NOT EXISTS ("
        "SELECT 1 FROM refs r WHERE u.owner LIKE 'ref:%' AND r.id = substr(u.owner, 5) "
        "UNION ALL SELECT 1 FROM uploads l WHERE u.owner LIKE 'upload:%' AND l.id = substr(u.owner, 8) "
        "UNION ALL SELECT 1 FROM parcels p WHERE u.owner LIKE 'parcel:%' AND p.key = substr(u.owner, 8) "
        f"UNION ALL SELECT 1 FROM renditions d WHERE u.owner LIKE '{RENDITION}%' "
        f"AND u.owner = '{RENDITION}' || d.sha256 || ':' || d.name "
        f"AND d.sha256 = substr(u.owner, {len(RENDITION) + 1}, 64))",
    ),
)
_ARRIVALS = (
    Rule(
        kind="denial without reason",
        says="arrivals were denied and no reason is stored",
        cure=_UNEXPECTED,
        query="SELECT 'account ' || platform || ':' || account FROM denied WHERE reason = ''",
    ),
    Rule(
        kind="answer not ours",
        says="messages count as sent by an agent of ours and their author is none",
        cure=_UNEXPECTED,
        query=f"{_MESSAGE} WHERE {OWN} AND m.author_marks & 2 = 0",
    ),
)

RULES = (*_ARRIVALS, *_MESSAGES, *_TURNS, *_PARCELS, *_REFS, *_BLOBS)

STRAY_FILE = Rule(
    kind="file without row",
    says="files in blobs/ are named by no row",
    cure="`belino restore` if the database is older than the files; otherwise the gateway puts them aside in time.",
)
WITHOUT_FILE = Rule(kind="row without file", says="blobs have a row and no file in blobs/", cure=_DISK)
WRONG_SIZE = Rule(kind="file of wrong size", says="files in blobs/ do not have the size of their row", cure=_DISK)

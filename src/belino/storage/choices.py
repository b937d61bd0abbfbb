"""Choices: the answers that questions offer, each under a key of its own, and the one that was chosen."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from belino.domain.choice import KEY_CHARS, VALID_DAYS, Button, Choice, ChoiceMade, OfferedChoices, PickedChoice
from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel, ParcelKind, ParcelState
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import Tx, from_micros
from belino.storage.parcels import SELECT, buttons_of, insert_unasked
from belino.storage.row_ids import key_of
from belino.storage.text import sanitized

VALID = int(timedelta(days=VALID_DAYS) / timedelta(microseconds=1))
ANYONE = "*"
GONE = "this question is no longer open"
NOT_ASKED = "only the person who was asked may choose"

_INSERT = """
INSERT INTO choices (key, question, position, conversation, channel, parcel, label, value, style, who, is_numbered,
    created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING
"""


class ChoiceVerbs(BlobVerbs):
    """Questions with choices."""

    async def offer_choices(
        self, question: str, parcel: Parcel, choices: Sequence[Choice], *, is_numbered: bool, unasked: Sequence[Parcel]
    ) -> None:
        """Store the choices of a question that a parcel carries; `unasked` are parcels to send with it at once."""
        keys = [new_key() for _ in choices]
        now, (offered, sending) = self._now(), sanitized((tuple(choices), tuple(unasked)))

        def work(tx: Tx) -> None:
            tx.execute("DELETE FROM choices WHERE created < ? AND chosen IS NULL", (now - VALID,))
            where = parcel.conversation
            for position, (key, choice) in enumerate(zip(keys, offered, strict=True), 1):
                about = (str(where), str(where.whole_channel), parcel.key)
                said = (choice.label, choice.value or choice.label, choice.style, choice.who or ANYONE)
                tx.execute(_INSERT, (key, question, position, *about, *said, int(is_numbered), now))
            insert_unasked(tx, sending, now)

        await self._database.write(work)

    async def numbered_choice(self, conversation: ConversationKey, sender: str, number: int) -> str | None:
        """The key of a choice by its number in the newest open question that a sender was asked as text."""
        oldest = self._now() - VALID
        return await self._database.read(lambda tx: numbered_choice(tx, conversation, sender, number, oldest))

    async def choose(self, key: str, conversation: ConversationKey, *, sender: str, message_id: str) -> ChoiceMade:
        """Make a choice, once; the same message may come again. The question's message is then edited to show it."""
        now = self._now()
        return await self._database.write(lambda tx: choose(tx, key, conversation, sender, message_id, now))

    async def chosen(self, channel: ConversationKey, message_id: str) -> PickedChoice | None:
        """The choice that a message of a channel is; None if it is none."""
        return await self._database.read(lambda tx: chosen(tx, channel, message_id))

    async def offered_choices(self, parcel: str) -> OfferedChoices | None:
        """The choices that a parcel offers as buttons; None if it offers none."""
        return await self._database.read(lambda tx: offered_choices(tx, parcel))

    async def open_buttons(self, parcel: str) -> tuple[Button, ...]:
        """The buttons of a parcel that can still be pressed."""
        oldest = self._now() - VALID
        return await self._database.read(lambda tx: open_buttons(tx, parcel, oldest))

    async def reword_question(self, parcel: str, reworded: Parcel) -> None:
        """Note the new text of a sent question, which is shown with the choice once it is made."""
        said = sanitized(reworded)
        await self._database.write(lambda tx: reword_question(tx, parcel, said))


def new_key() -> str:
    """A key that is not guessable."""
    return secrets.token_hex(KEY_CHARS // 2)


def numbered_choice(tx: Tx, conversation: ConversationKey, sender: str, number: int, oldest: int) -> str | None:
    """The key of a choice by its number."""
    newest = tx.execute(
        "SELECT question FROM choices WHERE conversation = ? AND is_numbered = 1 AND created >= ? AND who IN (?, ?) "
        "ORDER BY created DESC, question LIMIT 1",
        (str(conversation), oldest, sender, ANYONE),
    ).fetchone()
    if newest is None:
        return None
    row = tx.execute(
        "SELECT key FROM choices WHERE question = ?1 AND position = ?2 AND NOT EXISTS "
        "(SELECT 1 FROM choices x WHERE x.question = ?1 AND x.chosen IS NOT NULL)",
        (newest["question"], number),
    ).fetchone()
    return None if row is None else str(row["key"])


def choose(tx: Tx, key: str, conversation: ConversationKey, sender: str, message_id: str, now: int) -> ChoiceMade:
    """Make a choice, if the sender may and none was made."""
    row = tx.execute("SELECT * FROM choices WHERE key = ?", (key,)).fetchone()
    if row is None or row["created"] < now - VALID or row["channel"] != str(conversation.whole_channel):
        return ChoiceMade(refused=GONE)
    if row["who"] not in (ANYONE, sender):
        return ChoiceMade(refused=NOT_ASKED)
    before = tx.execute(
        "SELECT label, chosen FROM choices WHERE question = ? AND chosen IS NOT NULL", (row["question"],)
    ).fetchone()
    if before is not None and before["chosen"] != message_id:
        return ChoiceMade(refused=f"already chosen: {before['label']}")
    tx.execute("UPDATE choices SET chosen = ? WHERE key = ?", (message_id, key))
    if not row["is_numbered"]:
        _show(tx, row["parcel"], row["question"], row["label"], now)
    return ChoiceMade(question=row["question"], label=row["label"], value=row["value"])


def chosen(tx: Tx, channel: ConversationKey, message_id: str) -> PickedChoice | None:
    """The choice that a message is."""
    row = tx.execute(
        "SELECT question, value, label FROM choices WHERE channel = ? AND chosen = ?",
        (str(channel.whole_channel), message_id),
    ).fetchone()
    return None if row is None else PickedChoice(question_id=row["question"], value=row["value"], label=row["label"])


def offered_choices(tx: Tx, parcel: str) -> OfferedChoices | None:
    """The choices that a parcel offers as buttons."""
    rows = tx.execute(
        "SELECT * FROM choices WHERE parcel = ? AND is_numbered = 0 ORDER BY position", (parcel,)
    ).fetchall()
    if not rows:
        return None
    return OfferedChoices(
        question_id=rows[0]["question"],
        buttons=tuple(Button(key=row["key"], label=row["label"], style=row["style"]) for row in rows),
        expires=from_micros(rows[0]["created"] + VALID),
        chosen=next((row["label"] for row in rows if row["chosen"] is not None), None),
    )


def open_buttons(tx: Tx, parcel: str, oldest: int) -> tuple[Button, ...]:
    """The buttons of a parcel, unless a choice was made or they are too old."""
    young = "SELECT 1 FROM choices WHERE parcel = ? AND created >= ? LIMIT 1"
    return buttons_of(tx, parcel) if tx.execute(young, (parcel, oldest)).fetchone() is not None else ()


def reword_question(tx: Tx, parcel: str, reworded: Parcel) -> None:
    """Replace the text of a question's parcel."""
    tx.execute(
        "UPDATE parcels SET text = ?, plain = ?, rich = ? WHERE key = ? "
        "AND EXISTS (SELECT 1 FROM choices c WHERE c.parcel = parcels.key)",
        (reworded.text, reworded.plain, reworded.rich, parcel),
    )


def _show(tx: Tx, parcel: str, question: str, label: str, now: int) -> None:
    """Put an edit of the question into the outbox, which removes its buttons and shows what was chosen."""
    asked = tx.execute(f"{SELECT} WHERE p.key = ?", (parcel,)).fetchone()
    if asked is None or asked["state"] != ParcelState.SENT:
        return
    edit = Parcel(
        key=f"chosen-{question}",
        conversation=key_of(asked),
        kind=ParcelKind.EDIT,
        text=f"{asked['plain'] or asked['text']}\n\n✓ {label}",
        edits=asked["message_id"],
        trace=f"chosen-{question}",
    )
    insert_unasked(tx, (edit,), now)

"""Wire format: values as clients see them, field by field, so that nothing leaks by accident."""

from collections.abc import Mapping

from belino.domain.choice import OfferedChoices, PickedChoice, in_short, may_be_choice
from belino.domain.linking import LinkCode
from belino.domain.media import MediaRef
from belino.domain.message import Author
from belino.domain.outcome import Finding, MediaOutcome
from belino.domain.owner import GroupAccess, OwnerNotice
from belino.domain.reply import Doubt, ParcelState
from belino.domain.stored import (
    ChannelSummary,
    ConversationSummary,
    Grant,
    Pairing,
    ParcelRecord,
    RefRecord,
    StoredMessage,
    Tidied,
    Upload,
)
from belino.domain.turn import Usage
from belino.gateway.events import ReadingNotice
from belino.gateway.health import AdapterHealth
from belino.gateway.linking import LinkProgress, qr_rows
from belino.gateway.reading_attempts import reading_json, readings_of
from belino.media.preview import promised
from belino.media.price import said_type
from belino.storage.store import Store
from belino.understanding.request import ReadingState
from belino.web.mimes import media_file_name

Json = dict[str, object]

_STATES = {ReadingState.READING: "running", ReadingState.READ: "done", ReadingState.UNREAD: "failed"}


def author_json(author: Author) -> Json:
    return {"id": author.id, "name": author.name, "is_bot": author.is_bot, "is_agent": author.is_agent}


def media_json(ref: MediaRef, record: RefRecord | None) -> Json:
    """A ref without its locator: its facts, its outcome, and the address of its bytes if we hold them."""
    if record is not None:
        ref = record.ref
    return {
        "ref": ref.id,
        "kind": ref.kind,
        "mime": ref.mime,
        "file_name": ref.file_name,
        "size": ref.size,
        "duration": ref.duration,
        "width": ref.width,
        "height": ref.height,
        "caption": ref.caption,
        "alt": ref.alt,
        "outcome": record.outcome if record else MediaOutcome.REFERENCED,
        "reason": record.reason if record else "",
        "url": media_url(record) if record else None,
        "preview": promised(said_type(ref.mime, ref.file_name)),
    }


def media_url(record: RefRecord) -> str | None:
    """The address of the bytes for a browser, if we hold them."""
    if record.outcome is not MediaOutcome.HELD or record.ref.sha256 is None:
        return None
    return f"/api/media/{media_file_name(record.public_name, record.ref)}"


async def message_json(store: Store, message: StoredMessage) -> Json:
    """A message with the outcomes of its media and, for the agent's own, of its delivery."""
    channel = message.conversation.whole_channel
    parcel = await store.parcel_of(channel, message.id) if message.author.is_agent else None
    offered = await store.offered_choices(parcel.key) if parcel else None
    chosen = await store.chosen(channel, message.id) if may_be_choice(message.text) else None
    return {
        "seq": message.seq,
        "conversation": str(message.conversation),
        "id": message.id,
        "author": author_json(message.author),
        "sent": message.sent,
        "received": message.received,
        "text": chosen.label if chosen else message.text,
        "choice": choice_json(chosen),
        "choices": choices_json(offered),
        "media": [media_json(ref, await store.ref(channel, ref.id)) for ref in message.media],
        "readings": [reading_json(reading) for reading in await readings_of(store, message.media)],
        "standing": message.standing,
        "outcome": message.outcome,
        "reason": message.reason,
        "trace": message.trace,
        "reply_to": message.reply_to,
        "album": message.album,
        "edited": message.edited,
        "deleted": message.deleted,
        "reactions": [[emoji, count] for emoji, count in message.reactions],
        # An agent's message is stored when its receipt comes, never earlier; the platform's later report may differ.
        "delivery": (parcel.state if parcel else ParcelState.SENT) if message.author.is_agent else None,
        "delivery_reason": parcel.reason if parcel else "",
        "usage": usage_json(await store.spent(channel, message.id) if message.author.is_agent else None),
    }


def choice_json(chosen: PickedChoice | None) -> Json | None:
    """The choice that a message is."""
    return None if chosen is None else {"question_id": chosen.question_id, "value": chosen.value}


def choices_json(offered: OfferedChoices | None) -> Json | None:
    """The choices that a message offers, and the one that was made."""
    if offered is None:
        return None
    return {
        "question_id": offered.question_id,
        "buttons": [{"key": each.key, "label": each.label, "style": each.style} for each in offered.buttons],
        "chosen": offered.chosen,
        "expires": offered.expires,
    }


def reading_event_json(notice: ReadingNotice) -> Json:
    """The progress of a reading."""
    news = notice.news
    skipped = news.state is ReadingState.UNREAD and not news.provider
    return {
        "ref": news.ref,
        "message_id": notice.message_id,
        "attachment_index": notice.attachment_index,
        "as": notice.form,
        "state": "skipped" if skipped else _STATES[news.state],
        "done": news.done,
        "total": news.total,
        "provider": news.provider,
        "reason": news.reason,
    }


def usage_json(usage: Usage | None) -> Json | None:
    """The cost of a turn."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "model": usage.model,
    }


def record_json(record: RefRecord) -> Json:
    """A ref in a listing."""
    return {
        **media_json(record.ref, record),
        "conversation": str(record.conversation),
        "message_id": record.ref.message_id,
        "author": author_json(record.author),
        "sent": record.sent,
        "seq": record.seq,
    }


def conversation_json(summary: ConversationSummary) -> Json:
    return {
        "conversation": str(summary.conversation),
        "name": summary.name,
        "platform": summary.conversation.platform,
        "messages": summary.messages,
        "last": summary.last,
        "last_author": summary.last_author,
        "last_text": in_short(summary.last_text),
        "waiting": summary.waiting,
    }


def channel_json(summary: ChannelSummary) -> Json:
    return {
        "channel": str(summary.channel),
        "name": summary.name,
        "platform": summary.channel.platform,
        "chat_type": summary.chat_type,
        "messages": summary.messages,
        "media": summary.media,
        "media_held": summary.media_held,
        "last": summary.last,
    }


def parcel_json(parcel: ParcelRecord) -> Json:
    return {
        "key": parcel.key,
        "conversation": str(parcel.conversation),
        "kind": parcel.kind,
        # Only the stranger may present a pairing code; it is not shown.
        "text": "(a pairing code)" if parcel.key.startswith("pairing-") else parcel.text,
        "files": [
            {"name": file.name, "mime": file.mime, "size": file.size, "send_as": file.send_as, "caption": file.caption}
            for file in parcel.files
        ],
        "state": parcel.state,
        "attempts": parcel.attempts,
        "reason": parcel.reason,
        "may_have_arrived": parcel.state is not ParcelState.SENT and parcel.doubt >= Doubt.UNANSWERED,
        "dropped": parcel.dropped,
        "created": parcel.created,
        "changed": parcel.changed,
        "ready": parcel.ready,
        "message_id": parcel.message_id,
        "delivery": parcel.delivery,
        "trace": parcel.trace,
    }


def upload_json(upload: Upload) -> Json:
    return {"upload_id": upload.id, "offset": upload.offset, "size": upload.size, "sha256": upload.sha256}


def grant_json(grant: Grant) -> Json:
    return {
        "id": grant.id,
        "kind": grant.kind,
        "conversation": str(grant.conversation) if grant.conversation else None,
        "note": grant.note,
        "created": grant.created,
        "expires": grant.expires,
    }


def pairing_json(pairing: Pairing) -> Json:
    return {
        "who": pairing.who,
        "platform": pairing.platform,
        "account": pairing.account,
        "sender": pairing.sender_id,
        "name": pairing.name,
        "state": "paired" if pairing.is_paired else "waiting" if pairing.tries_left else "refused",
        "at": pairing.at,
        "expires": pairing.expires,
        "tries_left": pairing.tries_left,
    }


def group_json(group: GroupAccess) -> Json:
    return {
        "group": str(group.channel),
        "platform": group.channel.platform,
        "account": group.channel.account,
        "channel": group.channel.channel,
        "name": group.name,
        "code": group.code,
        "state": group.state,
        "inviter": {"id": group.inviter_id, "name": group.inviter_name} if group.inviter_id else None,
        "everyone": group.everyone,
        "asked": group.asked,
        "decided": group.decided,
    }


def notice_json(notice: OwnerNotice) -> Json:
    return {"kind": notice.kind, "text": notice.text, "at": notice.at}


def accounts_json(accounts: Mapping[tuple[str, str], AdapterHealth]) -> list[Json]:
    """The health of every account."""
    return [
        {
            "platform": platform,
            "account": account,
            "works": health.works,
            "state": health.state,
            "since": health.since,
            "reason": health.reason,
            "restarts": health.restarts,
            "heard": health.heard,
            "sent": health.sent,
            "can_take_over": health.can_take_over,
            "can_link": health.can_link,
        }
        for (platform, account), health in sorted(accounts.items(), key=lambda pair: pair[0])
    ]


def link_json(progress: LinkProgress) -> Json:
    """How far the linking of a device is, with the QR code to show; the page has it only while it is valid."""
    code = progress.code or LinkCode()
    return {
        "state": progress.state,
        "rows": qr_rows(code.scan) if code.scan else [],
        "type_in": code.type_in,
        "until": code.until,
        "reason": progress.reason,
    }


def finding_json(finding: Finding) -> Json:
    return {"name": finding.name, "ok": finding.ok, "says": finding.says, "cure": finding.cure}


def tidied_json(tidied: Tidied) -> Json:
    return {
        "deleted": tidied.deleted,
        "unused": tidied.unused,
        "strays": tidied.strays,
        "put_aside": tidied.put_aside,
        "brought_back": tidied.brought_back,
        "expired": tidied.expired,
        "lost": tidied.lost,
        "unfinished": tidied.unfinished,
        "freed": tidied.freed,
    }

"""Policy of media understanding: which attachments are read, by which entries, within which limits; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from belino.domain.media import MediaKind, Unread
from belino.domain.message import ChatType, ConversationKey
from belino.domain.provider import Provider
from belino.domain.reading import MediaCapability, ReadingForm, ReadingOutcome, Skill
from belino.domain.units import format_size
from belino.media.price import said_type
from belino.media.sniff.hints import normal
from belino.understanding.config import (
    DEFAULTS,
    AttachmentRules,
    CapabilityTools,
    MediaTools,
    ModelEntry,
    ReadingLimits,
    ScopeRules,
)
from belino.understanding.language import guess_language, tag_of

TINY_AUDIO_BYTES = 1024
"""A smaller sound holds no speech."""

SKILLS: Mapping[tuple[MediaCapability, ReadingForm], tuple[Skill, ...]] = {
    (MediaCapability.IMAGE, ReadingForm.DESCRIPTION): (Skill.DESCRIBE,),
    (MediaCapability.IMAGE, ReadingForm.TEXT): (Skill.READ_TEXT,),
    (MediaCapability.AUDIO, ReadingForm.TRANSCRIPT): (Skill.TRANSCRIBE,),
    (MediaCapability.VIDEO, ReadingForm.TRANSCRIPT): (Skill.TRANSCRIBE,),
    (MediaCapability.VIDEO, ReadingForm.DESCRIPTION): (Skill.DESCRIBE_VIDEO, Skill.DESCRIBE),
    (MediaCapability.VIDEO, ReadingForm.TEXT): (Skill.READ_TEXT,),
    (MediaCapability.DOCUMENT, ReadingForm.TEXT): (Skill.READ_TEXT,),
}
"""The skills that make a form of a kind of media, the best first."""

_PICTURES = frozenset({"image", "sticker"})
_SOUNDS = frozenset({"audio", "voice"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaItem:
    """An attachment, as far as it is known without its bytes."""

    index: int
    ref: str
    mime: str
    kind: MediaKind
    name: str | None = None
    size: int | None = None
    held: bool = False
    """Whether its bytes are stored already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An entry that may read, with what its provider can do."""

    entry: ModelEntry
    skills: frozenset[Skill] = frozenset()
    local: bool = False
    languages: frozenset[str] | None = None
    unusable: str = ""
    """Why it cannot be used: it is not installed, or has no key."""
    readers: tuple[Provider, ...] = field(default=(), compare=False)
    """One for each key."""


FindCandidates = Callable[[MediaCapability], Sequence[Candidate]]
"""Called for a kind of media that is to be read: finding what can read it may import and try providers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where and for whom media is read."""

    conversation: ConversationKey
    chat_type: ChatType
    sees_images: bool = False
    attached: frozenset[str] = frozenset()
    """Types of documents that the agent gets as they are."""
    language: str | None = None
    """As the platform reports it."""
    recent_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChoice:
    """One entry, as it is used for one attachment."""

    candidate: Candidate
    skill: Skill
    limits: ReadingLimits
    prompt: str | None
    language: str | None
    skip: str = ""
    """Why it is not used for this attachment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingJob:
    """One form that is to be read from an attachment, with the entries to try in order."""

    form: ReadingForm
    choices: tuple[EntryChoice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPlan:
    """What is to be done with one attachment."""

    item: MediaItem
    jobs: tuple[ReadingJob, ...] = ()
    reason: str = ""
    """Why it is not read."""
    unread: Unread | None = None
    """The same for the agent, if it is the attachment's own fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityPlan:
    """What is to be done with the attachments of one kind."""

    capability: MediaCapability
    outcome: ReadingOutcome | None
    """None if something is to be read."""
    reason: str = ""
    items: tuple[ItemPlan, ...] = ()


def decide(
    items: Sequence[MediaItem],
    tools: MediaTools,
    candidates: FindCandidates,
    situation: Situation,
) -> tuple[CapabilityPlan, ...]:
    """What is to be done with every attachment of a message: each is in exactly one plan."""
    by_kind: dict[MediaCapability, list[MediaItem]] = {capability: [] for capability in MediaCapability}
    for item in items:
        by_kind[capability_of(item.mime, item.name, item.kind)].append(item)
    return tuple(_plan(capability, found, tools, candidates, situation) for capability, found in by_kind.items())


def capability_of(mime: str, name: str | None, kind: MediaKind) -> MediaCapability:
    """The kind of media: by its type, then by its name, then by what the platform calls it."""
    major = normal(said_type(mime, name)).partition("/")[0]
    if major in ("image", "audio", "video"):
        return MediaCapability(major)
    if said_type(mime, name) in ("", "application/octet-stream"):
        if kind in _PICTURES:
            return MediaCapability.IMAGE
        if kind in _SOUNDS:
            return MediaCapability.AUDIO
        if kind == "video":
            return MediaCapability.VIDEO
    return MediaCapability.DOCUMENT


def scope_allows(scope: ScopeRules, conversation: ConversationKey, chat_type: ChatType) -> bool:
    """Whether media is read there: the first rule that matches decides."""
    for rule in scope.rules:
        if rule.platform is not None and rule.platform != conversation.platform:
            continue
        if rule.chat_type is not None and rule.chat_type is not chat_type:
            continue
        if rule.key_prefix is not None and not str(conversation).startswith(rule.key_prefix):
            continue
        return rule.action == "allow"
    return scope.default == "allow"


def why_not(capability: MediaCapability, tools: MediaTools, situation: Situation) -> tuple[ReadingOutcome, str] | None:
    """Why a kind of media is not read here at all; None if it is."""
    own = tools.of(capability)
    if not own.enabled:
        return ReadingOutcome.DISABLED, f"tools.media.{capability}.enabled is false"
    if not scope_allows(own.scope or tools.scope, situation.conversation, situation.chat_type):
        return ReadingOutcome.SCOPE_DENY, "the scope of tools.media does not allow it in this conversation"
    return None


def choices_for(
    capability: MediaCapability,
    form: ReadingForm,
    tools: MediaTools,
    candidates: Sequence[Candidate],
    situation: Situation,
    *,
    size: int | None = None,
) -> tuple[EntryChoice, ...]:
    """The entries that can read this form, in order, each with its limits; `size` is compared with `max_bytes`."""
    own = tools.of(capability)
    choices = []
    for candidate in candidates:
        skill = next((skill for skill in SKILLS.get((capability, form), ()) if skill in candidate.skills), None)
        if skill is None and not candidate.unusable:
            continue
        entry = candidate.entry
        limits = limits_of(entry, own, capability)
        language = entry.language or own.language
        choices.append(
            EntryChoice(
                candidate=candidate,
                skill=skill or SKILLS[capability, form][0],
                limits=limits,
                prompt=entry.prompt or own.prompt,
                language=language,
                skip=candidate.unusable
                or _wrong_language(candidate, skill, spoken(language, situation))
                or too_large(limits, size),
            )
        )
    return tuple(choices)


def limits_of(entry: ModelEntry, own: CapabilityTools, capability: MediaCapability) -> ReadingLimits:
    """The limits of an entry: its own, else those of the kind of media, else the defaults."""
    default = DEFAULTS[capability]
    return ReadingLimits(
        max_bytes=_first(entry.max_bytes, own.max_bytes, default.max_bytes),
        max_chars=_first(entry.max_chars, own.max_chars, default.max_chars),
        timeout=_first(entry.timeout_seconds, own.timeout_seconds, default.timeout),
    )


def spoken(configured: str | None, situation: Situation) -> str | None:
    """The language that a sound is most likely in: as configured, as the sender writes, or as the platform reports."""
    return tag_of(configured) or guess_language(situation.recent_texts) or tag_of(situation.language)


def is_tiny(capability: MediaCapability, size: int | None) -> bool:
    """Whether a sound is too small to hold speech."""
    return capability is MediaCapability.AUDIO and size is not None and size < TINY_AUDIO_BYTES


def tiny_reason(size: int) -> str:
    """Why a tiny sound is not sent to a provider."""
    return f"a sound of {size} bytes is too small to hold speech (under {TINY_AUDIO_BYTES})"


def may_preflight(tools: MediaTools, situation: Situation, *, text: str, may_command: bool, gated: bool) -> str:
    """Why a voice message is not read before the mention gate; empty if it is."""
    if not tools.audio_preflight:
        return "tools.media.audio_preflight is false"
    if not gated:
        return "the agent answers here without being mentioned"
    if text.strip():
        return "the message has words of its own"
    if not may_command:
        return "the sender may not command the agent"
    refused = why_not(MediaCapability.AUDIO, tools, situation)
    return refused[1] if refused is not None else ""


def _plan(
    capability: MediaCapability,
    items: Sequence[MediaItem],
    tools: MediaTools,
    candidates: FindCandidates,
    situation: Situation,
) -> CapabilityPlan:
    refused = _refusal(capability, items, tools, situation)
    if refused is not None:
        outcome, reason = refused
        plans = tuple(ItemPlan(item=item, reason=reason) for item in items)
        return CapabilityPlan(capability=capability, outcome=outcome, reason=reason, items=plans)
    rules = tools.of(capability).attachments or tools.attachments
    chosen = {item.index for item in _selected(items, rules)}
    found = candidates(capability)
    plans = tuple(
        _item_plan(capability, item, tools, found, situation)
        if item.index in chosen
        else ItemPlan(item=item, reason=_left_out(rules))
        for item in items
    )
    if any(not plan.reason for plan in plans):
        return CapabilityPlan(capability=capability, outcome=None, items=plans)
    return CapabilityPlan(capability=capability, outcome=ReadingOutcome.SKIPPED, reason=plans[0].reason, items=plans)


def _refusal(
    capability: MediaCapability, items: Sequence[MediaItem], tools: MediaTools, situation: Situation
) -> tuple[ReadingOutcome, str] | None:
    refused = why_not(capability, tools, situation)
    if refused is not None and refused[0] is ReadingOutcome.DISABLED:
        return refused
    if not items:
        return ReadingOutcome.NO_ATTACHMENT, f"the message has no {capability}"
    if refused is not None:
        return refused
    if capability is MediaCapability.IMAGE and situation.sees_images:
        return ReadingOutcome.SKIPPED, "the agent sees pictures itself"
    return None


def _selected(items: Sequence[MediaItem], rules: AttachmentRules) -> Sequence[MediaItem]:
    match rules.prefer:
        case "last":
            ranked = list(reversed(items))
        case "path":
            ranked = sorted(items, key=lambda item: not item.held)
        case "url":
            ranked = sorted(items, key=lambda item: item.held)
        case _:
            ranked = list(items)
    return ranked[: 1 if rules.mode == "first" else rules.max_attachments]


def _left_out(rules: AttachmentRules) -> str:
    if rules.mode == "first":
        return 'only one attachment of each kind is read (attachments.mode = "first")'
    return f"only {rules.max_attachments} attachments of a kind are read (attachments.max_attachments)"


def _item_plan(
    capability: MediaCapability,
    item: MediaItem,
    tools: MediaTools,
    candidates: Sequence[Candidate],
    situation: Situation,
) -> ItemPlan:
    if is_tiny(capability, item.size):
        return ItemPlan(item=item, reason=tiny_reason(item.size or 0), unread=Unread.NO_TEXT)
    if said_type(item.mime, item.name) in situation.attached:
        return ItemPlan(item=item, reason="the agent gets it as it is")
    jobs = tuple(
        ReadingJob(form=form, choices=choices_for(capability, form, tools, candidates, situation, size=item.size))
        for form in _forms_at_turn(capability, candidates)
    )
    if capability is MediaCapability.DOCUMENT:
        # A document's own text needs no provider.
        large = too_large(limits_of(ModelEntry(provider=""), tools.of(capability), capability), item.size)
        return ItemPlan(item=item, jobs=jobs, reason=large, unread=Unread.TOO_LARGE if large else None)
    if not any(job.choices for job in jobs):
        return ItemPlan(item=item, reason=f"no provider for {capability} is configured or installed")
    return ItemPlan(item=item, jobs=jobs)


def _forms_at_turn(capability: MediaCapability, candidates: Sequence[Candidate]) -> tuple[ReadingForm, ...]:
    """The forms that are read for a turn."""
    match capability:
        case MediaCapability.AUDIO:
            return (ReadingForm.TRANSCRIPT,)
        case MediaCapability.DOCUMENT:
            return (ReadingForm.TEXT,)
        case MediaCapability.VIDEO:
            return (ReadingForm.DESCRIPTION, ReadingForm.TRANSCRIPT)
        case MediaCapability.IMAGE:
            # Without a description, the text in a picture is better than nothing.
            describes = any(Skill.DESCRIBE in each.skills and not each.unusable for each in candidates)
            return (ReadingForm.DESCRIPTION,) if describes else (ReadingForm.TEXT,)


def _wrong_language(candidate: Candidate, skill: Skill | None, language: str | None) -> str:
    known = candidate.languages
    if skill is not Skill.TRANSCRIBE or known is None or language is None or language in known:
        return ""
    return "speaks English only" if known == {"en"} else f"speaks {', '.join(sorted(known))} only"


def too_large(limits: ReadingLimits, size: int | None) -> str:
    """Why a file is not given to an entry; empty if it is."""
    if size is None or size <= limits.max_bytes:
        return ""
    return f"{format_size(size)} is over max_bytes ({format_size(limits.max_bytes)})"


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)

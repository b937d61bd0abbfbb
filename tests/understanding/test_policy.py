"""The policy decides about every attachment, exactly once, and says why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.media import MediaKind
from belino.domain.message import ChatType, ConversationKey
from belino.domain.reading import MediaCapability, ReadingForm, ReadingOutcome, Skill
from belino.understanding.config import (
    AttachmentRules,
    CapabilityTools,
    MediaTools,
    ModelEntry,
    ScopeRule,
    ScopeRules,
)
from belino.understanding.language import guess_language, tag_of
from belino.understanding.policy import (
    Candidate,
    CapabilityPlan,
    MediaItem,
    Situation,
    capability_of,
    choices_for,
    decide,
    may_preflight,
)

IMAGE, AUDIO, VIDEO, DOCUMENT = MediaCapability
HERE = ConversationKey(platform="web", account="default", channel="c1")
GROUP = Situation(conversation=HERE, chat_type=ChatType.GROUP)
EARS = Candidate(entry=ModelEntry(provider="ears"), skills=frozenset({Skill.TRANSCRIBE}))
EYES = Candidate(entry=ModelEntry(provider="eyes"), skills=frozenset({Skill.DESCRIBE}))
LENS = Candidate(entry=ModelEntry(provider="lens"), skills=frozenset({Skill.READ_TEXT}), local=True)


def item(index: int = 0, mime: str = "audio/ogg", **facts: Any) -> MediaItem:
    return MediaItem(index=index, ref=f"web_{index}", mime=mime, **{"kind": MediaKind.DOCUMENT, "size": 5_000, **facts})


def plan_of(
    capability: MediaCapability,
    items: Sequence[MediaItem],
    tools: MediaTools | None = None,
    situation: Situation = GROUP,
    candidates: Sequence[Candidate] = (EARS, EYES, LENS),
) -> CapabilityPlan:
    plans = decide(items, tools or MediaTools(), lambda _: candidates, situation)
    return next(plan for plan in plans if plan.capability is capability)


def tools_of(capability: MediaCapability, **own: Any) -> MediaTools:
    kinds: dict[str, Any] = {capability.value: CapabilityTools(**own)}
    return MediaTools(**kinds)


@pytest.mark.parametrize(
    ("mime", "name", "kind", "capability"),
    [
        ("image/jpeg", None, MediaKind.DOCUMENT, IMAGE),
        ("audio/ogg; codecs=opus", None, MediaKind.VOICE, AUDIO),
        ("video/mp4", None, MediaKind.VIDEO, VIDEO),
        ("application/pdf", "photo.jpg", MediaKind.IMAGE, DOCUMENT),
        ("application/octet-stream", "note.m4a", MediaKind.DOCUMENT, AUDIO),
        ("", "clip.MOV", MediaKind.DOCUMENT, VIDEO),
        ("application/octet-stream", None, MediaKind.VOICE, AUDIO),
        ("application/octet-stream", None, MediaKind.STICKER, IMAGE),
        ("application/octet-stream", None, MediaKind.VIDEO, VIDEO),
        ("application/octet-stream", None, MediaKind.DOCUMENT, DOCUMENT),
        ("nonsense", "x", MediaKind.DOCUMENT, DOCUMENT),
    ],
)
def test_a_kind_of_media_is_told_by_type_then_name_then_platform(
    mime: str, name: str | None, kind: MediaKind, capability: MediaCapability
) -> None:
    assert capability_of(mime, name, kind) is capability


@pytest.mark.parametrize(
    ("tools", "situation", "items", "outcome", "says"),
    [
        (MediaTools(), GROUP, [], ReadingOutcome.NO_ATTACHMENT, "the message has no audio"),
        (
            tools_of(AUDIO, enabled=False),
            GROUP,
            [item()],
            ReadingOutcome.DISABLED,
            "tools.media.audio.enabled is false",
        ),
        (tools_of(AUDIO, enabled=False), GROUP, [], ReadingOutcome.DISABLED, "tools.media.audio.enabled is false"),
        (MediaTools(scope=ScopeRules(default="deny")), GROUP, [item()], ReadingOutcome.SCOPE_DENY, "scope"),
        (MediaTools(), GROUP, [item(size=1023)], ReadingOutcome.SKIPPED, "1023 bytes is too small to hold speech"),
    ],
)
def test_what_is_not_read_says_why(
    tools: MediaTools, situation: Situation, items: Sequence[MediaItem], outcome: ReadingOutcome, says: str
) -> None:
    plan = plan_of(AUDIO, items, tools, situation)
    assert plan.outcome is outcome
    assert says in plan.reason
    assert all(each.reason and not each.jobs for each in plan.items)


def test_a_sound_of_just_enough_bytes_is_read() -> None:
    plan = plan_of(AUDIO, [item(size=1024)])
    assert plan.outcome is None
    (job,) = plan.items[0].jobs
    assert (job.form, [choice.candidate for choice in job.choices]) == (ReadingForm.TRANSCRIPT, [EARS])


def test_a_sound_of_unknown_size_is_read() -> None:
    assert plan_of(AUDIO, [item(size=None)]).outcome is None


def test_a_picture_is_not_described_for_an_agent_that_sees() -> None:
    plan = plan_of(IMAGE, [item(mime="image/png")], situation=replace(GROUP, sees_images=True))
    assert (plan.outcome, plan.reason) == (ReadingOutcome.SKIPPED, "the agent sees pictures itself")


def test_providers_are_looked_for_only_where_something_is_to_be_read() -> None:
    asked: list[MediaCapability] = []

    def candidates(capability: MediaCapability) -> Sequence[Candidate]:
        asked.append(capability)
        return (EYES,)

    photo, off = item(0, "image/jpeg"), tools_of(VIDEO, enabled=False)
    decide([photo, item(1, "video/mp4")], off, candidates, replace(GROUP, sees_images=True))
    assert not asked
    decide([photo], MediaTools(), candidates, GROUP)
    assert asked == [IMAGE]


def test_a_picture_is_described_or_else_its_text_is_read() -> None:
    picture = item(mime="image/png")
    (described,) = plan_of(IMAGE, [picture]).items[0].jobs
    assert (described.form, described.choices[0].candidate) == (ReadingForm.DESCRIPTION, EYES)
    (read,) = plan_of(IMAGE, [picture], candidates=(EARS, LENS)).items[0].jobs
    assert (read.form, read.choices[0].candidate) == (ReadingForm.TEXT, LENS)


def test_a_video_is_described_by_whoever_takes_it_whole_or_by_its_frames_and_its_sound() -> None:
    whole = Candidate(entry=ModelEntry(provider="film"), skills=frozenset({Skill.DESCRIBE_VIDEO, Skill.DESCRIBE}))
    jobs = plan_of(VIDEO, [item(mime="video/mp4")], candidates=(whole, EYES, EARS)).items[0].jobs
    assert [(job.form, [choice.skill for choice in job.choices]) for job in jobs] == [
        (ReadingForm.DESCRIPTION, [Skill.DESCRIBE_VIDEO, Skill.DESCRIBE]),
        (ReadingForm.TRANSCRIPT, [Skill.TRANSCRIBE]),
    ]


def test_a_document_is_read_without_a_provider() -> None:
    plan = plan_of(DOCUMENT, [item(mime="application/pdf")], candidates=())
    assert (plan.outcome, plan.items[0].reason) == (None, "")


def test_a_document_over_its_limit_is_left_to_requests() -> None:
    plan = plan_of(DOCUMENT, [item(mime="application/pdf", size=21 * 1024 * 1024)])
    assert (plan.outcome, plan.reason) == (ReadingOutcome.SKIPPED, "21.0MB is over max_bytes (20.0MB)")


def test_without_a_provider_that_is_said() -> None:
    plan = plan_of(AUDIO, [item()], candidates=(EYES,))
    assert plan.outcome is ReadingOutcome.SKIPPED
    assert plan.reason == "no provider for audio is configured or installed"


def test_an_entry_that_cannot_be_used_is_listed_with_its_reason() -> None:
    broken = Candidate(entry=ModelEntry(provider="ghost"), unusable="it is not installed")
    (job,) = plan_of(AUDIO, [item()], candidates=(broken, EARS)).items[0].jobs
    assert [(choice.candidate.entry.provider, choice.skip) for choice in job.choices] == [
        ("ghost", "it is not installed"),
        ("ears", ""),
    ]


@pytest.mark.parametrize(
    ("rules", "read"),
    [
        (AttachmentRules(), [0, 1, 2]),
        (AttachmentRules(mode="first"), [0]),
        (AttachmentRules(mode="first", prefer="last"), [2]),
        (AttachmentRules(mode="first", prefer="path"), [1]),
        (AttachmentRules(mode="first", prefer="url"), [0]),
        (AttachmentRules(max_attachments=2), [0, 1]),
        (AttachmentRules(max_attachments=2, prefer="last"), [1, 2]),
        (AttachmentRules(max_attachments=2, prefer="url"), [0, 2]),
    ],
)
def test_attachments_are_selected_as_configured(rules: AttachmentRules, read: list[int]) -> None:
    items = [item(0), item(1, held=True), item(2)]
    for tools in (MediaTools(attachments=rules), tools_of(AUDIO, attachments=rules)):
        plan = plan_of(AUDIO, items, tools)
        assert [each.item.index for each in plan.items if not each.reason] == read
        assert all("attachments." in each.reason for each in plan.items if each.reason)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], True),
        ([ScopeRule(action="deny", platform="web")], False),
        ([ScopeRule(action="deny", platform="other")], True),
        ([ScopeRule(action="deny", chat_type=ChatType.GROUP)], False),
        ([ScopeRule(action="deny", chat_type=ChatType.DIRECT)], True),
        ([ScopeRule(action="deny", key_prefix="web:default:c")], False),
        ([ScopeRule(action="deny", key_prefix="web:other")], True),
        ([ScopeRule(action="allow", platform="web"), ScopeRule(action="deny")], True),
        ([ScopeRule(action="deny"), ScopeRule(action="allow", platform="web")], False),
        ([ScopeRule(action="deny", platform="web", chat_type=ChatType.DIRECT)], True),
    ],
)
def test_the_first_rule_of_the_scope_that_matches_decides(rules: list[ScopeRule], allowed: bool) -> None:
    tools = MediaTools(scope=ScopeRules(rules=tuple(rules)))
    assert (plan_of(AUDIO, [item()], tools).outcome is None) is allowed


def test_the_scope_of_a_kind_of_media_takes_the_place_of_the_common_one() -> None:
    tools = MediaTools(audio=CapabilityTools(scope=ScopeRules()), scope=ScopeRules(default="deny"))
    assert plan_of(AUDIO, [item()], tools).outcome is None


@pytest.mark.parametrize(
    ("entry", "own", "expected"),
    [
        ({}, {}, (20 * 1024 * 1024, None, 60.0)),
        ({}, {"max_bytes": 10, "max_chars": 20, "timeout_seconds": 30.0}, (10, 20, 30.0)),
        ({"max_bytes": 1, "max_chars": 2, "timeout_seconds": 3.0}, {"max_bytes": 10, "max_chars": 20}, (1, 2, 3.0)),
    ],
)
def test_the_limits_of_an_entry_win_over_those_of_the_kind_and_the_defaults(
    entry: dict[str, Any], own: dict[str, Any], expected: tuple[object, ...]
) -> None:
    candidate = replace(EARS, entry=ModelEntry(provider="ears", **entry))
    (choice,) = choices_for(AUDIO, ReadingForm.TRANSCRIPT, tools_of(AUDIO, **own), (candidate,), GROUP)
    assert (choice.limits.max_bytes, choice.limits.max_chars, choice.limits.timeout) == expected


def test_over_the_limit_of_an_entry_the_next_one_is_used() -> None:
    small = replace(EARS, entry=ModelEntry(provider="small", max_bytes=4_999))
    (job,) = plan_of(AUDIO, [item()], candidates=(small, EARS)).items[0].jobs
    assert [choice.skip for choice in job.choices] == ["5KB is over max_bytes (5KB)", ""]


def test_prompt_and_language_come_from_the_entry_then_from_the_kind() -> None:
    own = tools_of(AUDIO, prompt="kind", language="fr")
    loud = replace(EARS, entry=ModelEntry(provider="ears", prompt="entry", language="de"))
    choices = choices_for(AUDIO, ReadingForm.TRANSCRIPT, own, (loud, EARS), GROUP)
    assert [(choice.prompt, choice.language) for choice in choices] == [("entry", "de"), ("kind", "fr")]


GERMAN = ("Ich bin heute nicht da, aber wir können uns morgen sehen.",)
ENGLISH = ("I am not here today, but we could meet tomorrow if you like.",)


@pytest.mark.parametrize(
    ("configured", "platform", "texts", "skip"),
    [
        (None, None, (), ""),
        ("en", "de", GERMAN, ""),
        ("en-GB", None, (), ""),
        ("de", "en", ENGLISH, "speaks English only"),
        (None, "de", (), "speaks English only"),
        (None, "en-US", (), ""),
        (None, None, GERMAN, "speaks English only"),
        (None, None, ENGLISH, ""),
        (None, "en", GERMAN, "speaks English only"),
        (None, None, ("ok 👍",), ""),
        (None, None, ("как дела, всё хорошо?",), "speaks English only"),
    ],
)
def test_an_english_recogniser_is_skipped_for_those_who_speak_otherwise(
    configured: str | None, platform: str | None, texts: tuple[str, ...], skip: str
) -> None:
    english = replace(EARS, languages=frozenset({"en"}), entry=ModelEntry(provider="ears", language=configured))
    situation = replace(GROUP, language=platform, recent_texts=texts)
    (choice,) = choices_for(AUDIO, ReadingForm.TRANSCRIPT, MediaTools(), (english,), situation)
    assert choice.skip == skip


def test_a_recogniser_of_several_languages_names_them() -> None:
    two = replace(EARS, languages=frozenset({"en", "fr"}))
    situation = replace(GROUP, language="de")
    (choice,) = choices_for(AUDIO, ReadingForm.TRANSCRIPT, MediaTools(), (two,), situation)
    assert choice.skip == "speaks en, fr only"


@pytest.mark.parametrize(
    ("tools", "text", "may_command", "gated", "says"),
    [
        (MediaTools(audio_preflight=True), "", True, True, ""),
        (MediaTools(), "", True, True, "tools.media.audio_preflight is false"),
        (MediaTools(audio_preflight=True), "look", True, True, "the message has words of its own"),
        (MediaTools(audio_preflight=True), "", False, True, "the sender may not command the agent"),
        (MediaTools(audio_preflight=True), "", True, False, "the agent answers here without being mentioned"),
        (
            MediaTools(audio_preflight=True, audio=CapabilityTools(enabled=False)),
            "",
            True,
            True,
            "tools.media.audio.enabled is false",
        ),
    ],
)
def test_a_voice_message_is_read_before_the_gate_only_where_that_is_configured(
    tools: MediaTools, text: str, may_command: bool, gated: bool, says: str
) -> None:
    assert may_preflight(tools, GROUP, text=text, may_command=may_command, gated=gated) == says


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (("On se voit demain ? Je ne suis pas là avant midi.",), "fr"),
        (("Nos vemos mañana, porque hoy no está mi hermano.",), "es"),
        (("Привет, когда ты будешь дома?",), "ru"),
        (("今日は行けません",), "ja"),
        (("我们明天见",), "zh"),
        (("안녕하세요 내일 봐요",), "ko"),
        (("https://example.test/the/and/of/it/is",), None),
        (("lol",), None),
        ((), None),
    ],
)
def test_a_language_is_guessed_from_its_script_and_its_small_words(
    texts: tuple[str, ...], language: str | None
) -> None:
    assert guess_language(texts) == language


def test_a_language_tag_is_taken_without_its_region() -> None:
    assert [tag_of(tag) for tag in ("de-AT", "EN_us", "yue", "", None, "english", "x")] == [
        "de", "en", "yue", None, None, None, None
    ]  # fmt: skip


PREFER: tuple[Literal["first", "last", "path", "url"], ...] = ("first", "last", "path", "url")
RULES = st.builds(
    AttachmentRules,
    mode=st.sampled_from(["first", "all"]),
    max_attachments=st.integers(1, 4),
    prefer=st.sampled_from(PREFER),
)
KINDS = st.builds(
    CapabilityTools,
    enabled=st.booleans(),
    attachments=st.none() | RULES,
    scope=st.none() | st.builds(ScopeRules, default=st.sampled_from(["allow", "deny"])),
    max_bytes=st.none() | st.integers(1, 10_000),
)
TOOLS = st.builds(MediaTools, image=KINDS, audio=KINDS, video=KINDS, document=KINDS, attachments=RULES)
ITEMS = st.lists(
    st.builds(
        MediaItem,
        index=st.just(0),
        ref=st.text(max_size=3),
        mime=st.sampled_from(["image/png", "audio/ogg", "video/mp4", "application/pdf", "", "application/octet-stream"])
        | st.text(max_size=12),
        kind=st.sampled_from(MediaKind),
        name=st.none() | st.sampled_from(["a.png", "b.mp3", "c", "d.txt"]) | st.text(max_size=8),
        size=st.none() | st.integers(0, 20_000),
        held=st.booleans(),
    ),
    max_size=8,
).map(lambda items: [replace(each, index=index) for index, each in enumerate(items)])
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        entry=st.builds(ModelEntry, provider=st.just("p"), max_bytes=st.none() | st.integers(1, 10_000)),
        skills=st.frozensets(st.sampled_from(Skill)),
        unusable=st.sampled_from(["", "it is not installed"]),
    ),
    max_size=3,
)


@settings(max_examples=60)
@given(items=ITEMS, tools=TOOLS, candidates=CANDIDATES, sees=st.booleans())
def test_every_attachment_ends_in_exactly_one_decision(
    items: list[MediaItem], tools: MediaTools, candidates: list[Candidate], sees: bool
) -> None:
    plans = decide(items, tools, lambda _: candidates, replace(GROUP, sees_images=sees))
    assert [plan.capability for plan in plans] == [IMAGE, AUDIO, VIDEO, DOCUMENT]
    decided = Counter(each.item.index for plan in plans for each in plan.items)
    assert decided == Counter(range(len(items)))
    for plan in plans:
        assert (plan.outcome is None) == any(not each.reason for each in plan.items)
        assert plan.outcome is None or plan.reason
        for each in plan.items:
            assert bool(each.reason) != bool(each.jobs) or plan.capability is DOCUMENT

"""What holds for every tool."""

import json
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import splintr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import ToolError
from belino.domain.media import AcceptedMedia, ImageBlock, TextBlock
from belino.domain.outcome import Stage
from belino.domain.turn import ToolSpec
from belino.net.redact import hide
from belino.testing.files import make_png
from belino.tools.acting import ASK_USER, DELETE_MESSAGE, EDIT_MESSAGE, REACT, SEND_MESSAGE, STAY_SILENT
from belino.tools.media import fetch_spec
from belino.tools.sending import send_media_spec
from belino.tools.toolbox import SPECS, called_with
from belino.understanding.speaker import Speaker
from belino.understanding.speech import SpeechConfig
from tools.test_native import AUDIO, DOCUMENTS
from tools.town import HERE, SECRET, THERE, File, Town

TOOLS = ("list_media", "fetch_media", "channel_context", "channel_messages")
NESTED: object = "deep"
for _ in range(10_000):
    NESTED = [NESTED]


def test_every_schema_is_strict_and_names_no_channel(town: Town) -> None:
    specs = town.toolbox().specs
    assert tuple(spec.name for spec in specs) == TOOLS
    for spec in specs:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", spec.name) and spec.description
        assert spec.schema["type"] == "object" and spec.schema["additionalProperties"] is False
        properties = spec.schema["properties"]
        assert isinstance(properties, dict)
        assert not {"channel", "conversation", "account", "platform", "path", "url"} & set(properties)


def priced(specs: Sequence[ToolSpec]) -> int:
    """What the descriptions of tools cost a model."""
    vocabulary = splintr.Tokenizer.from_pretrained("o200k_base")
    told = [
        json.dumps({"name": spec.name, "description": spec.description, "parameters": spec.schema}, ensure_ascii=False)
        for spec in specs
    ]
    return sum(len(vocabulary.encode(each)) for each in told)


def test_the_descriptions_of_the_five_tools_cost_a_model_at_most_1300_tokens() -> None:
    assert len(SPECS) == 5 and priced(SPECS) <= 1_300


def test_the_descriptions_of_all_tools_cost_a_model_at_most_1700_tokens() -> None:
    acting = (SEND_MESSAGE, REACT, EDIT_MESSAGE, DELETE_MESSAGE, STAY_SILENT, ASK_USER)
    assert priced((*SPECS, *acting)) <= 1_700


def test_the_tools_cost_no_more_where_a_voice_is_configured_and_the_agent_takes_documents_and_sounds() -> None:
    speaker = cast("Speaker", SimpleNamespace(config=SpeechConfig(provider="openai")))
    taken = AcceptedMedia(documents=DOCUMENTS, audio=AUDIO)
    named = {spec.name: spec for spec in (*SPECS, fetch_spec(accepts=taken), send_media_spec(speaker))}
    five = tuple(named.values())
    acting = (REACT, EDIT_MESSAGE, DELETE_MESSAGE, ASK_USER)
    assert priced(five) <= 1_300
    # A message is sent by clients outside of a turn, and silence is kept in one.
    assert priced((*five, *acting, SEND_MESSAGE)) <= 1_700 and priced((*five, *acting, STAY_SILENT)) <= 1_700


@pytest.mark.parametrize("tool", TOOLS)
async def test_an_unknown_argument_is_refused_naming_the_known_ones(town: Town, tool: str) -> None:
    with pytest.raises(ToolError, match=r"unknown argument 'channel'; known ones: .*(kind|ref|intent|message_ids)"):
        await town.toolbox().call(tool, {"channel": "there"})


async def test_an_unknown_tool_is_refused_naming_the_known_ones(town: Town) -> None:
    with pytest.raises(ToolError, match="the tools are list_media, fetch_media, channel_context, channel_messages"):
        await town.toolbox().call("send_media", {})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_media", {"limit": -1}),
        ("list_media", {"limit": "many"}),
        ("list_media", {"limit": float("nan")}),
        ("list_media", {"limit": float("inf")}),
        ("list_media", {"limit": True}),
        ("list_media", {"limit": "9" * 400}),
        ("list_media", {"kind": "movie"}),
        ("list_media", {"kind": ["image"]}),
        ("list_media", {"since": "one day"}),
        ("list_media", {"since": "999999w"}),
        ("list_media", {"since": "0001-01-01T00:00:00+14:00"}),
        ("list_media", {"since": "9" * 10_000_000}),
        ("list_media", {"cursor": "abc"}),
        ("list_media", {"cursor": "-1"}),
        ("list_media", {"cursor": "9" * 19}),
        ("list_media", {"cursor": "²"}),
        ("list_media", {"format": "xml"}),
        ("list_media", {"x" * 100_000: 1}),
        ("fetch_media", {}),
        ("fetch_media", {"ref": ""}),
        ("fetch_media", {"ref": 7}),
        ("fetch_media", {"ref": NESTED}),
        ("fetch_media", {"ref": "tg_\ud800"}),
        ("fetch_media", {"ref": "tg_000000000000", "as": "transcript"}),
        ("fetch_media", {"ref": "tg_000000000000", "again": "yes"}),
        ("channel_messages", {"message_ids": []}),
        ("channel_messages", {"message_ids": [1]}),
        ("channel_messages", {"message_ids": ["1"] * 51}),
        ("channel_messages", {"message_ids": ["x" * 300]}),
        ("channel_messages", {"message_ids": ["\ud800"]}),
        ("channel_messages", {"message_ids": NESTED}),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "arguments",
)
async def test_wrong_arguments_end_in_a_short_sentence(town: Town, tool: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError) as refusal:
        await town.toolbox().call(tool, arguments)
    assert 10 < len(str(refusal.value)) < 200
    assert town.opened == []


async def test_null_means_not_given_and_a_whole_float_is_a_number(town: Town) -> None:
    assert await town.toolbox().call("list_media", {"kind": None, "limit": 5.0}) == (TextBlock(text="No media here."),)


@pytest.mark.parametrize(
    "arguments",
    [{"limit": "5"}, {"limit": "5.0"}, {"limit": 0}, {"kind": ""}, {"kind": "any"}, {"kind": " Image "}]
    + [{"since": since} for since in ("yesterday", "today", "last week", "3 days ago", "2 hours ago", "45 min", "")]
    + [{"near": "", "cursor": " ", "format": "", "limit": None}],
    ids=str,
)
async def test_arguments_are_accepted_as_models_send_them(town: Town, arguments: dict[str, object]) -> None:
    assert await town.toolbox().call("list_media", arguments) == (TextBlock(text="No media here."),)


async def test_since_yesterday_begins_with_that_day(town: Town) -> None:
    _, (ref,) = await town.say("", File(content=make_png(2, 2)))
    (listed,) = await town.toolbox().call("list_media", {"since": "yesterday"})
    assert isinstance(listed, TextBlock) and ref in listed.text
    assert await town.toolbox().call("list_media", {"since": "2099-01-01"}) == (TextBlock(text="No media here."),)


@pytest.mark.parametrize(
    ("tool", "arguments", "note"),
    [
        ("list_media", {"limit": 500}, "(limit is from 1 to 100; 100 was taken)"),
        ("list_media", {"limit": 10**400, "format": "json"}, "(limit is from 1 to 100; 100 was taken)"),
        ("channel_context", {"intent": "x", "max_results": "99"}, "(max_results is from 1 to 50; 50 was taken)"),
        (
            "channel_messages",
            {"message_ids": ["a1"], "max_replies": 9999},
            "(max_replies is from 1 to 200; 200 was taken)",
        ),
    ],
)
async def test_a_number_beyond_its_limit_is_moved_to_it_and_reported(
    town: Town, tool: str, arguments: dict[str, object], note: str
) -> None:
    *_, last = await town.toolbox().call(tool, arguments)
    assert last == TextBlock(text=note)


@pytest.mark.parametrize(
    "given",
    [
        *("{ref}", "ref:{ref}", " {ref} ", "`{ref}`", "belino://media/{ref}"),
        "[Image: a_b.png, 1KB, image/png, ref:{ref}]",
        "[Image: tg_aaaaaaaaaaaa.png, ref:{ref}] look",
    ],
)
@pytest.mark.parametrize("name", ["ref", "mediaRef", "media_artifact_id"])
async def test_a_ref_is_found_in_what_was_copied_with_it(town: Town, name: str, given: str) -> None:
    _, (ref,) = await town.say("", File(content=make_png(2, 2)))
    tool = "channel_messages" if name == "media_artifact_id" else "fetch_media"
    shown = await town.toolbox().call(tool, {name: given.format(ref=ref)})
    assert any(isinstance(block, ImageBlock) for block in shown)


async def test_one_id_is_a_list_of_one_and_a_list_may_be_written_as_text(town: Town) -> None:
    message, _ = await town.say("hello there")
    for ids in (message, json.dumps([message])):
        (block,) = await town.toolbox().call("channel_messages", {"message_ids": ids})
        assert isinstance(block, TextBlock) and "hello there" in block.text


@pytest.mark.parametrize("left_out", ["null", "empty"])
async def test_a_strict_client_that_must_give_every_argument_is_understood(town: Town, left_out: str) -> None:
    message, (ref,) = await town.say("hello there", File(content=make_png(2, 2)))
    wanted: dict[str, dict[str, object]] = {
        "list_media": {},
        "fetch_media": {"ref": ref},
        "channel_context": {"intent": "hello"},
        "channel_messages": {"message_ids": [message]},
    }
    neutral = {"string": "", "integer": 0, "boolean": False, "array": []}
    for spec in town.toolbox().specs:
        properties = spec.schema["properties"]
        assert isinstance(properties, dict)
        given: dict[str, object] = {}
        for name, schema in properties.items():
            options = schema.get("enum")
            first = options[0] if options else neutral[schema.get("type", "string")]
            given[name] = None if left_out == "null" else first
        assert await town.toolbox().call(spec.name, given | wanted[spec.name])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["kind", "since", "limit", "cursor", "format", "ref", "as", "again", "message_ids", "x"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tool=st.sampled_from(TOOLS), arguments=st.dictionaries(NAMES, JSON, max_size=4))
async def test_any_arguments_are_answered_or_refused_and_reach_no_other_channel(
    town: Town, tool: str, arguments: dict[str, object]
) -> None:
    if not town.files:
        await town.say("the secret word is rosebud", File(content=make_png(2, 2), name="rosebud.png"), where=THERE)
    try:
        blocks = await town.toolbox().call(tool, arguments)
    except ToolError:
        return
    assert "rosebud" not in str(blocks)


async def test_every_call_is_noted_with_its_end(town: Town) -> None:
    toolbox = town.toolbox()
    await toolbox.call("list_media", {})
    with pytest.raises(ToolError):
        await toolbox.call("fetch_media", {"ref": "tg_000000000000"})
    assert [(step.stage, step.subject, step.outcome) for step in town.steps] == [
        (Stage.TOOL, "list_media", "done"),
        (Stage.TOOL, "fetch_media", "refused"),
    ]
    assert town.steps[1].reason.startswith("ref=tg_000000000000: there is no such media")


async def test_a_call_is_noted_with_what_was_asked_for_and_without_secrets(town: Town) -> None:
    toolbox = town.toolbox()
    hide("hunter2hunter2")
    await toolbox.call(
        "channel_context", {"intent": "the plumber, password hunter2hunter2", "max_results": 5, "near": ""}
    )
    with pytest.raises(ToolError):
        await toolbox.call("bash", {"command": "ls"})
    (searched, unknown) = [step for step in town.steps if step.stage is Stage.TOOL]
    assert searched.reason.startswith("intent=the plumber, password ") and searched.reason.endswith("max_results=5")
    assert "hunter2" not in searched.reason
    sent = called_with({"path": "/srv/x/outgoing/plan.pdf", "url": "https://u:p@x.test/a?t=1", "caption": "x" * 500})
    assert sent == f"path=plan.pdf, url=x.test/a, caption={'x' * 79}…"
    assert (unknown.subject, unknown.outcome) == ("bash", "unknown tool")


async def test_a_result_over_one_mebibyte_is_cut_and_says_so(town: Town) -> None:
    numbers = [(await town.say("é" * 39_999))[0] for _ in range(20)]
    (block,) = await town.toolbox().call("channel_messages", {"message_ids": numbers})
    assert isinstance(block, TextBlock)
    assert block.text.endswith("… (cut here: the result is over 1 MiB; ask for less at a time)")
    assert len(block.text.encode()) < 1024 * 1024 + 100


async def test_no_id_or_cursor_of_another_channel_opens_anything(town: Town) -> None:
    there = [
        await town.say("rosebud", File(content=make_png(2, 2), name="rosebud.png"), where=THERE) for _ in range(40)
    ]
    _, (own,) = await town.say("mine", File(content=make_png(2, 2), name="own.png"))
    toolbox = town.toolbox()
    for number, (ref,) in there:
        record = await town.store.ref(THERE, ref)
        assert record is not None
        listing = await toolbox.call("list_media", {"cursor": str(record.seq)})
        found = await toolbox.call("channel_messages", {"message_ids": [number]})
        assert "rosebud" not in str((listing, found))
        with pytest.raises(ToolError, match="no such media"):
            await toolbox.call("fetch_media", {"ref": ref})
    assert own in str(await toolbox.call("list_media", {})) and town.opened == []


async def test_no_key_and_no_locator_reaches_the_agent(town: Town) -> None:
    number, (ref,) = await town.say("look", File(content=make_png(2, 2), name="p.png", caption="c"))
    toolbox = town.toolbox()
    answers = [
        await toolbox.call("list_media", {}),
        await toolbox.call("list_media", {"format": "json"}),
        await toolbox.call("fetch_media", {"ref": ref}),
        await toolbox.call("fetch_media", {"ref": ref, "as": "file"}),
        await toolbox.call("channel_messages", {"message_ids": [number]}),
        await toolbox.call("channel_messages", {"message_ids": [number], "format": "json"}),
    ]
    record = await town.store.ref(HERE, ref)
    assert record is not None and record.ref.sealed["media_key"] == SECRET
    told = str((answers, town.steps))
    assert SECRET not in told and record.ref.locator["item"] not in told


async def test_a_store_that_fails_becomes_a_sentence_and_a_note(town: Town) -> None:
    toolbox = town.toolbox()
    await town.store.close()
    with pytest.raises(ToolError, match="could not do its work just now; try again"):
        await toolbox.call("list_media", {})
    assert [(step.outcome, step.reason) for step in town.steps] == [("failed", "the store is closed")]

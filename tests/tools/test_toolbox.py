"""What holds for every tool."""

import json
import re

import pytest
import splintr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belino.domain.errors import ToolError
from belino.domain.media import TextBlock
from belino.domain.outcome import Stage
from belino.testing.files import make_png
from belino.tools.toolbox import SPECS
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


def test_the_descriptions_of_the_five_tools_cost_a_model_at_most_1300_tokens() -> None:
    vocabulary = splintr.Tokenizer.from_pretrained("o200k_base")
    told = [
        json.dumps({"name": spec.name, "description": spec.description, "parameters": spec.schema}, ensure_ascii=False)
        for spec in SPECS
    ]
    assert len(told) == 5 and sum(len(vocabulary.encode(each)) for each in told) <= 1_300


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
        ("list_media", {"limit": 0}),
        ("list_media", {"limit": 101}),
        ("list_media", {"limit": float("nan")}),
        ("list_media", {"limit": float("inf")}),
        ("list_media", {"limit": True}),
        ("list_media", {"limit": 10**400}),
        ("list_media", {"limit": "20"}),
        ("list_media", {"kind": "movie"}),
        ("list_media", {"kind": ["image"]}),
        ("list_media", {"since": "yesterday"}),
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
        ("channel_messages", {"message_ids": "1"}),
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
    assert town.steps[1].reason.startswith("there is no such media")


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

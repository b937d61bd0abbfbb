"""What stays of a conversation when it grows."""

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from belino.agents.llm.content import refs_in
from belino.agents.llm.memory import Past, recall, remember, shorten
from belino.testing import make_png

REF, OTHER = "web_k3v9d0q2m7xa", "web_aaaaaaaaaaaa"
NAMES = {REF: "photo.jpg"}


def shown(ref: str = REF) -> BinaryContent:
    return BinaryContent(data=make_png(3, 3), media_type="image/png", identifier=ref)


def past(number: int, *items: str | BinaryContent, answer: str = "ok") -> Past:
    question = ModelRequest(parts=[UserPromptPart(content=list(items) or ["hi"])])
    return Past(number=number, messages=[question, ModelResponse(parts=[TextPart(content=answer)])])


def looked(number: int, ref: str) -> Past:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=["look"])]),
        ModelResponse(parts=[ToolCallPart(tool_name="fetch_media", args={"ref": ref}, tool_call_id="c")]),
        ModelRequest(parts=[ToolReturnPart(tool_name="fetch_media", content=["here", shown(ref)], tool_call_id="c")]),
        ModelResponse(parts=[TextPart(content="a cat")]),
    ]
    return Past(number=number, messages=messages)


def refs(turns: list[Past]) -> set[str]:
    return refs_in([message for turn in turns for message in turn.messages])


def kept(turns: list[Past], *, history_tokens: int = 100_000, image_turns: int = 3) -> tuple[list[Past], set[str]]:
    return shorten(turns, history_tokens=history_tokens, image_turns=image_turns, names=NAMES)


def test_what_is_remembered_is_recalled_with_its_pictures_and_their_refs() -> None:
    turns = [past(1, "see", shown()), looked(2, OTHER)]
    again = recall(remember(turns))
    assert again is not None
    assert refs(again) == {REF, OTHER}
    assert remember(again) == remember(turns)
    assert recall(None) == []


def test_pictures_of_people_and_of_tools_become_lines_and_doing_it_twice_changes_nothing() -> None:
    turns = [past(1, "see", shown()), looked(2, OTHER), past(3), past(4), past(5)]
    once, gone = kept(turns)
    assert gone == {REF, OTHER}
    assert f"[Image: photo.jpg, shown at turn 1; fetch_media({REF}) shows it again]".encode() in remember(once)
    assert f"[Image: a picture, shown at turn 2; fetch_media({OTHER}) shows it again]".encode() in remember(once)
    twice, none = kept(once)
    assert remember(twice) == remember(once)
    assert none == set()


def test_a_picture_shown_again_later_is_not_gone() -> None:
    _, gone = kept([past(1, shown()), past(2), past(3), past(4), past(5, shown())])
    assert gone == set()


def test_no_picture_stays_where_none_shall() -> None:
    turns, gone = kept([past(1, shown())], image_turns=0)
    assert gone == {REF}
    assert refs(turns) == set()


def test_turns_leave_whole_and_the_oldest_first() -> None:
    turns = [past(number, "word " * 100) for number in range(1, 11)]
    left, _ = kept(turns, history_tokens=700)
    assert left == turns[-len(left) :]
    assert 2 <= len(left) <= 5


def test_a_memory_within_its_budget_is_not_touched() -> None:
    turns = [past(1, "word " * 100), past(2)]
    assert kept(turns)[0] == turns


def test_a_turn_too_long_by_itself_keeps_its_question_and_its_answer() -> None:
    long = looked(1, REF)
    long.messages[2].parts[0].content = "word " * 5000  # type: ignore[union-attr, misc]
    (left,), _ = kept([long], history_tokens=500)
    assert [message.kind for message in left.messages] == ["request", "response"]
    assert kept([past(1, "word " * 5000)], history_tokens=500)[0] == []


@pytest.mark.parametrize(
    "held", [b"", b"null", b'{"turns":[]}', b'{"version":1,"turns":7}', b'{"version":2,"turns":[]}']
)
def test_what_cannot_be_read_is_as_good_as_lost(held: bytes) -> None:
    assert recall(held) is None

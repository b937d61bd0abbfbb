"""What stays of a conversation when it grows."""

from dataclasses import replace
from pathlib import Path

import pytest

from belino.agents.llm.content import ModelInput, refs_in
from belino.agents.llm.memory import MediaCost, Past, Room, Shortened, Window, recall, remember, shorten
from belino.agents.llm.messages import (
    AnswerMessage,
    CallPart,
    Message,
    RequestMessage,
    ResultPart,
    ShownMedia,
    UserPart,
    WordsPart,
)
from belino.domain.media import AcceptedMedia
from belino.testing import make_png

REF, OTHER = "web_k3v9d0q2m7xa", "web_aaaaaaaaaaaa"
NAMES = {REF: "photo.jpg"}


def shown(ref: str = REF) -> ShownMedia:
    return ShownMedia.of(ref, "image/png", make_png(3, 3))


def past(number: int, *items: str | ShownMedia, answer: str = "ok") -> Past:
    question = RequestMessage(parts=(UserPart(items=items or ("hi",)),))
    return Past(number=number, messages=[question, AnswerMessage(parts=(WordsPart(text=answer),))])


def looked(number: int, ref: str) -> Past:
    messages: list[Message] = [
        RequestMessage(parts=(UserPart(items=("look",)),)),
        AnswerMessage(parts=(CallPart(id="c", tool="fetch_media", arguments=f'{{"ref": "{ref}"}}'),)),
        RequestMessage(parts=(ResultPart(call="c", tool="fetch_media", items=("here", shown(ref))),)),
        AnswerMessage(parts=(WordsPart(text="a cat"),)),
    ]
    return Past(number=number, messages=messages)


def refs(turns: list[Past]) -> set[str]:
    return refs_in([message for turn in turns for message in turn.messages])


def kept(turns: list[Past], *, tokens: int = 100_000, media_bytes: int = 10**9, media_turns: int = 3) -> Shortened:
    room = Room(tokens=tokens, media_bytes=media_bytes, media_turns=media_turns)
    window = Window(len(turns))
    window.names = dict(NAMES)
    return shorten(turns, room, window.marker)


def test_what_is_remembered_is_recalled_with_its_media_and_what_it_costs() -> None:
    turns = [past(1, "see", shown()), replace(looked(2, OTHER), costs={OTHER: MediaCost(87, 3)})]
    again = recall(remember(turns))
    assert again is not None
    assert refs(again) == {REF, OTHER}
    assert again[1].costs == {OTHER: MediaCost(87, 3)}
    assert remember(again) == remember(turns)
    assert recall(None) == []


def test_a_memory_of_the_released_version_is_recalled_and_saved_in_the_new_form() -> None:
    held = (Path(__file__).parent / "memory-0.9.0.json").read_bytes()
    turns = recall(held)
    assert turns is not None
    assert [turn.number for turn in turns] == [1, 2] and refs(turns) == {REF, OTHER}
    assert turns[0].tokens > 1600  # a picture of unknown cost counts as the dearest
    again = recall(remember(turns))
    assert again is not None and [turn.tokens for turn in again] == [turn.tokens for turn in turns]


def test_old_pictures_stay_as_long_as_there_is_room() -> None:
    turns = [past(1, "see", shown()), looked(2, OTHER), *(past(number) for number in range(3, 30))]
    left = kept(turns)
    assert left.turns == turns and not left.gone and not left.cut


def test_a_full_memory_drops_older_pictures_before_any_turn_and_doing_it_twice_changes_nothing() -> None:
    turns = [past(1, "see", shown()), looked(2, OTHER), past(3), past(4), past(5)]
    once = kept(turns, tokens=3000)
    assert once.gone == {REF, OTHER} and not once.cut
    assert f"[Image: photo.jpg, shown at turn 1; fetch_media({REF}) shows it again]".encode() in remember(once.turns)
    assert f"[Image: a picture, shown at turn 2; fetch_media({OTHER}) shows it again]".encode() in remember(once.turns)
    twice = kept(once.turns, tokens=3000)
    assert remember(twice.turns) == remember(once.turns) and not twice.gone


def test_a_picture_shown_again_later_is_not_gone() -> None:
    left = kept([past(1, shown()), past(2), past(3), past(4), past(5, shown())], tokens=3000)
    assert not left.gone


def test_where_text_is_the_trouble_turns_leave_whole_and_the_rest_keeps_its_pictures() -> None:
    turns = [past(1, "see", shown(OTHER)), *(past(number, "word " * 1000) for number in range(2, 9))]
    turns[5] = past(6, "see", shown())
    left = kept(turns, tokens=7000, media_turns=1)
    assert left.cut and left.turns == turns[-len(left.turns) :] and 2 <= len(left.turns) <= 4
    assert refs(left.turns) == {REF} and left.gone == {OTHER}


def test_media_too_large_for_a_request_leaves_the_oldest_first_and_no_turn_goes() -> None:
    turns = [past(number, "see", shown(f"web_{number:012}")) for number in range(1, 7)]
    each = turns[0].bytes
    left = kept(turns, media_bytes=5 * each, media_turns=100)
    assert not left.cut and len(left.turns) == 6
    assert left.gone == {f"web_{number:012}" for number in (1, 2, 3)}


def test_turns_leave_whole_and_the_oldest_first() -> None:
    turns = [past(number, "word " * 100) for number in range(1, 11)]
    left = kept(turns, tokens=700)
    assert left.cut and left.turns == turns[-len(left.turns) :]
    assert 2 <= len(left.turns) <= 5


def test_a_turn_too_long_by_itself_loses_its_media_then_all_but_its_question_and_its_answer() -> None:
    (left,) = kept([past(1, "see", shown())], tokens=500).turns
    assert not refs([left]) and b"shown at turn 1" in remember([left])
    looking = looked(1, REF)
    told = RequestMessage(parts=(ResultPart(call="c", tool="fetch_media", items=("word " * 5000,)),))
    long = replace(looking, messages=[*looking.messages[:2], told, looking.messages[3]])
    (left,) = kept([long], tokens=500).turns
    assert [type(message) for message in left.messages] == [RequestMessage, AnswerMessage]
    assert kept([past(1, "word " * 5000)], tokens=500).turns == []


def test_the_oldest_media_gives_way_when_a_request_may_hold_no_more() -> None:
    window = Window(3)
    window.past = [past(1, shown("web_1")), past(2, shown("web_2"))]
    window.now = list(past(3, shown("web_3")).messages)
    model = ModelInput(
        sees_images=True, image_bytes=10**6, request_bytes=10**6, request_images=2, accepts=AcceptedMedia()
    )
    assert window.excess(model) == {"web_1"}
    assert window.excess(replace(model, request_images=3)) == set()
    assert window.excess(replace(model, request_images=3, request_bytes=100)) == {"web_1", "web_2", "web_3"}


@pytest.mark.parametrize(
    "held", [b"", b"null", b'{"turns":[]}', b'{"version":1,"turns":7}', b'{"version":4,"turns":[]}']
)
def test_what_cannot_be_read_is_as_good_as_lost(held: bytes) -> None:
    assert recall(held) is None

"""MiniMax: pictures become text, and its errors with status 200 are errors."""

import json

import pytest

from belino.domain.errors import BelinoError, ProviderError, RateLimited, Unauthorized
from belino.domain.reading import Skill
from belino.testing.models import ModelAnswer, ModelRaw
from understanding.providers.remote import KEY, SEEN, Room, quick


async def test_minimax_keeps_the_contract(minimax: Room) -> None:
    checked = await minimax.keeps_the_contract(
        {Skill.DESCRIBE: ModelAnswer(text=SEEN), Skill.READ_TEXT: ModelAnswer(text=SEEN)},
        {Skill.DESCRIBE: minimax.frames, Skill.READ_TEXT: [minimax.picture]},
    )
    assert len(checked) == 9


async def test_thoughts_are_kept_out_of_the_text(minimax: Room) -> None:
    minimax.server.script = [ModelAnswer(text=f"<think>\nIs it blue?\n</think>\n\n{SEEN}")]
    read = await minimax.provider().read(Skill.DESCRIBE, [minimax.picture], quick())
    (asked,) = minimax.server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.body["reasoning_split"]) == ("MiniMax-M3", True)
    assert read.text == SEEN


@pytest.mark.parametrize(
    ("code", "kind"), [(1002, RateLimited), (1004, Unauthorized), (1008, Unauthorized), (2013, ProviderError)]
)
async def test_an_error_with_status_200_is_one(minimax: Room, code: int, kind: type[BelinoError]) -> None:
    told = {"base_resp": {"status_code": code, "status_msg": f"secret {KEY}"}}
    minimax.server.script = [ModelRaw(body=json.dumps(told).encode())]
    with pytest.raises(kind) as caught:
        await minimax.provider().read(Skill.DESCRIBE, [minimax.picture], quick())
    assert KEY not in str(caught.value)


async def test_success_in_its_own_words_is_success(minimax: Room) -> None:
    said = {"choices": [{"message": {"content": SEEN}, "finish_reason": "stop"}], "base_resp": {"status_code": 0}}
    minimax.server.script = [ModelRaw(body=json.dumps(said).encode())]
    assert (await minimax.provider().read(Skill.DESCRIBE, [minimax.picture], quick())).text == SEEN

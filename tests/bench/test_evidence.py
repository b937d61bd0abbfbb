"""The bench of evidence plays an agent that knows only what the tools tell it."""

from collections.abc import Mapping

import pytest

from belino.bench import evidence
from belino.bench._evidence_questions import POSTS, QUESTIONS, EvidenceQuestion, PostKind
from belino.domain.errors import ToolError
from belino.domain.media import Block, TextBlock
from belino.domain.turn import ToolSpec

QUESTION = EvidenceQuestion(ask="What did lunch cost?", shows=("61.50",), about="photo")
HEAD = "id|MM-DD HH:MM|author|text|why|thread(replies)|marks, media (UTC; today is 2026-02-02)"
REF = "memory_q1z5ban0rnx7"


class Answers:
    """A toolbox that answers as the test says."""

    specs: tuple[ToolSpec, ...] = ()

    def __init__(self, **answers: str) -> None:
        self._answers = answers
        self.asked: list[tuple[str, Mapping[str, object]]] = []

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        self.asked.append((name, arguments))
        if name not in self._answers:
            raise ToolError("there is nothing")
        return (TextBlock(text=self._answers[name]),)


async def search(toolbox: Answers) -> evidence.AnsweredQuestion:
    return await evidence.ScriptedSearch(toolbox=toolbox, question=QUESTION).run()


async def test_evidence_in_the_results_takes_one_call() -> None:
    found = await search(Answers(channel_context=f"{HEAD}\nab123|02-02 09:00|Jo|TOTAL 61.50|media||image {REF}"))
    assert (found.is_shown, found.calls) == (True, 1)


async def test_media_of_a_result_is_read_with_the_question() -> None:
    toolbox = Answers(channel_context=f"{HEAD}\nab123|02-02 09:00|Jo||media||image {REF}", fetch_media="TOTAL 61,50")
    found = await search(toolbox)
    assert (found.is_shown, found.calls) == (True, 2)
    assert toolbox.asked[1][0] == "fetch_media"
    assert (toolbox.asked[1][1]["ref"], toolbox.asked[1][1]["find"]) == (REF, QUESTION.ask)


async def test_media_around_a_result_is_listed_and_a_thread_is_opened() -> None:
    toolbox = Answers(
        channel_context=f"{HEAD}\nab123|02-02 09:00|Jo|our lunch|keyword:lunch",
        list_media=f"1 media, nearest first: ref|kind\n{REF}|image",
        fetch_media="TOTAL 61.50",
    )
    assert (await search(toolbox)).is_shown
    assert [name for name, _ in toolbox.asked] == ["channel_context", "list_media", "fetch_media"]
    thread = Answers(
        channel_context=f"{HEAD}\nab123|02-02 09:00|Jo|lunch?|keyword:lunch|(2)", channel_messages="it was 61.50"
    )
    assert (await search(thread)).is_shown
    assert thread.asked[1] == ("channel_messages", {"thread_id": "ab123"})


async def test_more_calls_or_tokens_than_allowed_are_no_answer() -> None:
    rows = "\n".join(f"ab12{at}|02-02 09:00|Jo||media||image memory_q1z5ban0rnx{at}" for at in range(6))
    found = await search(Answers(channel_context=f"{HEAD}\n{rows}", fetch_media="something else"))
    assert (found.is_shown, found.calls) == (False, evidence.CALLS)
    assert not (await search(Answers(channel_context="many words " * 3_000 + "61.50"))).is_shown


def test_every_kind_of_media_is_asked_about_and_no_question_holds_its_answer() -> None:
    assert {question.about for question in QUESTIONS} == {*PostKind} - {PostKind.TEXT} | {"thread"}
    assert len(QUESTIONS) >= 40
    told = evidence._plain(" ".join(text for post in POSTS for text in (post.text, *post.content)))
    for question in QUESTIONS:
        assert not any(
            f" {evidence._plain(words)} " in f" {evidence._plain(question.ask)} " for words in question.shows
        )
        assert any(evidence._plain(words) in told for words in question.shows), question.ask


@pytest.mark.slow
def test_what_was_read_ahead_is_found_and_what_was_not_needs_more_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "POSTS", POSTS[:8])
    asked = [each for each in QUESTIONS if "harbour cafe" in each.ask or "plumber" in each.ask]
    monkeypatch.setattr(evidence, "QUESTIONS", asked)
    share, photo, voice, calls, _ = evidence.run()
    assert (share.ours, photo.ours, voice.ours) == (1, 1, 1)
    assert calls.beside is not None and calls.ours < calls.beside

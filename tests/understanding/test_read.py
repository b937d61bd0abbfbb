"""Media is read by the first entry that can, once, within its time; every attempt is told, and nothing is lost."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from belino.domain.errors import MediaError, MediaRefused, ProviderError, RateLimited, Unauthorized
from belino.domain.media import DocumentUnit, MediaKind, Unread
from belino.domain.reading import MediaCapability, Read, ReadingForm, ReadingOutcome, ReadSegment, Skill
from belino.domain.search import SearchIntent, SearchQuery
from belino.understanding.config import ModelEntry
from belino.understanding.request import MessageReadings, ReadingState
from understanding.reading_house import MAIN, SIDE, ReadingHouse, sound
from understanding.scripted import Call, Script, Shelf

SUCCESS, FAILED, SKIPPED = ReadingOutcome.SUCCESS, ReadingOutcome.FAILED, ReadingOutcome.SKIPPED
AUDIO = MediaCapability.AUDIO


def says(text: str, **more: Any) -> Any:
    return lambda call: Read(text=text, model="m", **more)


def fails(error: BaseException) -> Any:
    async def answer(call: Call) -> Read:
        raise error

    return answer


async def forever(call: Call) -> Read:
    await asyncio.Event().wait()
    raise AssertionError


async def deaf(call: Call) -> Read:
    """Ignores its cancellation, but not that of the test's own end."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return await forever(call)


async def called(script: Script) -> None:
    """Wait until a provider is being asked."""
    async with asyncio.timeout(30):
        while not script.calls:
            await asyncio.sleep(0.001)


def entries(*names: str) -> dict[str, Any]:
    return {"models": [{"provider": name} for name in names]}


@pytest.fixture
def ears(shelf: Shelf) -> Script:
    return shelf.add("local_ears", Skill.TRANSCRIBE, answer=says("The tide turns at nine."))


def decision(readings: MessageReadings, capability: MediaCapability = AUDIO) -> Any:
    return next(each for each in readings.decisions if each.capability is capability)


def attempts(readings: MessageReadings, capability: MediaCapability = AUDIO) -> list[tuple[str, str, str]]:
    (record,) = decision(readings, capability).attachments
    return [(each.provider, each.outcome, each.reason) for each in record.attempts]


async def test_a_voice_message_is_read_by_what_is_installed_without_any_setting(
    house: ReadingHouse, ears: Script
) -> None:
    voice = await house.send(sound(3.0))
    got = await house.read(house.understanding(), voice)
    (reading,) = got.readings
    assert (reading.kind, reading.text, reading.provider, reading.attachment_index) == (
        "audio.transcription", "The tide turns at nine.", "local_ears", 0
    )  # fmt: skip
    assert decision(got).outcome is SUCCESS
    assert decision(got).attachments[0].chosen == 0
    assert got.transcript == "The tide turns at nine."
    (call,) = ears.calls
    assert (call.material[0].mime, call.material[0].seconds) == ("audio/wav", 3.0)
    assert house.leftovers() == []
    assert house.news[0].state is ReadingState.READING
    assert house.news[-1].state is ReadingState.READ


async def test_a_second_reading_costs_no_call_in_any_channel_and_after_a_restart(
    house: ReadingHouse, ears: Script
) -> None:
    content = sound(3.0)
    first, second = await house.send(content), await house.send(content, where=SIDE)
    await house.read(house.understanding(), first)
    again = house.understanding()
    got = await house.read(again, second, conversation=SIDE)
    assert got.readings[0].text == "The tide turns at nine."
    assert decision(got).attachments[0].attempts[0].cached
    assert (await house.item(again, second)).cached
    assert len(ears.calls) == 1


async def test_many_requests_for_one_content_are_one_reading(house: ReadingHouse, ears: Script) -> None:
    going = asyncio.Event()

    async def answer(call: Call) -> Read:
        await going.wait()
        return Read(text="once", model="m")

    ears.answer = answer
    content = sound(3.0)
    records = [await house.send(content) for _ in range(4)]
    understanding = house.understanding()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(house.item(understanding, record)) for record in records]
        while not ears.calls:
            await asyncio.sleep(0)
        going.set()
    assert [task.result().text for task in tasks] == ["once"] * 4
    assert len(ears.calls) == 1


async def test_the_next_entry_is_used_visibly_where_one_fails(house: ReadingHouse, shelf: Shelf, ears: Script) -> None:
    shelf.add("deepgram", Skill.TRANSCRIBE, answer=fails(ProviderError("the API answers 500")))
    shelf.add("openai", Skill.TRANSCRIBE, answer=says("heard by the second"))
    for name in ("deepgram", "openai"):
        shelf.scripts[name].needs_key = False
    voice = await house.send(sound(3.0))
    got = await house.read(house.understanding(audio=entries("deepgram", "openai")), voice)
    assert got.readings[0].text == "heard by the second"
    assert attempts(got) == [("deepgram", FAILED, "the API answers 500"), ("openai", SUCCESS, "")]
    assert decision(got).attachments[0].chosen == 1
    assert ears.calls == []
    stored = [record for _, record in await house.store.attempts()]
    assert [(each.attempt.provider, each.attempt.outcome, each.seconds) for each in stored] == [
        ("openai", SUCCESS, 3.0),
        ("deepgram", FAILED, 0.0),
    ]
    assert {each.attempt.sent_to for each in stored} == {"reader.test"}
    assert stored[0].attempt.usd is None


async def test_what_a_later_entry_has_read_is_found_without_asking_the_first_again(
    house: ReadingHouse, shelf: Shelf
) -> None:
    first = shelf.add("local_a", Skill.TRANSCRIBE, answer=fails(ProviderError("no")))
    second = shelf.add("local_b", Skill.TRANSCRIBE, answer=says("second"))
    understanding = house.understanding()
    voice = await house.send(sound(3.0))
    assert (await house.item(understanding, voice)).text == "second"
    assert (await house.item(understanding, voice)).text == "second"
    assert (len(first.calls), len(second.calls)) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fails(RuntimeError("secret detail")), "it failed with RuntimeError"),
        (fails(TimeoutError()), "TimeoutError"),
        (fails(asyncio.CancelledError()), "it was cancelled"),
        (fails(KeyError("x")), "it failed with KeyError"),
        (lambda call: None, "it gave no proper answer"),
        (lambda call: "text", "it gave no proper answer"),
        (lambda call: Read(text=5, model="m"), "it gave no proper answer"),  # type: ignore[arg-type]
        (lambda call: Read(text="x", model="m", segments=[1]), "it gave no proper answer"),  # type: ignore[arg-type]
        (
            lambda call: Read(text="x", model="m", segments=(ReadSegment(text="x", start=2.0, end=1.0),)),
            "it gave no proper answer",
        ),
        (
            lambda call: Read(text="x", model="m", segments=(ReadSegment(text="x", start=float("nan"), end=1.0),)),
            "it gave no proper answer",
        ),
        (says("x" * 50_000_000), "it gave more than 400000 characters"),
    ],
)
async def test_a_provider_that_misbehaves_is_an_attempt_that_failed(
    house: ReadingHouse, shelf: Shelf, answer: Any, reason: str
) -> None:
    shelf.add("local_bad", Skill.TRANSCRIBE, answer=answer)
    voice = await house.send(sound(3.0))
    got = await house.read(house.understanding(), voice)
    assert attempts(got) == [("local_bad", FAILED, reason)]
    assert decision(got).outcome is FAILED
    assert got.readings == ()
    assert [(each.attachment_index, each.says) for each in got.markers] == [(0, Unread.UNREADABLE)]
    assert house.news[-1].state is ReadingState.UNREAD
    assert house.leftovers() == []


@pytest.mark.parametrize("answer", [forever, deaf], ids=["hanging", "deaf"])
async def test_a_hanging_provider_is_left_after_its_time_and_the_next_is_used(
    house: ReadingHouse, shelf: Shelf, answer: Any
) -> None:
    shelf.add("local_a", Skill.TRANSCRIBE, answer=answer)
    shelf.add("local_b", Skill.TRANSCRIBE, answer=says("the next"))
    voice = await house.send(sound(3.0))
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(house.read(house.understanding(), voice))
        await house.clock.wake(60.0)
        if answer is deaf:
            await house.clock.wake(0.5)
    got = reading.result()
    assert attempts(got)[0] == ("local_a", FAILED, "it took longer than 60 s (timeout_seconds)")
    assert got.readings[0].text == "the next"


@pytest.mark.parametrize("answer", [forever, deaf], ids=["hanging", "deaf"])
async def test_no_provider_delays_a_turn_beyond_its_deadline_and_a_second(
    house: ReadingHouse, shelf: Shelf, answer: Any
) -> None:
    first, *_ = [shelf.add(name, Skill.TRANSCRIBE, answer=answer) for name in ("local_a", "local_b", "local_c")]
    voice = await house.send(sound(3.0))
    understanding = house.understanding(turn_seconds=10)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(house.read(understanding, voice))
        await called(first)
        await house.clock.wake(10.0)
        if answer is deaf:
            await house.clock.wake(0.5)
    got = reading.result()
    assert house.clock.monotonic() <= 11.0
    assert decision(got).outcome is FAILED
    assert attempts(got) == [("local_a", FAILED, "it was not ready when the time was up")]
    assert "turn_seconds" in decision(got).reason
    assert [record.attempt.reason for _, record in await house.store.attempts()] == [
        "it was not ready when the time was up"
    ]
    assert house.leftovers() == []


async def test_one_hanging_attachment_does_not_keep_the_others(house: ReadingHouse, shelf: Shelf) -> None:
    async def answer(call: Call) -> Read:
        if call.material[0].seconds == 4.0:
            return await forever(call)
        return Read(text="short", model="m")

    shelf.add("local_a", Skill.TRANSCRIBE, answer=answer)
    voices = [await house.send(sound(4.0)), await house.send(sound(3.0))]
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(house.read(house.understanding(turn_seconds=10), *voices))
        async with asyncio.timeout(30):
            while not any(each.state is ReadingState.READ for each in house.news):
                await asyncio.sleep(0.001)
        await house.clock.wake(10.0)
    got = reading.result()
    assert [(each.attachment_index, each.text) for each in got.readings] == [(1, "short")]
    assert decision(got).outcome is SUCCESS
    assert [each.attachment_index for each in got.markers] == [0]


async def test_a_fault_of_our_own_costs_one_attachment_and_not_the_turn(
    house: ReadingHouse, ears: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    voice = await house.send(sound(3.0))
    monkeypatch.setattr(house.sandbox, "run", full)
    got = await house.read(house.understanding(), voice)
    assert (got.readings, decision(got).outcome, decision(got).reason) == ((), FAILED, "OSError")


async def test_every_provider_finishes_when_it_closes_and_one_that_fails_or_hangs_keeps_no_other(
    house: ReadingHouse, shelf: Shelf
) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    async def never() -> None:
        await asyncio.Event().wait()

    scripts = [shelf.add(f"local_{n}", Skill.TRANSCRIBE, close=close) for n, close in enumerate((never, broken, None))]
    understanding = house.understanding()
    await house.read(understanding, await house.send(sound(3.0)))
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(understanding.close())
        await house.clock.wake(6.0)
    assert closing.done() and [script.closed for script in scripts] == [1, 1, 1]


async def test_so_many_readings_run_at_the_same_time_as_configured(house: ReadingHouse, shelf: Shelf) -> None:
    running, most = 0, 0

    async def answer(call: Call) -> Read:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(50):
            await asyncio.sleep(0)
        running -= 1
        return Read(text="x", model="m")

    shelf.add("local_a", Skill.TRANSCRIBE, answer=answer)
    voices = [await house.send(sound(3.0 + number)) for number in range(5)]
    got = await house.read(house.understanding(), *voices)
    assert (len(got.readings), most) == (5, 2)


class Keys:
    """Answers by key."""

    def __init__(self, **by_key: Any) -> None:
        self.by_key = by_key

    async def __call__(self, call: Call) -> Read:
        said = self.by_key[call.key.replace("-", "_")]
        if isinstance(said, BaseException):
            raise said
        return Read(text=said, model="m")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name in ("ONE", "TWO"):
        monkeypatch.setenv(name, f"key-{name.lower()}")
    return {"work": {"keys": ["env:ONE", "env:TWO"]}}


@pytest.mark.parametrize("error", [Unauthorized("401"), RateLimited("429", retry_after=30.0)])
async def test_the_next_key_is_used_where_one_is_refused_or_used_up(
    house: ReadingHouse, shelf: Shelf, work: dict[str, Any], error: Exception
) -> None:
    script = shelf.add("openai", Skill.TRANSCRIBE, answer=Keys(key_one=error, key_two="by the second key"))
    models = [{"provider": "openai", "profile": "work"}]
    understanding = house.understanding(audio={"models": models}, profiles=work)
    got = await house.read(understanding, await house.send(sound(3.0)))
    assert got.readings[0].text == "by the second key"
    assert [(outcome, reason) for _, outcome, reason in attempts(got)] == [(FAILED, str(error)), (SUCCESS, "")]
    await house.read(understanding, await house.send(sound(4.0)))
    assert [call.key for call in script.calls] == ["key-one", "key-two", "key-two"]
    house.clock.shift(4_000)
    await house.read(understanding, await house.send(sound(5.0)))
    assert script.calls[3].key == "key-one"


async def test_without_a_profile_the_usual_variable_has_the_key(
    house: ReadingHouse, shelf: Shelf, ears: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = shelf.add("deepgram", Skill.TRANSCRIBE)
    voice = await house.send(sound(3.0))
    without = await house.read(house.understanding(audio=entries("deepgram", "local_ears")), voice)
    assert attempts(without)[0] == ("deepgram", SKIPPED, "it has no key: set DEEPGRAM_API_KEY, or name a profile")
    assert without.readings[0].provider == "local_ears"
    monkeypatch.setenv("DEEPGRAM_API_KEY", "found-key")
    await house.read(house.understanding(audio=entries("deepgram")), await house.send(sound(4.0)))
    assert [call.key for call in script.calls] == ["found-key"]


async def test_the_usual_key_goes_to_no_other_address(
    house: ReadingHouse, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    script = shelf.add("openai", Skill.TRANSCRIBE)
    models = [{"provider": "openai", "base_url": "https://elsewhere.test/v1"}]
    await house.read(house.understanding(audio={"models": models}), await house.send(sound(3.0)))
    assert [call.key for call in script.calls] == [""]


async def test_without_entries_a_remote_provider_is_used_only_where_any_is_configured(
    house: ReadingHouse, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    openai = shelf.add("openai", Skill.TRANSCRIBE, answer=says("remote"))
    shelf.add("groq", Skill.TRANSCRIBE)
    voice = await house.send(sound(3.0))
    got = await house.read(house.understanding(), voice)
    assert (decision(got).outcome, openai.calls) == (SKIPPED, [])
    assert decision(got).reason == "no provider for audio is configured or installed"
    got = await house.read(house.understanding(auto="any"), voice)
    assert got.readings[0].text == "remote"


async def test_local_providers_come_before_the_agents_own_and_that_before_found_keys(
    house: ReadingHouse, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    for name in ("local_whisper", "local_moonshine", "openai"):
        shelf.add(name, Skill.TRANSCRIBE, answer=fails(ProviderError("no")))
    shelf.add("mine", Skill.TRANSCRIBE, answer=fails(ProviderError("no")), needs_key=False)
    house.agent = (ModelEntry(provider="mine", options=shelf.scripts["mine"].config_type()),)
    got = await house.read(house.understanding(auto="any"), await house.send(sound(3.0)))
    assert [name for name, _, _ in attempts(got)] == ["local_whisper", "local_moonshine", "mine", "openai"]


async def test_a_provider_that_cannot_start_is_skipped_with_the_reason(
    house: ReadingHouse, shelf: Shelf, ears: Script
) -> None:
    shelf.add("local_a", Skill.TRANSCRIBE, fails_to_start=RuntimeError("boom"))
    shelf.add("local_b", Skill.TRANSCRIBE, missing="install it with pip")
    voice = await house.send(sound(3.0))
    got = await house.read(house.understanding(audio=entries("local_a", "local_b", "local_ears")), voice)
    assert attempts(got)[:2] == [
        ("local_a", SKIPPED, "it cannot be started (RuntimeError)"),
        ("local_b", SKIPPED, "install it with pip"),
    ]
    assert got.readings[0].provider == "local_ears"


async def test_the_configured_prompt_and_language_reach_the_provider_and_make_a_reading_of_their_own(
    house: ReadingHouse, ears: Script
) -> None:
    voice = await house.send(sound(3.0))
    for audio in ({}, {"prompt": "Names: Bergen"}, {"language": "de"}, {"language": "de"}):
        await house.read(house.understanding(audio=audio), voice)
    assert [(call.options.prompt, call.options.language) for call in ears.calls] == [
        (None, None),
        ("Names: Bergen", None),
        (None, "de"),
    ]


async def test_silence_is_no_speech_and_is_not_asked_again(house: ReadingHouse, ears: Script) -> None:
    ears.answer = says("")
    voice = await house.send(sound(3.0))
    understanding = house.understanding()
    for _ in range(2):
        got = await house.read(understanding, voice)
        assert (got.readings, decision(got).outcome) == ((), SUCCESS)
        assert decision(got).attachments[0].reason == "no speech"
        assert [each.says for each in got.markers] == [Unread.NO_TEXT]
    assert len(ears.calls) == 1
    assert (await house.item(understanding, voice)).document.reason == "no speech"


async def test_a_tiny_sound_is_sent_to_nobody_and_says_so(house: ReadingHouse, ears: Script) -> None:
    for told in (True, False):
        got = await house.read(house.understanding(), await house.send(sound(0.01), told=told))
        assert "too small to hold speech" in decision(got).attachments[0].reason
        assert [each.says for each in got.markers] == [Unread.NO_TEXT]
    assert ears.calls == []


@pytest.mark.parametrize("told", [True, False])
async def test_a_sound_over_the_limit_goes_to_the_next_entry_or_is_told_to_be_too_large(
    house: ReadingHouse, shelf: Shelf, ears: Script, told: bool
) -> None:
    small = shelf.add("local_small", Skill.TRANSCRIBE)
    voice = await house.send(sound(3.0), told=told)
    models = [{"provider": "local_small", "max_bytes": 50_000}, {"provider": "local_ears"}]
    got = await house.read(house.understanding(audio={"models": models}), voice)
    assert attempts(got)[0] == ("local_small", SKIPPED, "94KB is over max_bytes (49KB)")
    assert got.readings[0].provider == "local_ears"
    got = await house.read(house.understanding(audio={"models": models[:1]}), voice)
    assert (decision(got).outcome, [each.says for each in got.markers]) == (SKIPPED, [Unread.TOO_LARGE])
    assert small.calls == []


async def test_an_english_recogniser_is_not_asked_for_those_who_write_otherwise(
    house: ReadingHouse, shelf: Shelf
) -> None:
    english = shelf.add("local_english", Skill.TRANSCRIBE, languages=frozenset({"en"}))
    voice = await house.send(sound(3.0))
    german = ("Ich bin heute nicht da, aber wir können uns morgen sehen.",)
    got = await house.read(house.understanding(), voice, recent_texts=german)
    assert attempts(got) == [("local_english", SKIPPED, "speaks English only")]
    with pytest.raises(ProviderError, match="speaks English only"):
        await house.item(house.understanding(), voice, language="de")
    assert english.calls == []
    assert (await house.read(house.understanding(), voice, language="en")).readings


async def test_an_uncertain_transcript_is_marked(house: ReadingHouse, ears: Script) -> None:
    ears.answer = says("maybe", uncertain=True, language="en")
    voice = await house.send(sound(3.0))
    understanding = house.understanding()
    assert (await house.read(understanding, voice)).readings[0].uncertain
    item = await house.item(understanding, voice)
    assert (item.uncertain, item.language, item.cached) == (True, "en", True)


async def test_text_is_cut_at_max_chars_for_the_turn_and_whole_on_request(house: ReadingHouse, ears: Script) -> None:
    voice = await house.send(sound(3.0))
    understanding = house.understanding(audio={"max_chars": 10})
    got = await house.read(understanding, voice)
    assert got.readings[0].text == "The tide…"
    assert decision(got).attachments[0].reason == "cut at max_chars"
    assert (await house.item(understanding, voice)).text == "The tide turns at nine."


async def test_spoken_words_are_found_with_their_time(house: ReadingHouse, ears: Script) -> None:
    ears.answer = says(
        "x",
        segments=(ReadSegment(text="The zebra.", start=1.0, end=2.0), ReadSegment(text="A gnu.", start=2.5, end=3.0)),
    )
    voice = await house.send(sound(4.0))
    await house.read(house.understanding(), voice)
    (hit,) = (await house.store.search(MAIN, SearchQuery(intents=(SearchIntent(text="gnu"),)))).hits
    assert hit.passage is not None
    assert (hit.passage.ref, hit.passage.unit, hit.passage.number) == (voice.ref.id, DocumentUnit.SECOND, 3)


async def test_a_message_that_is_deleted_while_it_is_read_leaves_nothing(house: ReadingHouse, ears: Script) -> None:
    voice = await house.send(sound(3.0))

    async def answer(call: Call) -> Read:
        await house.delete(voice)
        return Read(text="canary words", model="m")

    ears.answer = answer
    got = await house.read(house.understanding(), voice)
    assert got.readings == ()
    rows = await house.store._database.read(
        lambda tx: [
            tuple(row) for row in tx.execute("SELECT count(*) FROM readings UNION ALL SELECT count(*) FROM transcripts")
        ]
    )
    assert rows == [(0,), (0,)]
    assert await house.store.attempts() == ()
    assert house.leftovers() == []


@pytest.mark.parametrize(
    ("limits", "second", "reason"),
    [
        ({"seconds_per_day": 5}, SKIPPED, "over daily limit: 5s of sound a day (limits.seconds_per_day)"),
        ({"seconds_per_day": 7}, SUCCESS, ""),
        ({"usd_per_day": 0.05}, SUCCESS, ""),
    ],
)
async def test_a_channel_reads_no_more_than_its_daily_limit(
    house: ReadingHouse, ears: Script, limits: dict[str, float], second: str, reason: str
) -> None:
    understanding = house.understanding(limits=limits)
    await house.read(understanding, await house.send(sound(3.0)))
    got = await house.read(understanding, await house.send(sound(4.0)))
    assert attempts(got) == [("local_ears", second, reason)]
    if reason:
        assert decision(got).outcome is SKIPPED
        other = await house.read(understanding, await house.send(sound(4.0), where=SIDE), conversation=SIDE)
        assert decision(other).outcome is SUCCESS
        house.clock.shift(86_401)
        assert decision(await house.read(understanding, await house.send(sound(4.5)))).outcome is SUCCESS


async def test_readings_at_the_same_time_keep_to_the_daily_limit_together(house: ReadingHouse, ears: Script) -> None:
    voices = [await house.send(sound(3.0 + number / 10)) for number in range(5)]
    got = await house.read(house.understanding(limits={"seconds_per_day": 7}, concurrency=8), *voices)
    assert len(got.readings) == 2
    assert len(ears.calls) == 2


@pytest.mark.parametrize(
    ("prices", "outcome", "usd", "reason"),
    [
        ({}, SKIPPED, None, "its price is unknown, and limits.usd_per_day is set"),
        ({"usd_per_minute": 0.6}, SUCCESS, 0.03, ""),
        ({"usd_per_minute": 60}, SKIPPED, None, "over daily limit: $0.05 a day"),
        ({"usd_per_mtok": 100}, SUCCESS, 0.02, ""),
    ],
)
async def test_money_is_limited_and_an_unknown_price_is_not_paid(
    house: ReadingHouse,
    shelf: Shelf,
    ears: Script,
    prices: dict[str, float],
    outcome: str,
    usd: float | None,
    reason: str,
) -> None:
    shelf.add("openai", Skill.TRANSCRIBE, answer=says("paid", tokens=200), needs_key=False)
    models = [{"provider": "openai", **prices}, {"provider": "local_ears"}]
    got = await house.read(
        house.understanding(audio={"models": models}, limits={"usd_per_day": 0.05}), await house.send(sound(3.0))
    )
    first = decision(got).attachments[0].attempts[0]
    assert (first.provider, first.outcome) == ("openai", outcome)
    assert first.usd == (None if usd is None else pytest.approx(usd))
    assert first.reason.startswith(reason)
    assert got.readings[0].provider == ("openai" if outcome is SUCCESS else "local_ears")


async def test_on_request_the_scope_the_form_and_missing_providers_are_errors_that_say_why(
    house: ReadingHouse, ears: Script
) -> None:
    voice = await house.send(sound(3.0))
    denied = house.understanding(scope={"default": "deny"})
    with pytest.raises(MediaError, match="does not allow it in this conversation"):
        await house.item(denied, voice)
    groups = house.understanding(scope={"rules": [{"action": "deny", "chat_type": "group"}]})
    with pytest.raises(MediaError, match="does not allow it in this conversation"):
        await house.item(groups, voice)
    with pytest.raises(MediaRefused, match="a sound has no description"):
        await house.item(house.understanding(), voice, ReadingForm.DESCRIPTION)
    ears.answer = fails(ProviderError("it is broken"))
    with pytest.raises(ProviderError, match="no provider could read it: local_ears: it is broken"):
        await house.item(house.understanding(), voice)
    picture = await house.send(b"GIF89a", "image/gif")
    with pytest.raises(ProviderError, match="no provider can make a description of a picture here"):
        await house.item(house.understanding(), picture, ReadingForm.DESCRIPTION)


async def test_what_cannot_be_decoded_is_a_failed_attempt(house: ReadingHouse, ears: Script) -> None:
    noise = await house.send(b"RIFF" + bytes(5_000), kind=MediaKind.VOICE)
    got = await house.read(house.understanding(), noise)
    assert decision(got).outcome is FAILED
    assert decision(got).reason
    assert ears.calls == []
    with pytest.raises(MediaError):
        await house.item(house.understanding(), noise)

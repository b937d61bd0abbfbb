"""Voice of an answer: it is spoken, too, where the configuration says so; a failure never keeps the text back."""

from collections.abc import Awaitable, Callable, Sequence

from belino.delivery.speakable import speakable
from belino.domain.errors import ProviderError
from belino.domain.limits import SendAs
from belino.domain.outcome import Stage, Step
from belino.domain.ports import Clock
from belino.domain.reply import Offer
from belino.domain.stored import ClaimedTurn
from belino.understanding.speaker import FILE_NAME, Speaker
from belino.understanding.speech import SpeechConfig

NOT_SPOKEN = "not spoken"


class AnswerVoice:
    """Adds a voice message to answers."""

    def __init__(self, speaker: Speaker, clock: Clock) -> None:
        self._speaker = speaker
        self._clock = clock

    async def add(
        self,
        claimed: ClaimedTurn,
        text: str,
        handed: Sequence[Offer],
        note: Callable[[Step], Awaitable[None]],
        *,
        chosen: bool | None = None,
    ) -> tuple[Offer, ...]:
        """The files of an answer, after its voice message if it gets one; `note` records why it has none.

        `chosen` is what people chose by `/voice`; None leaves it to the configuration.
        """
        if not text.strip() or not (is_wanted(self._speaker.config, claimed) if chosen is None else chosen):
            return tuple(handed)
        if any(offer.wanted is SendAs.VOICE for offer in handed):
            await note(self._step(NOT_SPOKEN, "the agent sends a voice message itself"))
            return tuple(handed)
        config = self._speaker.config
        said = speakable(text, max_chars=config.max_chars, language=config.language)
        if not said.text:
            await note(self._step(NOT_SPOKEN, "there are no words in it to speak"))
            return tuple(handed)
        try:
            spoken = await self._speaker.speak(said.text, claimed.conversation)
        except ProviderError as error:
            await note(self._step(NOT_SPOKEN, str(error)))
            return tuple(handed)
        cut = f", only the beginning (max_chars = {config.max_chars})" if said.cut else ""
        await note(self._step("spoken", f"{spoken}{cut}"))
        return (spoken.offer(), *handed)

    def _step(self, outcome: str, reason: str) -> Step:
        return Step(at=self._clock.now(), stage=Stage.REPLY, outcome=outcome, reason=reason, subject=FILE_NAME)


def is_wanted(config: SpeechConfig, claimed: ClaimedTurn) -> bool:
    """Whether the answer of a turn is to be spoken."""
    if config.auto == "inbound":
        return all(message.is_spoken for message in claimed.messages)
    return config.auto == "always"

"""Conversations to search, made by rule: small ones with questions and known answers, and one as long as you like."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "ki", "lo", "me", "nu", "pa", "ri", "so", "ta", "ve", "wi", "zo")
_LITTLE = "the a to and of in it is that was for on you with as i at be this have from or had by not but what all were"
LITTLE_WORDS = tuple(_LITTLE.split())
VOCABULARY = 30_000
QUESTIONS = (
    "When did {name} talk about {words}?",
    "What did {name} say about {words}?",
    "Who knows {words}?",
    "{words}",
)

PEOPLE = ("Ann", "Boris", "Chioma", "Diego", "Emine", "Farid")
_DOINGS = (
    ("adopted a {} from the shelter", "pet", ("beagle", "tabby", "greyhound", "parrot", "tortoise", "rabbit")),
    ("signed up for a {} class", "lesson", ("pottery", "salsa", "welding", "calligraphy", "judo", "sailing")),
    ("booked a trip to {}", "journey", ("Lisbon", "Nairobi", "Kyoto", "Tromsø", "Oaxaca", "Tbilisi")),
    ("finished reading {}", "novel", ("Middlemarch", "Beloved", "Dubliners", "Solaris", "Emma", "Ulysses")),
    ("started a new job as a {}", "profession", ("nurse", "surveyor", "baker", "translator", "welder", "pilot")),
    ("burned the {} last night", "dinner", ("lasagna", "paella", "curry", "goulash", "risotto", "dumplings")),
)
_SMALL_TALK = (
    "That sounds great!",
    "Ha, same here.",
    "The weather has been awful lately.",
    "I should get back to work.",
    "Let's catch up next week.",
    "No way, really?",
    "My phone keeps dying on me.",
    "Did you see the game yesterday?",
    "Coffee tomorrow?",
    "Thanks, that means a lot.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message."""

    id: str
    ts: float
    author: str
    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, and the messages that answer it."""

    intent: str
    gold: tuple[str, ...]
    before: int | None = None
    """Only the messages before this place may be found."""
    window: int | None = None
    """And of these only so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeConversation:
    """What was said in one channel, and what is asked about it."""

    said: tuple[Said, ...]
    asked: tuple[Asked, ...]


def made(channels: int = 6) -> tuple[MadeConversation, ...]:
    """Small conversations. The answer to a question often has none of its words: it follows the message that has."""
    return tuple(_made(random.Random(seed)) for seed in range(channels))  # noqa: S311  reproducible on purpose


def _made(chance: random.Random) -> MadeConversation:
    said: list[Said] = []
    asked: list[Asked] = []
    ts = 1_700_000_000.0
    pairs = [(person, doing) for person in PEOPLE for doing in _DOINGS]
    chance.shuffle(pairs)
    for person, (sentence, sort, things) in pairs:
        ts += chance.uniform(3, 60) * 3_600
        other = chance.choice([name for name in PEOPLE if name != person])
        thing = chance.choice(things)
        lines = [(other, "Hey! How have you been?"), (person, f"Good! I {sentence.format(thing)}.")]
        lines += [(chance.choice(PEOPLE), chance.choice(_SMALL_TALK)) for _ in range(chance.randint(2, 6))]
        lines += [(other, f"How did you choose the {thing}?"), (person, "My sister talked me into it.")]
        start = len(said)
        for author, text in lines:
            ts += 45
            said.append(Said(id=str(len(said)), ts=ts, author=author, text=text))
        fact, reason = str(start + 1), str(start + len(lines) - 1)
        asked.append(Asked(intent=f"Which {sort} did {person} tell about, the {thing}?", gold=(fact,)))
        asked.append(Asked(intent=f"Why did {person} choose the {thing}?", gold=(reason,)))
        asked.append(Asked(intent=f"When did {person} say they {sentence.split()[0]} something?", gold=(fact,)))
    return MadeConversation(said=tuple(said), asked=tuple(asked))


def long_talk(messages: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Author and text of many messages, their words as unevenly spread as in any language."""
    chance = random.Random(seed)  # noqa: S311  reproducible on purpose
    words = ["".join(chance.choices(SYLLABLES, k=2 + number % 3)) for number in range(VOCABULARY)]
    share = list(accumulate(1 / (rank + 8) for rank in range(VOCABULARY)))
    names = [f"{word.capitalize()} {number}" for number, word in enumerate(words[:40])]
    for _ in range(messages):
        length = max(2, int(chance.lognormvariate(2.1, 0.7)))
        content = chance.choices(words, cum_weights=share, k=length)
        little = chance.choices(LITTLE_WORDS, k=length)
        text = " ".join(word for pair in zip(little, content, strict=True) for word in pair)
        yield chance.choice(names), text + chance.choice(("", ".", "!", "?"))


def long_questions(talk: list[tuple[str, str]], count: int, seed: int = 2) -> list[str]:
    """Questions in the words of messages picked here and there."""
    chance = random.Random(seed)  # noqa: S311  reproducible on purpose
    questions = []
    for _ in range(count):
        author, text = chance.choice(talk)
        content = text.rstrip(".!?").split()[1::2]
        words = chance.sample(content, min(len(content), chance.randint(2, 6)))
        questions.append(chance.choice(QUESTIONS).format(name=author.split()[0], words=" ".join(words)))
    return questions

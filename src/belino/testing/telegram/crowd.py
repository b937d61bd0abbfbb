"""Crowd of a busy group: eight people, small talk and media of every kind, deterministic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from random import Random
from typing import Any

from belino.testing import scenes
from belino.testing.file_server import FakeUpload
from belino.testing.platform_server import Json
from belino.testing.telegram.world import TelegramWorld

PEOPLE = ("Ana", "Bo", "Chidi", "Dana", "Emil", "Farah", "Goran", "Hanna")
TITLE = "Weekend on the coast"
ALBUM = 4

_TALK = (
    "Who has the keys to the hut?",
    "I can drive, four seats left.",
    "The forecast says sun until Sunday",
    "Bring boots, the path is muddy after the bridge.",
    "Ferry leaves at 9:40, not 9:50!",
    "Has anybody paid the deposit?",
    "I did. You all owe me 23 each.",
    "Vegetarian option for two please.",
    "😂😂",
    "Can we stop at the lighthouse on the way?",
    "Yes!",
    "My phone is at 4 %, see you there.",
    "Who took the good camping chair last time?",
    "Not me.",
    "There is a market on Saturday morning.",
    "I would rather sleep.",
    "Swimming before breakfast, who is in?",
    "The water has 14 degrees. Good luck.",
    "I found the tent poles. All of them.",
    "Ana, did you see what Bo wrote above?",
    "Let us meet at the station, platform 3.",
    "Does the hut have an oven?",
    "It has a stove and a view.",
    "Perfect.",
    "I made a list, it is on the board.",
    "Somebody please water my plants.",
)
_CAPTIONS = {
    "hills": ("The view from the hut", "Sunset just now", "Our path, roughly", None),
    "board": ("Who brings what", "I wrote it all down", None),
    "chart": ("The vote for dinner", "Pizza it is"),
    "receipt": ("The bill from the café", "Please check my maths"),
}
# The share of each kind in a hundred media, and its size range: as in a group of friends.
_MIX: Mapping[str, tuple[int, int, int]] = {
    "photo": (56, 120_000, 380_000),
    "voice": (15, 20_000, 180_000),
    "video": (7, 4_000_000, 9_000_000),
    "video_note": (3, 1_200_000, 2_500_000),
    "animation": (3, 600_000, 1_500_000),
    "audio": (2, 3_500_000, 6_000_000),
    "document": (8, 40_000, 1_800_000),
    "sticker": (6, 20_000, 40_000),
}
_DOCUMENTS = (
    ("ferry-times.pdf", "application/pdf", scenes.report),
    ("expenses.csv", "text/csv", scenes.table),
    ("packing list.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", scenes.letter),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdLine:
    """A person's next message."""

    who: int
    text: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class ChattyGroup:
    """The people of the group."""

    def __init__(self, world: TelegramWorld) -> None:
        self._world = world
        self.group = world.group(TITLE)
        self.people = [world.user(name) for name in PEOPLE]
        self._asked = 0

    def say(self, line: CrowdLine) -> Json:
        """Say the next line."""
        return self._world.say(self.group, self.people[line.who], line.text, **line.fields)

    def ask(self, question: str, about: Json) -> Json:
        """Another visitor asks the agent something about a message: questions of one person would be answered together.

        Visitors send no media, so that questions are about other people's.
        """
        self._asked += 1
        words, visitor = f"@{self._world.bot['username']} {question}", self._world.user(f"Visitor {self._asked}")
        return self._world.say(self.group, visitor, words, reply_to=about)


def conversation(messages: int, media: int, *, seed: int = 7) -> tuple[CrowdLine, ...]:
    """So many messages, so many of them with media, including albums; deterministic."""
    rng = Random(seed)  # noqa: S311 - a script, not a secret
    said = [CrowdLine(who=rng.randrange(len(PEOPLE)), text=rng.choice(_TALK)) for _ in range(messages - media)]
    for group in _groups(_kinds(media, rng), rng):
        at, who = rng.randint(min(4, len(said)), len(said)), rng.randrange(len(PEOPLE))
        album = {"album": f"13{rng.randrange(10**14):014}"} if len(group) > 1 else {}
        said[at:at] = [CrowdLine(who=who, fields={**fields, **album}) for fields in group]
    return tuple(said)


def _kinds(media: int, rng: Random) -> list[str]:
    """The number of each kind by the mix, rounded to the right sum."""
    kinds = [kind for kind, (share, _, _) in _MIX.items() for _ in range(max(1, round(media * share / 100)))]
    while len(kinds) < media:
        kinds.append("photo")
    kinds = kinds[-media:] if len(kinds) > media else kinds
    rng.shuffle(kinds)
    return kinds


def _groups(kinds: Sequence[str], rng: Random) -> list[list[dict[str, Any]]]:
    """Each media item alone, except that every sixth photo begins an album."""
    documents, pictures = cycle(_DOCUMENTS), cycle(scenes.SCENES)
    groups: list[list[dict[str, Any]]] = []
    photos = [_photo(next(pictures), rng) for kind in kinds if kind == "photo"]
    while photos:
        count = ALBUM if len(groups) % 6 == 5 else 1
        groups.append(photos[:count])
        del photos[:count]
    for kind in kinds:
        if kind == "document":
            groups.append([_document(*next(documents), rng)])
        elif kind != "photo":
            groups.append([{kind: _upload(kind, rng)}])
    return groups


def _photo(scene: str, rng: Random) -> dict[str, Any]:
    size = _size("photo", rng)
    content = partial(scenes.picture, scene, size, rng.randrange(1000))
    caption = rng.choice(_CAPTIONS[scene])
    photo = FakeUpload(content=content, size=size, width=scenes.WIDTH, height=scenes.HEIGHT)
    return {"photo": photo, **({"caption": caption} if caption else {})}


def _document(name: str, mime: str, make: Callable[[int], bytes], rng: Random) -> dict[str, Any]:
    size = min(_size("document", rng), 60_000) if mime.startswith("text/") else _size("document", rng)
    return {"document": FakeUpload(content=partial(make, size), size=size, name=name, mime=mime)}


def _upload(kind: str, rng: Random) -> FakeUpload:
    size = _size(kind, rng)
    if kind == "sticker":
        size -= size % 2
        return FakeUpload(
            content=partial(scenes.sticker, size), size=size, width=512, height=512, extra={"emoji": "😂"}
        )
    if kind == "voice":
        return FakeUpload(content=partial(scenes.voice, size), size=size, duration=size // scenes.VOICE_BYTES_A_SECOND)
    if kind == "audio":
        seconds = size // scenes.SONG_BYTES_A_SECOND
        return FakeUpload(content=partial(scenes.song, size), size=size, duration=seconds, name="song.mp3")
    width, height = (384, 384) if kind == "video_note" else (1280, 720)
    return FakeUpload(
        content=partial(scenes.film, size, width, height),
        size=size,
        duration=size // scenes.FILM_BYTES_A_SECOND,
        width=width,
        height=height,
    )


def _size(kind: str, rng: Random) -> int:
    _, least, most = _MIX[kind]
    return rng.randint(least, most)

"""An answer is told while it is written, in pieces that fit together again."""

from belino.domain.message import ConversationKey
from belino.gateway.events import EventBus, TurnNotice
from belino.testing import FakeClock
from belino.turns.drafts import PIECE_SECONDS, Draft

MAIN = ConversationKey(platform="web", account="default", channel="main")


class Told(EventBus):
    """Keeps what was published."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[TurnNotice] = []

    def publish(self, notice: object) -> None:
        self.pieces.append(notice.payload)  # type: ignore[attr-defined]


async def test_pieces_that_come_at_once_are_told_together_and_each_says_where_it_belongs() -> None:
    told, clock = Told(), FakeClock()
    draft = Draft(MAIN, 7, told, clock)
    for piece in ("Hel", "lo ", "😀"):
        draft.write(piece)
    await clock.advance(PIECE_SECONDS)
    draft.write("you")
    await clock.advance(PIECE_SECONDS)
    draft.write("!")
    assert [(piece.turn, piece.state, piece.at, piece.text) for piece in told.pieces] == [
        (7, "writing", 0, "Hel"),
        (7, "writing", 3, "lo 😀you"),
        (7, "writing", 11, "!"),
    ]


def test_what_was_kept_is_told_before_something_else_begins() -> None:
    told = Told()
    draft = Draft(MAIN, 7, told, FakeClock())
    for piece in ("Let me ", "look"):
        draft.write(piece)
    draft.flush()
    draft.flush()
    assert [(piece.at, piece.text) for piece in told.pieces] == [(0, "Let me "), (7, "look")]


def test_an_empty_piece_is_nothing_to_tell() -> None:
    told = Told()
    Draft(MAIN, 7, told, FakeClock()).write("")
    assert told.pieces == []

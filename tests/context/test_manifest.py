"""Shown once while it is remembered, and shown again when it is not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from belino.context.manifest import in_context, suppressed, thread_media
from belino.domain.stored import ManifestEntry, Session


def entry(
    ref: str, content: str = "", *, turn: int = 1, message: str = "m", thread: str | None = None
) -> ManifestEntry:
    return ManifestEntry(
        artifact_id=ref, display_name="photo.png", media_type="image/png", content_hash=content or f"hash of {ref}",
        source_message_id=message, source_thread_id=thread, included_at_turn=turn,
    )  # fmt: skip


def session(*entries: ManifestEntry, lost: tuple[str, ...] = (), compacted: bool = True) -> Session:
    return Session(memory=None, turns=3, manifest=entries, lost=lost, compacted=compacted)


def test_the_same_ref_and_the_same_bytes_are_known_and_nothing_else_is() -> None:
    shown = (entry("a", turn=1), entry("b", turn=2))
    assert suppressed(shown, "a", None) == shown[0]
    assert suppressed(shown, "new", "hash of b") == shown[1]
    assert suppressed(shown, "new", None) is None
    assert suppressed(shown, "new", "other bytes") is None


def test_what_was_lost_is_no_longer_known_by_its_ref_or_its_bytes() -> None:
    there = in_context(session(entry("a"), entry("b"), lost=("a",)))
    assert suppressed(there, "a", "hash of a") is None
    assert suppressed(there, "b", None)


def test_lost_bytes_that_came_again_under_another_ref_are_known() -> None:
    there = in_context(session(entry("old", "same"), entry("new", "same", turn=4), lost=("old",)))
    assert suppressed(there, "old", "same") == entry("new", "same", turn=4)


def test_the_media_of_a_thread_is_its_own_and_that_of_its_root() -> None:
    root, reply = entry("root", message="t1"), entry("reply", thread="t1")
    other, top = entry("other", thread="t2"), entry("top", message="m9")
    known = session(root, reply, other, top, lost=("root", "other"))
    assert thread_media(known, "t1") == (root, reply)
    assert thread_media(known, None) == (root, top)


def test_the_same_bytes_are_listed_once_by_the_ref_under_which_they_are_there() -> None:
    twice = session(entry("a", "same"), entry("b", "same"), lost=("a", "b"))
    assert [found.artifact_id for found in thread_media(twice, None)] == ["b"]
    assert [found.artifact_id for found in thread_media(replace(twice, lost=("b",)), None)] == ["a"]
    elsewhere = session(entry("a", "same"), entry("b", "same", thread="t2"), lost=("a",))
    assert [found.artifact_id for found in thread_media(elsewhere, None)] == ["b"]


@given(st.lists(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_nothing_lost_is_ever_suppressed_by_itself_and_every_content_is_listed_once(
    refs: list[str], lost: set[str]
) -> None:
    known = session(*(entry(ref, ref.upper()) for ref in refs), lost=tuple(sorted(lost)))
    there = in_context(known)
    for ref in refs:
        assert (suppressed(there, ref, ref.upper()) is None) == (ref in lost)
    assert sorted(found.artifact_id for found in thread_media(known, None)) == sorted(set(refs))

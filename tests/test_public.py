"""The names a program imports from belino."""

import subprocess
import sys

import belino


def test_every_public_name_can_be_had() -> None:
    for name in belino.__all__:
        assert getattr(belino, name) is not None


def test_the_list_of_public_names_is_complete() -> None:
    assert set(belino.__all__) == {*belino._WHERE, "__version__"}
    assert belino.__all__ == sorted(belino.__all__)
    assert set(dir(belino)) == set(belino.__all__)


def test_a_name_that_is_not_public_is_an_ordinary_attribute_error() -> None:
    assert not hasattr(belino, "nothing_of_the_kind")


def test_importing_belino_imports_nothing_else_of_it() -> None:
    code = "import belino, sys; print([m for m in sys.modules if m.startswith('belino.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_an_agent_needs_one_import_line() -> None:
    from belino import (
        Attachment,
        Choice,
        Final,
        PickedChoice,
        ReplyPart,
        ReplyParts,
        TextBlock,
        TextDelta,
        ToolError,
        Turn,
        TurnMessage,
        run,
    )

    assert all((Attachment, Choice, Final, PickedChoice, ReplyPart, ReplyParts, TextBlock, TextDelta))
    assert all((ToolError, Turn, TurnMessage, run))

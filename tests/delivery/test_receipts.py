"""What the platform stored against what was sent."""

import pytest

from belino.delivery.receipts import difference
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.testing import START

WHERE = ConversationKey(platform="memory", account="default", channel="dm")
PHOTO = OutgoingFile(name="cat.jpg", mime="image/jpeg", size=100, sha256="a" * 64, send_as=SendAs.PHOTO)
PAPER = OutgoingFile(name="report.pdf", mime="application/pdf", size=200, sha256="b" * 64)


def told(*stored: StoredFile) -> str:
    parcel = Parcel(key="k", conversation=WHERE, kind=ParcelKind.FILES, files=(PHOTO, PAPER))
    return difference(parcel, Receipt(message_id="m", sent=START, stored=stored))


@pytest.mark.parametrize(
    "stored",
    [
        (StoredFile(form=SendAs.PHOTO, size=90), StoredFile(form=SendAs.DOCUMENT, size=200, name="report.pdf")),
        (StoredFile(), StoredFile()),
        (StoredFile(size=5), StoredFile(name="renamed.pdf")),
    ],
    ids=["as planned, the photo encoded anew", "it says nothing", "renamed"],
)
def test_what_is_as_planned_is_not_told(stored: tuple[StoredFile, ...]) -> None:
    assert told(*stored) == ""


def test_a_platform_that_does_not_say_is_believed() -> None:
    parcel = Parcel(key="k", conversation=WHERE, kind=ParcelKind.FILES, files=(PHOTO,))
    assert difference(parcel, Receipt(message_id="m", sent=START)) == ""


def test_a_file_that_is_missing_is_told() -> None:
    assert told(StoredFile()) == "the platform stored 1 of 2 files"


def test_another_form_and_another_size_are_told() -> None:
    assert told(StoredFile(form=SendAs.DOCUMENT, size=1), StoredFile(size=150)) == (
        "cat.jpg: sent as document instead of photo; report.pdf: the platform holds 150 of 200 bytes"
    )

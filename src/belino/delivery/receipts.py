"""Receipts: compare what the platform says it stored with what was sent."""

from belino.domain.limits import SendAs
from belino.domain.reply import OutgoingFile, Parcel, Receipt, StoredFile

KEPT_AS_THEY_ARE = frozenset({SendAs.DOCUMENT, SendAs.AUDIO, SendAs.VOICE})
"""Forms that platforms store unchanged, so that the size must match; pictures and videos are re-encoded."""


def difference(parcel: Parcel, receipt: Receipt) -> str:
    """What differs from the plan, in words; empty if nothing does, or the platform does not say."""
    if receipt.stored is None:
        return ""
    if len(receipt.stored) != len(parcel.files):
        return f"the platform stored {len(receipt.stored)} of {len(parcel.files)} files"
    pairs = zip(parcel.files, receipt.stored, strict=True)
    return "; ".join(told for file, stored in pairs for told in _of_file(file, stored))


def _of_file(file: OutgoingFile, stored: StoredFile) -> list[str]:
    told = []
    if stored.form not in (None, file.send_as):
        told.append(f"{file.name}: sent as {stored.form} instead of {file.send_as}")
    if (
        stored.size not in (None, file.size)
        and file.send_as in KEPT_AS_THEY_ARE
        and stored.form in (None, file.send_as)
    ):
        told.append(f"{file.name}: the platform holds {stored.size} of {file.size} bytes")
    return told

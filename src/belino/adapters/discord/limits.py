"""What Discord takes from a bot, by its documentation."""

from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs, Unit

MIB = 1024 * 1024
UPLOAD_BYTES = 10 * MIB
# What a request may weigh in all, and what is left of it for files.
REQUEST_BYTES = 25 * MIB
FORM_BYTES = 64 * 1024
FETCH_BYTES = 500 * MIB
TEXT_CHARS, TEXT_LINES = 2_000, 17
MOST_FILES = 10
# "The past few minutes", says the documentation of a nonce that is enforced.
KEY_SECONDS = 120.0

# A voice message stands alone: one sound, and no text beside it.
_TOGETHER = frozenset(set(SendAs) - {SendAs.VOICE, SendAs.STICKER})


def limits_of(upload_bytes: int) -> Limits:
    """The limits where a file may have so many bytes; where that is more than a request takes, it is believed."""
    together = max(upload_bytes, REQUEST_BYTES) - FORM_BYTES
    upload_bytes = min(upload_bytes, together)
    files = {
        SendAs.PHOTO: FileLimit(
            max_bytes=upload_bytes, mimes=frozenset({"image/jpeg", "image/png", "image/webp"}), max_side=16_384
        ),
        SendAs.VIDEO: FileLimit(
            max_bytes=upload_bytes, mimes=frozenset({"video/mp4", "video/webm", "video/quicktime"})
        ),
        SendAs.AUDIO: FileLimit(max_bytes=upload_bytes),
        SendAs.VOICE: FileLimit(
            max_bytes=upload_bytes,
            mimes=frozenset({"audio/ogg"}),
            codecs=frozenset({"opus"}),
            caption=False,
            alone=True,
            waveform=True,
        ),
        SendAs.ANIMATION: FileLimit(max_bytes=upload_bytes, mimes=frozenset({"image/gif", "video/mp4"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=upload_bytes),
    }
    return Limits(
        text_chars=TEXT_CHARS,
        text_lines=TEXT_LINES,
        unit=Unit.UTF16,
        markup=Markup.CHAT,
        once=Once.KEY,
        key_seconds=KEY_SECONDS,
        files=files,
        album_items=MOST_FILES,
        album_mixes=(_TOGETHER,),
        album_bytes=together,
        text_with_files=True,
        fetch_bytes=FETCH_BYTES,
    )


LIMITS = limits_of(UPLOAD_BYTES)

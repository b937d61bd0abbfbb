"""What Slack takes, by its documentation."""

from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs

FILE_BYTES = 1024 * 1024 * 1024
EDIT_CHARS = 4_000
"""What chat.update takes; chat.postMessage takes ten times as much."""

# Slack shows a file by what it is: every form is the same upload. Animations play by themselves if they are GIFs.

LIMITS = Limits(
    text_chars=8_000,
    caption_chars=3_000,
    markup=Markup.MRKDWN,
    once=Once.READ_BACK,
    files={
        SendAs.PHOTO: FileLimit(
            max_bytes=FILE_BYTES,
            mimes=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/heic"}),
        ),
        SendAs.VIDEO: FileLimit(max_bytes=FILE_BYTES, mimes=frozenset({"video/mp4", "video/quicktime", "video/webm"})),
        SendAs.AUDIO: FileLimit(
            max_bytes=FILE_BYTES,
            mimes=frozenset({"audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav", "audio/flac", "audio/aac"}),
        ),
        SendAs.VOICE: FileLimit(
            max_bytes=FILE_BYTES, mimes=frozenset({"audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm"})
        ),
        SendAs.ANIMATION: FileLimit(max_bytes=FILE_BYTES, mimes=frozenset({"image/gif", "video/mp4"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=FILE_BYTES),
    },
    album_items=10,
    album_mixes=(
        frozenset({SendAs.PHOTO, SendAs.VIDEO, SendAs.AUDIO, SendAs.VOICE, SendAs.ANIMATION, SendAs.DOCUMENT}),
    ),
)

"""The limits of nine platforms: two on their adapters, the others by the platforms' documentation."""

from belino.adapters.telegram.capabilities import LIMITS as TELEGRAM
from belino.adapters.web import Adapter as WebAdapter
from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs, Unit

KB, MB = 1024, 1024 * 1024
VISIBLE = (SendAs.PHOTO, SendAs.VIDEO, SendAs.AUDIO, SendAs.ANIMATION, SendAs.DOCUMENT)
OFFICE = "application/vnd.openxmlformats-officedocument"


def any_file(most: int, *, caption: bool = True) -> dict[SendAs, FileLimit]:
    """A platform that takes files and shows what it can: only their size counts."""
    return {form: FileLimit(max_bytes=most, caption=caption) for form in VISIBLE}


# A bot's file has at most 10 MiB and a message 10 files, 25 MiB together.
DISCORD = Limits(
    text_chars=2_000,
    once=Once.KEY,
    markup=Markup.CHAT,
    files=any_file(10 * MB, caption=False)
    | {
        SendAs.VOICE: FileLimit(
            max_bytes=10 * MB, mimes=frozenset({"audio/ogg"}), codecs=frozenset({"opus"}), caption=False
        )
    },
    album_items=10,
    album_mixes=(frozenset(VISIBLE),),
    album_bytes=25 * MB,
    text_with_files=True,
)
SLACK = Limits(
    text_chars=8_000,
    once=Once.UNCERTAIN,
    markup=Markup.MRKDWN,
    files=any_file(1024 * MB),
    caption_chars=4_000,
    album_items=10,
    album_mixes=(frozenset(VISIBLE),),
)
WHATSAPP = Limits(
    text_chars=4_096,
    once=Once.UNCERTAIN,
    caption_chars=1_024,
    files={
        SendAs.PHOTO: FileLimit(max_bytes=5 * MB, mimes=frozenset({"image/jpeg", "image/png"})),
        SendAs.VIDEO: FileLimit(max_bytes=16 * MB, mimes=frozenset({"video/mp4", "video/3gpp"})),
        SendAs.AUDIO: FileLimit(
            max_bytes=16 * MB,
            mimes=frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"}),
            codecs=frozenset({"aac", "amr", "mp3", "opus"}),
            caption=False,
        ),
        SendAs.VOICE: FileLimit(
            max_bytes=512 * KB, mimes=frozenset({"audio/ogg"}), codecs=frozenset({"opus"}), caption=False
        ),
        SendAs.STICKER: FileLimit(max_bytes=100 * KB, mimes=frozenset({"image/webp"}), max_side=512, caption=False),
        SendAs.DOCUMENT: FileLimit(
            max_bytes=100 * MB,
            mimes=frozenset(
                {
                    "text/plain", "application/pdf", "application/msword", "application/vnd.ms-excel",
                    "application/vnd.ms-powerpoint", f"{OFFICE}.spreadsheetml.sheet",
                    f"{OFFICE}.wordprocessingml.document", f"{OFFICE}.presentationml.presentation",
                }
            ),
        ),
    },
)  # fmt: skip
SIGNAL = Limits(
    text_chars=2_000,
    once=Once.UNCERTAIN,
    caption_chars=2_000,
    files=any_file(100 * MB)
    | {SendAs.VOICE: FileLimit(max_bytes=100 * MB, mimes=frozenset({"audio/aac", "audio/mp4", "audio/ogg"}))},
    album_items=32,
    album_mixes=(frozenset(VISIBLE),),
)
# No files but these three kinds, no captions.
LINE = Limits(
    text_chars=5_000,
    unit=Unit.UTF16,
    once=Once.KEY,
    files={
        SendAs.PHOTO: FileLimit(max_bytes=10 * MB, mimes=frozenset({"image/jpeg", "image/png"}), caption=False),
        SendAs.VIDEO: FileLimit(max_bytes=200 * MB, mimes=frozenset({"video/mp4"}), caption=False),
        SendAs.AUDIO: FileLimit(max_bytes=200 * MB, mimes=frozenset({"audio/mpeg", "audio/mp4"}), caption=False),
    },
)
# A file travels inside the activity, whose size is bounded.
TEAMS = Limits(
    text_chars=28 * KB,
    unit=Unit.BYTES,
    once=Once.UNCERTAIN,
    markup=Markup.MARKDOWN,
    files={
        SendAs.PHOTO: FileLimit(max_bytes=190 * KB, mimes=frozenset({"image/jpeg", "image/png", "image/gif"})),
        SendAs.ANIMATION: FileLimit(max_bytes=190 * KB, mimes=frozenset({"image/gif"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=190 * KB),
    },
    caption_chars=4_000,
)
# An event has at most 64 KiB, its text twice in it: as it is and as HTML.
MATRIX = Limits(
    text_chars=24_000,
    unit=Unit.BYTES,
    once=Once.KEY,
    markup=Markup.HTML,
    caption_chars=24_000,
    files=any_file(100 * MB)
    | {
        SendAs.VOICE: FileLimit(max_bytes=100 * MB, mimes=frozenset({"audio/ogg"}), codecs=frozenset({"opus"})),
        SendAs.STICKER: FileLimit(max_bytes=MB, mimes=frozenset({"image/webp", "image/png"}), caption=False),
    },
)

PLATFORMS: dict[str, Limits] = {
    "telegram": TELEGRAM,
    "discord": DISCORD,
    "slack": SLACK,
    "whatsapp": WHATSAPP,
    "signal": SIGNAL,
    "line": LINE,
    "teams": TEAMS,
    "matrix": MATRIX,
    "web": WebAdapter.limits,
}

"""Files of every kind, as a reply offers them."""

from dataclasses import replace

from belino.domain.limits import SendAs
from belino.domain.reply import Offer
from delivery.platforms import KB, MB


def offer(name: str, mime: str, size: int, **more: object) -> Offer:
    """An offer without bytes; its name is its hash."""
    return Offer(name=name, mime=mime, size=size, sha256=name, **more)  # type: ignore[arg-type]


def picture(name: str, mime: str, size: int, width: int, height: int, **more: object) -> Offer:
    return offer(name, mime, size, width=width, height=height, **more)


OPUS = offer("note.ogg", "audio/ogg", 100 * KB, codec="opus", seconds=12.0)
MP3 = offer("song.mp3", "audio/mpeg", 4 * MB, codec="mp3", seconds=180.0)
WAV = offer("take.wav", "audio/wav", 4 * MB, codec="pcm", seconds=30.0)

VIDEO_STICKER = picture("w.webm", "video/webm", 200 * KB, 512, 480, codec="vp9", seconds=2.9)

FILES: dict[str, Offer] = {
    "small jpeg": picture("a.jpg", "image/jpeg", 100 * KB, 800, 600),
    "large jpeg": picture("b.jpg", "image/jpeg", 12 * MB, 6000, 4000),
    "wide jpeg": picture("c.jpg", "image/jpeg", 3 * MB, 9000, 2000),
    "narrow png": picture("d.png", "image/png", 150 * KB, 500, 15_000),
    "heic": picture("e.heic", "image/heic", 2 * MB, 4000, 3000),
    "unmeasured jpeg": offer("f.jpg", "image/jpeg", 100 * KB),
    "still gif": picture("g.gif", "image/gif", 50 * KB, 100, 100),
    "moving gif": picture("h.gif", "image/gif", 3 * MB, 400, 300, frames=20),
    "moving webp": picture("i.webp", "image/webp", 100 * KB, 400, 300, frames=20),
    "svg": offer("j.svg", "image/svg+xml", 20 * KB),
    "mp4": offer("k.mp4", "video/mp4", 5 * MB),
    "large mp4": offer("l.mp4", "video/mp4", 60 * MB),
    "mkv": offer("m.mkv", "video/x-matroska", 5 * MB),
    "mp3": MP3,
    "wav": WAV,
    "vorbis": offer("n.ogg", "audio/ogg", MB, codec="vorbis"),
    "small pdf": offer("o.pdf", "application/pdf", 100 * KB),
    "large pdf": offer("p.pdf", "application/pdf", 60 * MB),
    "huge zip": offer("q.zip", "application/zip", 3000 * MB),
    "nothing": offer("r.txt", "text/plain", 0),
    "opus as voice": replace(OPUS, wanted=SendAs.VOICE),
    "mp3 as voice": replace(MP3, wanted=SendAs.VOICE),
    "wav as voice": replace(WAV, wanted=SendAs.VOICE),
    "jpeg as document": picture("s.jpg", "image/jpeg", 100 * KB, 800, 600, wanted=SendAs.DOCUMENT),
    "gif as photo": picture("t.gif", "image/gif", 100 * KB, 400, 300, frames=20, wanted=SendAs.PHOTO),
    "pdf as photo": offer("u.pdf", "application/pdf", 100 * KB, wanted=SendAs.PHOTO),
    "webp as sticker": picture("v.webp", "image/webp", 60 * KB, 512, 512, wanted=SendAs.STICKER),
    "jpeg as sticker": picture("x.jpg", "image/jpeg", 3 * MB, 4000, 3000, wanted=SendAs.STICKER),
    "tgs": offer("y.tgs", "application/x-tgsticker", 64 * KB),
    "large tgs": offer("z.tgs", "application/x-tgsticker", 65 * KB),
    "webm sticker": VIDEO_STICKER,
    "webm": offer("aa.webm", "video/webm", 5 * MB),
    "heavy webm": replace(VIDEO_STICKER, name="ab.webm", size=257 * KB),
    "long webm": replace(VIDEO_STICKER, name="ac.webm", seconds=4.0),
    "small webm": replace(VIDEO_STICKER, name="ad.webm", width=480),
    "loud webm": replace(VIDEO_STICKER, name="ae.webm", codec="vp9 with sound"),
    "vp8 webm": replace(VIDEO_STICKER, name="af.webm", codec="vp8"),
}

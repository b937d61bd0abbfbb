"""What works on Telegram."""

from belino.domain.works import YES, Thing, Works

WORKS = (
    Works(thing=Thing.TEXT, comes="yes, captions too", goes="yes, formatted; long text in several messages"),
    Works(thing=Thing.PICTURE, comes="yes, in the largest size", goes=YES),
    Works(thing=Thing.VIDEO, comes="yes; round videos and GIFs too", goes="video, animation"),
    Works(thing=Thing.SOUND, comes=YES, goes=YES),
    Works(thing=Thing.VOICE, comes=YES, goes="yes; other sound is made into one if the agent asks for it"),
    Works(
        thing=Thing.FILE,
        comes="yes, up to 20 MB; one that says it is a picture, video or sound counts as that",
        goes="yes, up to 50 MB",
    ),
    Works(
        thing=Thing.STICKER,
        comes="yes: picture (WebP), animated (`application/x-tgsticker`) or video (WebM), with its emoji and set",
        goes="animated (TGS) and video stickers (WebM) that keep Telegram's rules; a picture if the agent asks for one",
    ),
    Works(thing=Thing.ALBUM, comes="yes, as one turn, every caption by its item", goes="yes, 2 to 10 to an album"),
    Works(
        thing=Thing.REPLY,
        comes="yes, with the media of the message that is answered, also from another chat",
        goes="answers in groups are replies to what they answer",
    ),
    Works(thing=Thing.FORWARD, comes="yes, with who said it first"),
    Works(thing=Thing.THREAD, comes="yes: each topic is a conversation of its own", goes=YES),
    Works(thing=Thing.MENTION, comes="yes: `@yourbot`, `/command@yourbot`"),
    Works(thing=Thing.PREVIEW, comes="live photos, paid media and rich messages, as far as bots are shown them"),
    Works(thing=Thing.PLACE, comes="yes, as lines of text; venues, dice, checklists, games and invoices too"),
    Works(thing=Thing.EDIT, comes=YES, goes="answers that grow while they are written"),
    Works(thing=Thing.DELETION, comes="**only in chats of business accounts**: nowhere else are bots told"),
    Works(thing=Thing.REACTION, comes="yes, where the bot is an administrator"),
    Works(thing=Thing.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Works(
        thing=Thing.OTHER, comes="told as unsupported, with what it was: joins, pins, titles, stories, giveaways, news"
    ),
)

"""What works on Telegram."""

from belino.domain.capabilities import YES, Capabilities, Capability

WORKS = (
    Capabilities(
        thing=Capability.TEXT, comes="yes, captions too", goes="yes, formatted; long text in several messages"
    ),
    Capabilities(thing=Capability.PICTURE, comes="yes, in the largest size", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes; round videos and GIFs too", goes="video, animation"),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(thing=Capability.VOICE, comes=YES, goes="yes; other sound is made into one if the agent asks for it"),
    Capabilities(
        thing=Capability.FILE,
        comes="yes, up to 20 MB; one that says it is a picture, video or sound counts as that",
        goes="yes, up to 50 MB",
    ),
    Capabilities(
        thing=Capability.STICKER,
        comes="yes: picture (WebP), animated (`application/x-tgsticker`) or video (WebM), with its emoji and set",
        goes="animated (TGS) and video stickers (WebM) that keep Telegram's rules; a picture if the agent asks for one",
    ),
    Capabilities(
        thing=Capability.ALBUM, comes="yes, as one turn, every caption by its item", goes="yes, 2 to 10 to an album"
    ),
    Capabilities(
        thing=Capability.REPLY,
        comes="yes, with the media of the message that is answered, also from another chat",
        goes="answers in groups are replies to what they answer",
    ),
    Capabilities(thing=Capability.FORWARD, comes="yes, with who said it first"),
    Capabilities(thing=Capability.THREAD, comes="yes: each topic is a conversation of its own", goes=YES),
    Capabilities(thing=Capability.MENTION, comes="yes: `@yourbot`, `/command@yourbot`"),
    Capabilities(
        thing=Capability.PREVIEW, comes="live photos, paid media and rich messages, as far as bots are shown them"
    ),
    Capabilities(
        thing=Capability.PLACE, comes="yes, as lines of text; venues, dice, checklists, games and invoices too"
    ),
    Capabilities(thing=Capability.EDIT, comes=YES, goes="answers that grow while they are written"),
    Capabilities(thing=Capability.DELETION, comes="**only in chats of business accounts**: nowhere else are bots told"),
    Capabilities(thing=Capability.REACTION, comes="yes, where the bot is an administrator"),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Capabilities(
        thing=Capability.OTHER,
        comes="told as unsupported, with what it was: joins, pins, titles, stories, giveaways, news",
    ),
)

"""What works on Discord."""

from belino.domain.capabilities import YES, Capabilities, Capability

WORKS = (
    Capabilities(
        thing=Capability.TEXT,
        comes="yes, with names instead of ids",
        goes="yes, formatted; long text in several messages",
    ),
    Capabilities(thing=Capability.PICTURE, comes="yes, with their alt text", goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes, clips too", goes=YES),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(
        thing=Capability.VOICE,
        comes=YES,
        goes="yes, with their waveform; other sound is made into one if the agent asks",
    ),
    Capabilities(
        thing=Capability.FILE, comes="yes, of any size up to 500 MB", goes="yes, up to 10 MB, or what `upload_mb` says"
    ),
    Capabilities(
        thing=Capability.STICKER, comes="yes: PNG, APNG, GIF and Lottie (`application/json`), with their name"
    ),
    Capabilities(
        thing=Capability.ALBUM,
        comes="yes, up to ten in a message",
        goes="yes, up to ten, with the first part of the text",
    ),
    Capabilities(
        thing=Capability.REPLY,
        comes="yes, with the media of the message that is answered",
        goes="answers in servers are replies to what they answer",
    ),
    Capabilities(
        thing=Capability.FORWARD, comes="yes, with their media and channel; Discord does not say who wrote them"
    ),
    Capabilities(
        thing=Capability.THREAD, comes="yes: each thread and forum post is a conversation of its own", goes=YES
    ),
    Capabilities(
        thing=Capability.MENTION, comes="yes: the bot, its role, slash and menu commands", goes="nobody is pinged"
    ),
    Capabilities(thing=Capability.PREVIEW, comes="embeds, cards, buttons and menus, as text; files in them as files"),
    Capabilities(thing=Capability.PLACE, comes="polls and their results, as text"),
    Capabilities(
        thing=Capability.EDIT,
        comes="yes, without the previews Discord adds later",
        goes="answers that grow while they are written",
    ),
    Capabilities(thing=Capability.DELETION, comes="yes, many at once too"),
    Capabilities(thing=Capability.REACTION, comes=YES),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Capabilities(thing=Capability.HISTORY, comes="yes: channels, threads, and what was missed while belino was away"),
    Capabilities(
        thing=Capability.OTHER, comes="told as unsupported, with what it was: joins, pins, boosts, calls, stages"
    ),
)

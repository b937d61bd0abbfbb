"""What works on Discord."""

from belino.domain.works import YES, Thing, Works

WORKS = (
    Works(
        thing=Thing.TEXT, comes="yes, with names instead of ids", goes="yes, formatted; long text in several messages"
    ),
    Works(thing=Thing.PICTURE, comes="yes, with their alt text", goes=YES),
    Works(thing=Thing.VIDEO, comes="yes, clips too", goes=YES),
    Works(thing=Thing.SOUND, comes=YES, goes=YES),
    Works(
        thing=Thing.VOICE, comes=YES, goes="yes, with their waveform; other sound is made into one if the agent asks"
    ),
    Works(thing=Thing.FILE, comes="yes, of any size up to 500 MB", goes="yes, up to 10 MB, or what `upload_mb` says"),
    Works(thing=Thing.STICKER, comes="yes: PNG, APNG, GIF and Lottie (`application/json`), with their name"),
    Works(
        thing=Thing.ALBUM, comes="yes, up to ten in a message", goes="yes, up to ten, with the first part of the text"
    ),
    Works(
        thing=Thing.REPLY,
        comes="yes, with the media of the message that is answered",
        goes="answers in servers are replies to what they answer",
    ),
    Works(thing=Thing.FORWARD, comes="yes, with their media and channel; Discord does not say who wrote them"),
    Works(thing=Thing.THREAD, comes="yes: each thread and forum post is a conversation of its own", goes=YES),
    Works(thing=Thing.MENTION, comes="yes: the bot, its role, slash and menu commands", goes="nobody is pinged"),
    Works(thing=Thing.PREVIEW, comes="embeds, cards, buttons and menus, as text; files in them as files"),
    Works(thing=Thing.PLACE, comes="polls and their results, as text"),
    Works(
        thing=Thing.EDIT,
        comes="yes, without the previews Discord adds later",
        goes="answers that grow while they are written",
    ),
    Works(thing=Thing.DELETION, comes="yes, many at once too"),
    Works(thing=Thing.REACTION, comes=YES),
    Works(thing=Thing.TYPING, goes="while a turn runs, and while a file is uploaded"),
    Works(thing=Thing.HISTORY, comes="yes: channels, threads, and what was missed while belino was away"),
    Works(thing=Thing.OTHER, comes="told as unsupported, with what it was: joins, pins, boosts, calls, stages"),
)

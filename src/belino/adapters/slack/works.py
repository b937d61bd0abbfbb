"""What works on Slack."""

from belino.domain.works import YES, Thing, Works

WORKS = (
    Works(thing=Thing.TEXT, comes="yes; blocks of apps as text", goes="yes, formatted; long text in several messages"),
    Works(thing=Thing.PICTURE, comes=YES, goes=YES),
    Works(thing=Thing.VIDEO, comes="yes; clips too", goes=YES),
    Works(thing=Thing.SOUND, comes=YES, goes=YES),
    Works(thing=Thing.VOICE, comes="yes: audio clips", goes="as a sound file: apps record no clips"),
    Works(
        thing=Thing.FILE,
        comes="yes: snippets, canvases and files shared from another workspace too; a file kept elsewhere as a line",
        goes="yes, up to 1 GB",
    ),
    Works(thing=Thing.STICKER, comes="emoji by their names"),
    Works(thing=Thing.ALBUM, comes="yes, as one message", goes="yes, up to 10 in one message"),
    Works(thing=Thing.REPLY, comes="a pasted link to a message brings it along, with its files", goes="in threads"),
    Works(thing=Thing.FORWARD, comes="yes, with who said it first and its files"),
    Works(thing=Thing.THREAD, comes="yes: each thread is a conversation of its own", goes=YES),
    Works(thing=Thing.MENTION, comes="yes: `@yourapp`, replies in a thread it began, slash commands"),
    Works(thing=Thing.PREVIEW, comes="attachments of apps as text; previews of links only with history"),
    Works(thing=Thing.PLACE, comes="what an app posts, as text"),
    Works(thing=Thing.EDIT, comes=YES, goes="answers that grow while they are written"),
    Works(thing=Thing.DELETION, comes=YES),
    Works(thing=Thing.REACTION, comes=YES),
    Works(thing=Thing.TYPING, goes="in threads, with what the agent is at"),
    Works(thing=Thing.HISTORY, comes="yes, one call for a channel or a thread"),
    Works(thing=Thing.OTHER, comes="told as unsupported, with what it was: joins, topics, pins, huddles, buttons"),
)

"""What works on Slack."""

from belino.domain.capabilities import YES, Capabilities, Capability

WORKS = (
    Capabilities(
        thing=Capability.TEXT, comes="yes; blocks of apps as text", goes="yes, formatted; long text in several messages"
    ),
    Capabilities(thing=Capability.PICTURE, comes=YES, goes=YES),
    Capabilities(thing=Capability.VIDEO, comes="yes; clips too", goes=YES),
    Capabilities(thing=Capability.SOUND, comes=YES, goes=YES),
    Capabilities(thing=Capability.VOICE, comes="yes: audio clips", goes="as a sound file: apps record no clips"),
    Capabilities(
        thing=Capability.FILE,
        comes="yes: snippets, canvases and files shared from another workspace too; a file kept elsewhere as a line",
        goes="yes, up to 1 GB",
    ),
    Capabilities(thing=Capability.STICKER, comes="emoji by their names"),
    Capabilities(thing=Capability.ALBUM, comes="yes, as one message", goes="yes, up to 10 in one message"),
    Capabilities(
        thing=Capability.REPLY, comes="a pasted link to a message brings it along, with its files", goes="in threads"
    ),
    Capabilities(thing=Capability.FORWARD, comes="yes, with who said it first and its files"),
    Capabilities(thing=Capability.THREAD, comes="yes: each thread is a conversation of its own", goes=YES),
    Capabilities(thing=Capability.MENTION, comes="yes: `@yourapp`, replies in a thread it began, slash commands"),
    Capabilities(thing=Capability.PREVIEW, comes="attachments of apps as text; previews of links only with history"),
    Capabilities(thing=Capability.PLACE, comes="what an app posts, as text"),
    Capabilities(thing=Capability.EDIT, comes=YES, goes="answers that grow while they are written"),
    Capabilities(thing=Capability.DELETION, comes=YES),
    Capabilities(thing=Capability.REACTION, comes=YES),
    Capabilities(thing=Capability.TYPING, goes="in threads, with what the agent is at"),
    Capabilities(thing=Capability.HISTORY, comes="yes, one call for a channel or a thread"),
    Capabilities(
        thing=Capability.OTHER, comes="told as unsupported, with what it was: joins, topics, pins, huddles, buttons"
    ),
)

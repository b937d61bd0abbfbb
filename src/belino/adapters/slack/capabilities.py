"""Capabilities of an app: its manifest of scopes and events, Slack's documented limits, and what works."""

from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, Rich, SendAs

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "users:read",
)
EVENTS = (
    "app_mention",
    "app_uninstalled",
    "member_joined_channel",
    "member_left_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
    "tokens_revoked",
)

FILE_BYTES = 1024 * 1024 * 1024
EDIT_CHARS = 4_000
"""The limit of chat.update; chat.postMessage accepts ten times as much."""

# Slack displays a file by its type: every form is the same upload. GIF animations play by themselves.

LIMITS = Limits(
    text_chars=8_000,
    split_chars=4_000,
    caption_chars=3_000,
    markup=Markup.MRKDWN,
    rich=Rich.MARKDOWN,
    rich_chars=12_000,
    once=Once.READ_BACK,
    buttons=True,
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
            max_bytes=FILE_BYTES,
            mimes=frozenset({"audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm"}),
            shown_as=SendAs.AUDIO,
        ),
        SendAs.ANIMATION: FileLimit(max_bytes=FILE_BYTES, mimes=frozenset({"image/gif", "video/mp4"})),
        SendAs.DOCUMENT: FileLimit(max_bytes=FILE_BYTES),
    },
    album_items=10,
    album_mixes=(
        frozenset({SendAs.PHOTO, SendAs.VIDEO, SendAs.AUDIO, SendAs.VOICE, SendAs.ANIMATION, SendAs.DOCUMENT}),
    ),
    text_with_files=True,
    comment_chars=3_000,
)


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
    Capabilities(thing=Capability.REACTION, comes=YES, goes="yes, as the agent decides"),
    Capabilities(thing=Capability.TYPING, goes="in threads, with what the agent is at"),
    Capabilities(thing=Capability.HISTORY, comes="yes, one call for a channel or a thread"),
    Capabilities(thing=Capability.OTHER, comes="told as unsupported, with what it was: joins, topics, pins, huddles"),
)


def manifest(*, name: str = "belino") -> str:
    """The manifest for Socket Mode, as YAML."""
    scopes = "\n".join(f"      - {scope}" for scope in SCOPES)
    events = "\n".join(f"      - {event}" for event in EVENTS)
    return f"""display_information:
  name: {name}
features:
  app_home:
    home_tab_enabled: false
    messages_tab_enabled: true
    messages_tab_read_only_enabled: false
  bot_user:
    display_name: {name}
    always_online: true
  slash_commands:
    - command: /belino
      description: Give a command, such as status, or ask
      usage_hint: "help"
      should_escape: true
oauth_config:
  scopes:
    bot:
{scopes}
settings:
  event_subscriptions:
    bot_events:
{events}
  interactivity:
    is_enabled: true
  org_deploy_enabled: false
  socket_mode_enabled: true
  token_rotation_enabled: false
"""

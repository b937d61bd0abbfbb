"""Emoji of reactions, as characters and by their short names: some platforms take the one, some the other."""

from collections.abc import Mapping

# The names of the usual emoji data: https://github.com/iamcal/emoji-data
CHARACTERS: Mapping[str, str] = {
    "+1": "👍", "thumbsup": "👍", "-1": "👎", "thumbsdown": "👎", "heart": "❤", "fire": "🔥", "clap": "👏",
    "eyes": "👀", "white_check_mark": "✅", "heavy_check_mark": "✔", "warning": "⚠", "x": "❌", "question": "❓",
    "exclamation": "❗", "hourglass_flowing_sand": "⏳", "hourglass": "⌛", "tada": "🎉", "rocket": "🚀", "pray": "🙏",
    "ok_hand": "👌", "wave": "👋", "raised_hands": "🙌", "muscle": "💪", "handshake": "🤝", "writing_hand": "✍",
    "smile": "😄", "grin": "😁", "joy": "😂", "rolling_on_the_floor_laughing": "🤣", "wink": "😉", "blush": "😊",
    "smiling_face_with_3_hearts": "🥰", "heart_eyes": "😍", "star-struck": "🤩", "sunglasses": "😎",
    "hugging_face": "🤗", "thinking_face": "🤔", "face_with_raised_eyebrow": "🤨", "neutral_face": "😐", "cry": "😢",
    "sob": "😭", "scream": "😱", "exploding_head": "🤯", "rage": "😡", "sleeping": "😴", "yawning_face": "🥱",
    "innocent": "😇", "saluting_face": "🫡", "shrug": "🤷", "see_no_evil": "🙈", "100": "💯",
    "zap": "⚡", "trophy": "🏆", "star": "⭐",
    "sparkles": "✨", "bulb": "💡", "memo": "📝", "pushpin": "📌", "calendar": "📅", "lock": "🔒", "bug": "🐛",
    "mag": "🔍", "coffee": "☕", "bell": "🔔", "speech_balloon": "💬", "broken_heart": "💔", "ghost": "👻",
    "unicorn_face": "🦄", "cool": "🆒", "stop_sign": "🛑", "construction": "🚧", "repeat": "🔁",
    "arrows_counterclockwise": "🔄", "red_circle": "🔴", "large_green_circle": "🟢", "large_yellow_circle": "🟡",
    "point_up": "☝", "point_right": "👉", "point_down": "👇", "one": "1⃣", "two": "2⃣", "three": "3⃣",
}  # fmt: skip
_NAMES: Mapping[str, str] = {character: name for name, character in reversed(tuple(CHARACTERS.items()))}
_AS_PICTURE = "\N{VARIATION SELECTOR-16}"


def emoji_character(emoji: str) -> str:
    """An emoji as a character, without the mark that it is a picture; a name that is not known stays."""
    known = CHARACTERS.get(emoji.strip(":").lower())
    return known or emoji.replace(_AS_PICTURE, "")


def emoji_name(emoji: str) -> str | None:
    """The short name of an emoji, without colons; None for a character that has none here."""
    if (known := _NAMES.get(emoji.replace(_AS_PICTURE, ""))) is not None:
        return known
    name = emoji.strip(":").lower()
    return name if name and name.isascii() else None

"""The packing of RTF inside Outlook's messages (MS-OXRTFCP)."""

from belino.domain.document import Unread
from belino.media.document.parts import CannotRead

BYTES_AT_MOST = 20 * 1024 * 1024
_BEGIN = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n"
    b"\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""What every packed text may refer to, though it never held it."""
_WINDOW = 4096
_HEAD = 16


def unpacked(content: bytes) -> bytes:
    """The text; as much of it as is there."""
    kind = content[8:12]
    size = int.from_bytes(content[4:8], "little")
    if kind == b"MELA":
        return content[_HEAD : _HEAD + size]
    if kind != b"LZFu" or size > BYTES_AT_MOST:
        raise CannotRead(Unread.UNREADABLE, "the body of the message is broken")
    window = bytearray(_WINDOW)
    window[: len(_BEGIN)] = _BEGIN
    out, place, at = bytearray(), len(_BEGIN), _HEAD
    while at < len(content) and len(out) < size:
        control, at = content[at], at + 1
        for bit in range(8):
            if at >= len(content):
                break
            if not control >> bit & 1:
                piece, at = content[at : at + 1], at + 1
            else:
                token, at = int.from_bytes(content[at : at + 2]), at + 2
                begin = token >> 4
                if begin == place:
                    return bytes(out[:size])
                piece = _repeated(window, begin, (token & 0xF) + 2, place)
            for byte in piece:
                window[place] = byte
                place = (place + 1) % _WINDOW
            out += piece
    return bytes(out[:size])


def _repeated(window: bytearray, begin: int, length: int, place: int) -> bytes:
    """What stands in the window; a piece may go on into what it has just written itself."""
    before = (place - begin) % _WINDOW or _WINDOW
    first = bytes(window[(begin + step) % _WINDOW] for step in range(min(length, before)))
    return (first * (length // len(first) + 1))[:length]

"""JPEG XL: the size of a picture from its first bytes, before its library decodes all of it."""

_CODESTREAM = b"\xff\x0a"
_CONTAINER = b"\0\0\0\x0cJXL \r\n\x87\n"
_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
_WIDTHS = (9, 13, 18, 30)
BOXES_AT_MOST = 64


def jpeg_xl_size(head: bytes) -> tuple[int, int] | None:
    """Width and height; None if the beginning is damaged."""
    stream = _codestream(head)
    if not stream.startswith(_CODESTREAM) or len(stream) < 12:
        return None
    bits = _Bits(stream[2:12])
    small = bits.take(1)
    height = _side(bits, small=small)
    ratio = bits.take(3)
    if not ratio:
        return _side(bits, small=small), height
    across, down = _RATIOS[ratio - 1]
    return height * across // down, height


def _side(bits: "_Bits", *, small: int) -> int:
    return 8 * (bits.take(5) + 1) if small else bits.take(_WIDTHS[bits.take(2)]) + 1


def _codestream(head: bytes) -> bytes:
    """The picture itself, which a container may hold in a box, also in several."""
    if not head.startswith(_CONTAINER):
        return head
    at = 0
    for _ in range(BOXES_AT_MOST):
        size, name, begin = int.from_bytes(head[at : at + 4]), head[at + 4 : at + 8], at + 8
        if size == 1:
            size, begin = int.from_bytes(head[at + 8 : at + 16]), at + 16
        if name == b"jxlc":
            return head[begin:]
        if name == b"jxlp":
            return head[begin + 4 :]
        if size < 8:
            break
        at += size
    return b""


class _Bits:
    """Bits of a stream, lowest first."""

    def __init__(self, content: bytes) -> None:
        self._left = int.from_bytes(content, "little")

    def take(self, count: int) -> int:
        taken = self._left & (1 << count) - 1
        self._left >>= count
        return taken

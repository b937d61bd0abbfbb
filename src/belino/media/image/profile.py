"""Profile: whether a colour profile is sRGB, which is the default anyway."""

import math
import struct
from collections.abc import Iterator

_COLOURS = {
    b"rXYZ": (0.4361, 0.2225, 0.0139),
    b"gXYZ": (0.3851, 0.7169, 0.0971),
    b"bXYZ": (0.1431, 0.0606, 0.7141),
}
_CURVES = (b"rTRC", b"gTRC", b"bTRC")
_TABLES = frozenset({b"A2B0", b"D2B0"})
"""A profile with one of these tables is never taken for sRGB, whatever else it holds."""
_CURVE = {0.25: 0.0509, 0.5: 0.2140, 0.75: 0.5225}
"""Linear light at these sRGB values."""
SAME = 0.01
TAGS_AT_MOST = 100


def is_srgb(profile: bytes) -> bool:
    """Most profiles are sRGB, and applying one is the most expensive step; a name proves nothing."""
    tags = dict(_tags(profile))
    if profile[16:20] != b"RGB " or tags.keys() & _TABLES:
        return False
    try:
        told = [part for tag in _COLOURS for part in _fractions(tags[tag], 3, at=8)]
        told += [_light(tags[tag], number) for tag in _CURVES for number in _CURVE]
    except (KeyError, ArithmeticError, struct.error):
        return False
    usual = [*(part for colour in _COLOURS.values() for part in colour), *[*_CURVE.values()] * len(_CURVES)]
    return all(math.isclose(part, other, abs_tol=SAME) for part, other in zip(told, usual, strict=True))


def _tags(profile: bytes) -> Iterator[tuple[bytes, bytes]]:
    for at in range(132, 132 + 12 * min(int.from_bytes(profile[128:132]), TAGS_AT_MOST), 12):
        begin, size = int.from_bytes(profile[at + 4 : at + 8]), int.from_bytes(profile[at + 8 : at + 12])
        yield profile[at : at + 4], profile[begin : begin + size]


def _light(curve: bytes, number: float) -> float:
    """Linear light at a value between 0 and 1; 0 for curve types that sRGB does not use."""
    match curve[:4], int.from_bytes(curve[8:10]):
        case b"para", 0:
            return math.pow(number, *_fractions(curve, 1))
        case b"para", 3:
            power, steep, offset, slope, bend = _fractions(curve, 5)
            return math.pow(max(steep * number + offset, 0.0), power) if number >= bend else slope * number
        case b"curv", _:
            return _looked_up(curve, number)
    return 0.0


def _fractions(tag: bytes, count: int, at: int = 12) -> list[float]:
    return [part / 65536 for part in struct.unpack_from(f">{count}i", tag, at)]


def _looked_up(curve: bytes, number: float) -> float:
    count = int.from_bytes(curve[8:12])
    if count < 2:
        return math.pow(number, int.from_bytes(curve[12:14]) / 256 if count else 1)
    place = number * (count - 1)
    left, right = struct.unpack_from(">2H", curve, 12 + 2 * int(place))
    return float(left + (right - left) * (place % 1)) / 65535

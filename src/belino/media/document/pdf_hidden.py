"""What of a PDF page's text nobody would see: drawn invisibly, white on white, tiny, or beside the page."""

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from belino.media.document import pdfium

TINY_POINTS = 1.5
WHITE = 250
DEPTH_AT_MOST = 6
LOOKS_AT_MOST = 1_000_000
"""Behind so many things on a page it is looked whether white text stands before them; then it is marked unseen."""

_Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""


@dataclass(slots=True)
class Scene:
    """What a page shows, as far as it matters for what it hides."""

    unseen: set[int] = field(default_factory=set)
    """Text that is not seen, by its address."""
    pictured: bool = False
    recognised: bool = False
    """All text lies unseen over pictures: the page was scanned, and its text recognised."""
    seen: bool = False
    looks: int = LOOKS_AT_MOST
    invisible: set[int] = field(default_factory=set)


def scene_of(page: int) -> Scene:
    """Look at everything on a page."""
    library = pdfium.load()
    box = pdfium.Box()
    library.FPDF_GetPageBoundingBox(page, ctypes.byref(box))
    scene = Scene()
    count = library.FPDFPage_CountObjects(page)
    things = (library.FPDFPage_GetObject(page, at) for at in range(count))
    _look(scene, things, (box.left, box.bottom, box.right, box.top), covered=False, depth=0)
    scene.recognised = scene.pictured and not scene.seen and bool(scene.invisible)
    if scene.recognised:
        scene.unseen -= scene.invisible
    return scene


def _look(scene: Scene, things: Iterator[int], edges: _Bounds | None, *, covered: bool, depth: int) -> None:
    """Things in the order in which they are drawn; `edges` only where places are those of the page."""
    library = pdfium.load()
    painted: list[_Bounds] = []
    for thing in things:
        kind = library.FPDFPageObj_GetType(thing)
        if kind == pdfium.TEXT:
            _judge(scene, thing, edges, covered=covered, painted=painted)
        elif kind == pdfium.FORM and depth < DEPTH_AT_MOST:
            inside = range(library.FPDFFormObj_CountObjects(thing))
            bounds = _bounds(thing)
            behind = covered or _before(scene, bounds, painted)
            _look(scene, _inside(thing, inside), None, covered=behind, depth=depth + 1)
            painted.append(bounds)
        else:
            scene.pictured = scene.pictured or kind == pdfium.IMAGE
            if kind != pdfium.PATH or _coloured(thing):
                painted.append(_bounds(thing))


def _inside(form: int, numbers: range) -> Iterator[int]:
    get: Callable[[int, int], int] = pdfium.load().FPDFFormObj_GetObject
    return (get(form, number) for number in numbers)


def _judge(scene: Scene, text: int, edges: _Bounds | None, *, covered: bool, painted: list[_Bounds]) -> None:
    library = pdfium.load()
    if library.FPDFTextObj_GetTextRenderMode(text) == pdfium.INVISIBLE:
        scene.invisible.add(text)
        scene.unseen.add(text)
        return
    white, clear = _colour(text)
    bounds = _bounds(text)
    if (
        clear
        or (edges is not None and (_beside(bounds, edges) or _points(text) < TINY_POINTS))
        or (white and not covered and not _before(scene, bounds, painted))
    ):
        scene.unseen.add(text)
    else:
        scene.seen = True


def _before(scene: Scene, bounds: _Bounds, painted: list[_Bounds]) -> bool:
    """Whether something was painted where this stands."""
    scene.looks -= len(painted)
    return scene.looks >= 0 and any(_holds(each, bounds) for each in painted)


def _colour(thing: int) -> tuple[bool, bool]:
    """Whether it is painted in white, and whether it is painted with nothing at all."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not pdfium.load().FPDFPageObj_GetFillColor(
        thing, ctypes.byref(red), ctypes.byref(green), ctypes.byref(blue), ctypes.byref(alpha)
    ):
        return False, False
    return min(red.value, green.value, blue.value) >= WHITE, alpha.value == 0


def _coloured(path: int) -> bool:
    """Whether a path fills what it surrounds with anything but white."""
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.load().FPDFPath_GetDrawMode(path, ctypes.byref(mode), ctypes.byref(stroke))
    white, clear = _colour(path)
    return mode.value != 0 and not white and not clear


def _points(text: int) -> float:
    """How large letters are on the page, whatever the font and the stretching say each."""
    size, shape = ctypes.c_float(), pdfium.Transform()
    library = pdfium.load()
    if not library.FPDFTextObj_GetFontSize(text, ctypes.byref(size)):
        return TINY_POINTS
    library.FPDFPageObj_GetMatrix(text, ctypes.byref(shape))
    return abs(size.value) * math.hypot(shape.c, shape.d)


def _bounds(thing: int) -> _Bounds:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.load().FPDFPageObj_GetBounds(
        thing, ctypes.byref(left), ctypes.byref(bottom), ctypes.byref(right), ctypes.byref(top)
    )
    return left.value, bottom.value, right.value, top.value


def _holds(outer: _Bounds, inner: _Bounds) -> bool:
    """Whether the middle of one lies in the other."""
    across, up = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] <= across <= outer[2] and outer[1] <= up <= outer[3]


def _beside(bounds: _Bounds, edges: _Bounds) -> bool:
    if bounds[2] <= bounds[0] or edges[2] <= edges[0]:
        return False  # of spaces, or on a page whose own edges are nonsense
    return bounds[2] < edges[0] or bounds[0] > edges[2] or bounds[3] < edges[1] or bounds[1] > edges[3]

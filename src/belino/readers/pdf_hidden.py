"""Hidden text of a PDF page: invisible, tiny, beside the page, painted over or in the colour of its background."""

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from belino.readers import pdfium

TINY_POINTS = 1.5
ALIKE = 5
HAIR = 1.0
BOX_SEGMENTS = 5
DOUBTFUL_SIDE = 1_000
CONTRAST = 32
DEPTH_AT_MOST = 6
LOOKS_AT_MOST = 1_000_000
"""Comparisons per page between objects and those above and below them; after that, all count as on paper."""

_Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""
_Colour = tuple[int, int, int]
_PAPER: _Colour = (255, 255, 255)


@dataclass(slots=True)
class Scene:
    """What a page shows, as far as it is needed to find hidden text."""

    unseen: set[int] = field(default_factory=set)
    """Hidden text objects, by address."""
    pictured: bool = False
    covered: float = 0.0
    """The share of the page that pictures cover."""
    shapes: int = 0
    """Filled shapes: letters may be drawn as such."""
    recognised: bool = False
    """All text is invisible over pictures: the page was scanned, and its text recognised."""
    looks: int = LOOKS_AT_MOST
    invisible: set[int] = field(default_factory=set)
    seen: dict[int, _Bounds] = field(default_factory=dict)
    doubtful: dict[int, _Bounds] = field(default_factory=dict)
    """White text on what PDFium reports as white, which may be a pattern of any colours."""


@dataclass(slots=True)
class _Layer:
    """Objects painted one after the other, in the same coordinate system."""

    edges: _Bounds | None
    """The edges of the page, if the coordinates are those of the page."""
    covered: bool = False
    """Whether its background is something else than paper."""
    painted: list[tuple[_Bounds, _Colour | None]] = field(default_factory=list)
    """Bounds and colour; None if it is not one colour, or not a box."""
    texts: dict[int, _Bounds] = field(default_factory=dict)
    """Visible text so far."""


def scene_of(page: int) -> Scene:
    """Examine all objects of a page."""
    library = pdfium.load()
    box = pdfium.Box()
    library.FPDF_GetPageBoundingBox(page, ctypes.byref(box))
    scene = Scene()
    count = library.FPDFPage_CountObjects(page)
    things = (library.FPDFPage_GetObject(page, at) for at in range(count))
    _look(scene, things, _Layer((box.left, box.bottom, box.right, box.top)), depth=0)
    if scene.doubtful:
        _look_again(scene, page)
    scene.recognised = scene.pictured and not scene.seen and bool(scene.invisible)
    if scene.recognised:
        scene.unseen -= scene.invisible
    return scene


def _look(scene: Scene, things: Iterator[int], layer: _Layer, *, depth: int) -> None:
    """Examine objects in the order in which they are drawn."""
    library = pdfium.load()
    for thing in things:
        kind = library.FPDFPageObj_GetType(thing)
        if kind == pdfium.TEXT:
            _judge(scene, thing, layer)
        elif kind == pdfium.FORM and depth < DEPTH_AT_MOST:
            inside = range(library.FPDFFormObj_CountObjects(thing))
            bounds = _bounds(thing)
            covered = layer.covered or _ground(scene, layer, bounds)[0] != _PAPER
            before, scene.pictured = scene.pictured, False
            _look(scene, _inside(thing, inside), _Layer(None, covered=covered), depth=depth + 1)
            scene.covered += _share(bounds, layer.edges) if scene.pictured else 0.0
            scene.pictured = scene.pictured or before
            layer.painted.append((bounds, None))
        elif kind == pdfium.PATH:
            _paint(scene, thing, layer)
        else:
            bounds = _bounds(thing)
            scene.pictured = scene.pictured or kind == pdfium.IMAGE
            scene.covered += _share(bounds, layer.edges) if kind == pdfium.IMAGE else 0.0
            layer.painted.append((bounds, None))
    scene.seen |= layer.texts


def _paint(scene: Scene, path: int, layer: _Layer) -> None:
    """Add a path, which may be the background of later objects, and may cover earlier ones."""
    colour = _filled(path)
    if colour is None:
        return
    scene.shapes += 1
    bounds = _bounds(path)
    # Most filled paths are lines or dots, which cover nothing.
    box = min(bounds[2] - bounds[0], bounds[3] - bounds[1]) >= TINY_POINTS and _is_box(path)
    layer.painted.append((bounds, colour if box or colour == _PAPER else None))
    scene.looks -= len(layer.texts) if box else 0
    if box and scene.looks >= 0:
        for text in [text for text, place in layer.texts.items() if _covers(bounds, place)]:
            del layer.texts[text]
            scene.unseen.add(text)


def _inside(form: int, numbers: range) -> Iterator[int]:
    get: Callable[[int, int], int] = pdfium.load().FPDFFormObj_GetObject
    return (get(form, number) for number in numbers)


def _judge(scene: Scene, text: int, layer: _Layer) -> None:
    mode = pdfium.load().FPDFTextObj_GetTextRenderMode(text)
    if mode == pdfium.INVISIBLE:
        scene.invisible.add(text)
        scene.unseen.add(text)
        return
    bounds, colours = _bounds(text), _colours(text, mode)
    tiny = layer.edges is not None and (_beside(bounds, layer.edges) or _points(text) < TINY_POINTS)
    ground, doubtful = (None, False) if tiny or not colours else _ground(scene, layer, bounds)
    if not tiny and colours and (ground is None or not all(_alike(colour, ground) for colour in colours)):
        layer.texts[text] = bounds
        return
    scene.unseen.add(text)
    if doubtful and layer.edges is not None:
        scene.doubtful[text] = bounds


def _ground(scene: Scene, layer: _Layer, bounds: _Bounds) -> tuple[_Colour | None, bool]:
    """The colour under an object, None if there are several; and whether its white may be a pattern."""
    scene.looks -= len(layer.painted)
    doubtful = False
    for place, colour in reversed(layer.painted) if scene.looks >= 0 else ():
        if not _holds(place, bounds):
            continue
        if colour != _PAPER:
            return (colour if _covers(place, bounds) else None), False
        doubtful = True
    return (None if layer.covered else _PAPER), doubtful


def _look_again(scene: Scene, page: int) -> None:
    """Render the page, and check whether there is more than one colour where the doubtful text is."""
    library = pdfium.load()
    width, height = library.FPDF_GetPageWidthF(page), library.FPDF_GetPageHeightF(page)
    if not (width > 0 and height > 0):
        return
    scale = DOUBTFUL_SIDE / max(width, height)
    across, down = max(1, int(width * scale)), max(1, int(height * scale))
    pixels = pdfium.drawn(page, across, down)
    for text, bounds in scene.doubtful.items():
        corners = [_pixel(page, across, down, bounds[at], bounds[at + 1]) for at in (0, 2)]
        (left, right), (top, bottom) = (sorted(each) for each in zip(*corners, strict=True))
        rows = (pixels[3 * (y * across + left) : 3 * (y * across + right + 1)] for y in range(top, bottom + 1))
        some = b"".join(rows)
        if some and max(some) - min(some) > CONTRAST:
            scene.unseen.discard(text)
            scene.seen[text] = bounds


def _pixel(page: int, across: int, down: int, x: float, y: float) -> tuple[int, int]:
    column, row = ctypes.c_int(), ctypes.c_int()
    pdfium.load().FPDF_PageToDevice(page, 0, 0, across, down, 0, x, y, ctypes.byref(column), ctypes.byref(row))
    return min(max(column.value, 0), across - 1), min(max(row.value, 0), down - 1)


def _colours(text: int, mode: int) -> list[_Colour]:
    """The fill and outline colours of text; empty if both are transparent."""
    library = pdfium.load()
    inside = None if mode in pdfium.ONLY_OUTLINES else _colour(library.FPDFPageObj_GetFillColor, text)
    outline = _colour(library.FPDFPageObj_GetStrokeColor, text) if mode in pdfium.OUTLINES else None
    return [colour for colour in (inside, outline) if colour is not None]


def _colour(get: pdfium.Function, thing: int) -> _Colour | None:
    """Red, green and blue; None if it is transparent."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not get(thing, ctypes.byref(red), ctypes.byref(green), ctypes.byref(blue), ctypes.byref(alpha)):
        return 0, 0, 0
    return (red.value, green.value, blue.value) if alpha.value else None


def _alike(one: _Colour, other: _Colour) -> bool:
    return all(abs(first - second) <= ALIKE for first, second in zip(one, other, strict=True))


def _filled(path: int) -> _Colour | None:
    """The fill colour of a path."""
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.load().FPDFPath_GetDrawMode(path, ctypes.byref(mode), ctypes.byref(stroke))
    return _colour(pdfium.load().FPDFPageObj_GetFillColor, path) if mode.value else None


def _is_box(path: int) -> bool:
    """Whether a path is a rectangle that is opaque and not clipped."""
    library = pdfium.load()
    clip = library.FPDFPageObj_GetClipPath(path)
    return (
        library.FPDFPath_CountSegments(path) == BOX_SEGMENTS
        and not library.FPDFPageObj_HasTransparency(path)
        and (not clip or library.FPDFClipPath_CountPaths(clip) <= 0)
    )


def _points(text: int) -> float:
    """The size of text on the page: the font size times its scaling."""
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
    """Whether the centre of one is inside the other."""
    across, up = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] <= across <= outer[2] and outer[1] <= up <= outer[3]


def _covers(outer: _Bounds, inner: _Bounds) -> bool:
    """Whether one covers the other, with a small tolerance."""
    return (
        outer[0] <= inner[0] + HAIR and outer[1] <= inner[1] + HAIR
        and outer[2] >= inner[2] - HAIR and outer[3] >= inner[3] - HAIR
    )  # fmt: skip


def _share(bounds: _Bounds, edges: _Bounds | None) -> float:
    """The share of the page that something covers; 0 if its place on the page is not known."""
    if edges is None or edges[2] <= edges[0] or edges[3] <= edges[1]:
        return 0.0
    across = min(bounds[2], edges[2]) - max(bounds[0], edges[0])
    up = min(bounds[3], edges[3]) - max(bounds[1], edges[1])
    return max(0.0, across) * max(0.0, up) / ((edges[2] - edges[0]) * (edges[3] - edges[1]))


def _beside(bounds: _Bounds, edges: _Bounds) -> bool:
    if bounds[2] <= bounds[0] or edges[2] <= edges[0]:
        return False  # of spaces, or on a page with invalid edges
    return bounds[2] < edges[0] or bounds[0] > edges[2] or bounds[3] < edges[1] or bounds[1] > edges[3]

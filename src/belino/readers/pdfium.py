"""The few functions of PDFium that we call; the whole binding would take 11 MB of every prepared parent."""

import ctypes
from ctypes import c_char_p, c_double, c_float, c_int, c_size_t, c_uint, c_ulong, c_ushort, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

WRONG_PASSWORD = 4
TEXT, PATH, IMAGE, SHADING, FORM = 1, 2, 3, 4, 5
"""Kinds of page objects."""
INVISIBLE = 3
"""The text mode that draws nothing."""
OUTLINES = frozenset({1, 2, 5, 6})
ONLY_OUTLINES = frozenset({1, 5})
WIDGET, FREE_TEXT, STAMP = 20, 3, 13
NOTES = frozenset({1, 9, 10, 11, 12})
"""Annotations that carry a comment: notes, and marks on the text."""
ANNOTATION_HIDDEN = 0x2 | 0x20
"""Not shown at all, or not on a screen."""
RGB, DRAW_ANNOTATIONS, RGB_ORDER = 2, 0x01, 0x10


class Box(ctypes.Structure):
    """A rectangle on a page; y grows upwards."""

    left: float
    top: float
    right: float
    bottom: float
    _fields_ = (("left", c_float), ("top", c_float), ("right", c_float), ("bottom", c_float))


class Size(ctypes.Structure):
    """Of a page, in points."""

    width: float
    height: float
    _fields_ = (("width", c_float), ("height", c_float))


class Transform(ctypes.Structure):
    """The transformation matrix of an object."""

    c: float
    d: float
    _fields_ = tuple((name, c_float) for name in "abcdef")


class Function(Protocol):
    """A function of the library."""

    def __call__(self, *arguments: object) -> Any: ...


_P, _FLOATS, _UINTS, _INTS = c_void_p, ctypes.POINTER(c_float), ctypes.POINTER(c_uint), ctypes.POINTER(c_int)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "FPDF_LoadMemDocument64": (_P, (_P, c_size_t, c_char_p)),
    "FPDF_GetLastError": (c_ulong, ()),
    "FPDF_GetPageCount": (c_int, (_P,)),
    "FPDF_LoadPage": (_P, (_P, c_int)),
    "FPDF_ClosePage": (None, (_P,)),
    "FPDF_GetPageBoundingBox": (c_int, (_P, ctypes.POINTER(Box))),
    "FPDF_GetPageWidthF": (c_float, (_P,)),
    "FPDF_GetPageHeightF": (c_float, (_P,)),
    "FPDF_PageToDevice": (c_int, (_P, c_int, c_int, c_int, c_int, c_int, c_double, c_double, _INTS, _INTS)),
    "FPDF_GetPageSizeByIndexF": (c_int, (_P, c_int, ctypes.POINTER(Size))),
    "FPDFText_LoadPage": (_P, (_P,)),
    "FPDFText_ClosePage": (None, (_P,)),
    "FPDFText_CountChars": (c_int, (_P,)),
    "FPDFText_GetText": (c_int, (_P, c_int, c_int, ctypes.POINTER(c_ushort))),
    "FPDFText_GetUnicode": (c_uint, (_P, c_int)),
    "FPDFText_GetTextObject": (_P, (_P, c_int)),
    "FPDFText_HasUnicodeMapError": (c_int, (_P, c_int)),
    "FPDFTextObj_GetTextRenderMode": (c_int, (_P,)),
    "FPDFTextObj_GetFontSize": (c_int, (_P, _FLOATS)),
    "FPDFPageObj_GetMatrix": (c_int, (_P, ctypes.POINTER(Transform))),
    "FPDFPage_CountObjects": (c_int, (_P,)),
    "FPDFPage_GetObject": (_P, (_P, c_int)),
    "FPDFFormObj_CountObjects": (c_int, (_P,)),
    "FPDFFormObj_GetObject": (_P, (_P, c_ulong)),
    "FPDFPageObj_GetType": (c_int, (_P,)),
    "FPDFPageObj_GetFillColor": (c_int, (_P, _UINTS, _UINTS, _UINTS, _UINTS)),
    "FPDFPageObj_GetStrokeColor": (c_int, (_P, _UINTS, _UINTS, _UINTS, _UINTS)),
    "FPDFPageObj_HasTransparency": (c_int, (_P,)),
    "FPDFPageObj_GetClipPath": (_P, (_P,)),
    "FPDFClipPath_CountPaths": (c_int, (_P,)),
    "FPDFPath_CountSegments": (c_int, (_P,)),
    "FPDFPageObj_GetBounds": (c_int, (_P, _FLOATS, _FLOATS, _FLOATS, _FLOATS)),
    "FPDFPath_GetDrawMode": (c_int, (_P, ctypes.POINTER(c_int), ctypes.POINTER(c_int))),
    "FPDFPage_GetAnnotCount": (c_int, (_P,)),
    "FPDFPage_GetAnnot": (_P, (_P, c_int)),
    "FPDFPage_CloseAnnot": (None, (_P,)),
    "FPDFAnnot_GetSubtype": (c_int, (_P,)),
    "FPDFAnnot_GetFlags": (c_int, (_P,)),
    "FPDFAnnot_GetStringValue": (c_ulong, (_P, c_char_p, _P, c_ulong)),
    "FPDFPage_Flatten": (c_int, (_P, c_int)),
    "FPDFDoc_GetAttachmentCount": (c_int, (_P,)),
    "FPDFDoc_GetAttachment": (_P, (_P, c_int)),
    "FPDFAttachment_GetName": (c_ulong, (_P, _P, c_ulong)),
    "FPDFBookmark_GetFirstChild": (_P, (_P, _P)),
    "FPDFBookmark_GetNextSibling": (_P, (_P, _P)),
    "FPDFBookmark_GetTitle": (c_ulong, (_P, _P, c_ulong)),
    "FPDFBookmark_GetDest": (_P, (_P, _P)),
    "FPDFDest_GetDestPageIndex": (c_int, (_P, _P)),
    "FPDFBitmap_CreateEx": (_P, (c_int, c_int, c_int, _P, c_int)),
    "FPDFBitmap_FillRect": (c_int, (_P, c_int, c_int, c_int, c_int, c_ulong)),
    "FPDFBitmap_Destroy": (None, (_P,)),
    "FPDF_RenderPageBitmap": (None, (_P, _P, c_int, c_int, c_int, c_int, c_int, c_int)),
}  # fmt: skip


@cache
def load() -> ctypes.CDLL:
    """The library bundled with pypdfium2, initialized."""
    found = find_spec("pypdfium2_raw")
    folders = (found.submodule_search_locations if found is not None else None) or ()
    paths = [path for folder in folders for path in Path(folder).glob("*pdfium.*") if path.suffix != ".py"]
    if not paths:
        raise ImportError("there is no PDFium; install pypdfium2")
    library = ctypes.CDLL(str(paths[0]))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.FPDF_InitLibrary()
    return library


def drawn(page: int, width: int, height: int) -> bytearray:
    """A page rendered with its annotations, three bytes per pixel."""
    library = load()
    pixels = bytearray(width * height * 3)
    there = (ctypes.c_char * len(pixels)).from_buffer(pixels)
    bitmap = library.FPDFBitmap_CreateEx(width, height, RGB, there, width * 3)
    library.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
    library.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, DRAW_ANNOTATIONS | RGB_ORDER)
    library.FPDFBitmap_Destroy(bitmap)
    return pixels


def string(function: Function, *arguments: object) -> str:
    """The UTF-16 string that a function writes, after asking it for the length."""
    size = int(function(*arguments, None, 0))
    if not 2 < size <= 1_000_000:
        return ""
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, buffer, size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")

"""Office files are told inside zip and OLE however their writers order, spell or lock them."""

import io
import struct
import zipfile

import pytest

from belino.media.sniff import sniff
from belino.media.sniff.hints import SUFFIXES
from belino.testing.files import make_ole, make_zip

OLE = "application/x-ole-storage"


def _types(mime: str) -> dict[str, bytes | str]:
    return {"[Content_Types].xml": f'<Types><Override PartName="/a" ContentType="application/vnd.{mime}"/></Types>'}


def _ole(*streams: str, program: str = "") -> bytes:
    """A directory with these streams, written by the program with this number."""
    blank = make_ole("doc")
    root = bytearray(blank[512:640])
    root[80:96] = bytes.fromhex(program) if program else bytes(16)
    return blank[:512] + bytes(root) + b"".join(_stream(name) for name in streams)


def _stream(name: str) -> bytes:
    written = name.encode("utf-16-le")
    return written.ljust(64, b"\0") + struct.pack("<HB", len(written) + 2, 2) + bytes(61)


@pytest.mark.parametrize(
    ("stream", "suffix"),
    [("WORKBOOK", "xls"), ("BOOK", "xls"), ("worddocument", "doc"), ("1Table", "doc"), ("PP40", "ppt")],
)
def test_a_stream_is_known_in_any_case(stream: str, suffix: str) -> None:
    assert sniff(_ole(stream)).mime == SUFFIXES[suffix]


@pytest.mark.parametrize(
    ("program", "mime"),
    [
        ("108d81649b4fcf1186ea00aa00b929e8", SUFFIXES["ppt"]),
        ("0609020000000000c000000000000046", SUFFIXES["doc"]),
        ("84100c0000000000c000000000000046", SUFFIXES["msi"]),
        ("3a8fb774c8c8d111be1100c04fb6faf1", SUFFIXES["mpp"]),
    ],
)
def test_the_program_tells_where_the_telling_stream_is_further_off(program: str, mime: str) -> None:
    assert sniff(_ole("\x05SummaryInformation", "Current User", program=program)).mime == mime
    assert sniff(_ole("\x05SummaryInformation", "Current User")).mime == OLE


def test_a_letter_embedded_in_a_workbook_does_not_name_it() -> None:
    program = "2008020000000000c000000000000046"
    assert sniff(_ole("MBD0018D4CE", "WordDocument", "1Table", program=program)).mime == SUFFIXES["xls"]


@pytest.mark.parametrize("suffix", ["docx", "xlsb"])
def test_a_locked_office_file_is_taken_at_its_name(suffix: str) -> None:
    for streams in (("ENCRYPTEDPACKAGE",), ("WordDocument", "EncryptedPackage")):
        found = sniff(_ole(*streams), name=f"plan.{suffix}")
        assert (found.mime, found.exact, found.lies) == (SUFFIXES[suffix], False, "")


@pytest.mark.parametrize(
    ("main", "mime"),
    [
        ("ms-powerpoint.addin.macroEnabled.main+xml", SUFFIXES["ppam"]),
        ("ms-visio.drawing.macroEnabled.main+xml", "application/vnd.ms-visio.drawing.macroenabled.12"),
        ("ms-visio.stencil.main+xml", "application/vnd.ms-visio.stencil"),
        ("ms-package.xps-fixeddocumentsequence+xml", SUFFIXES["xps"]),
        ("openxmlformats-officedocument.themeManager+xml", SUFFIXES["thmx"]),
    ],
)
def test_the_list_of_types_names_rarer_kinds_too(main: str, mime: str) -> None:
    assert sniff(make_zip({**_types(main), "a": "<a/>"}), whole=True).mime == mime


def test_a_theme_is_no_presentation_though_it_has_one() -> None:
    themed = make_zip(
        {
            "[Content_Types].xml": "openxmlformats-officedocument.presentationml.presentation.main+xml "
            "openxmlformats-officedocument.themeManager+xml"
        }
    )
    assert sniff(themed, whole=True).mime == SUFFIXES["thmx"]


def test_the_slashes_of_windows_and_small_letters_are_understood() -> None:
    types = _types("openxmlformats-officedocument.spreadsheetml.sheet.main+xml")["[Content_Types].xml"]
    assert sniff(make_zip({"xl\\styles.xml": "x", "[content_types].xml": types})).mime == SUFFIXES["xlsx"]
    assert sniff(make_zip({"_rels\\.rels": "x", "xl\\workbook.xml": "x"})).mime == SUFFIXES["xlsx"]


def test_a_template_whose_types_are_further_on_is_taken_at_its_name() -> None:
    content = make_zip({"xl/worksheets/sheet1.xml": bytes(range(256)) * 40, "x": "x"}, packed=False)[:4096]
    assert sniff(content, name="plan.xlsx").mime == SUFFIXES["xlsx"]
    assert sniff(content, name="plan.xltx").mime == SUFFIXES["xltx"]
    assert sniff(content, name="plan.docx.zip").mime == "application/zip"


def test_the_name_tells_kin_apart_whose_types_are_further_on() -> None:
    book = make_zip({"_rels/.rels": "x", "xl/workbook.xml": "x", "z": bytes(range(256)) * 40}, packed=False)[:4096]
    assert sniff(book, name="plan.xlsm").mime == SUFFIXES["xlsm"]
    assert sniff(book, name="plan.docm").mime == SUFFIXES["xlsx"]
    app = make_zip({"META-INF/MANIFEST.MF": "x", "z": bytes(range(256)) * 40}, packed=False)[:4096]
    assert sniff(app, name="app.apk").mime == SUFFIXES["apk"]
    assert sniff(app, name="tool.jar").mime == SUFFIXES["jar"]


def test_the_type_an_archive_writes_down_counts_wherever_it_stands() -> None:
    odt = SUFFIXES["odt"]
    manifest = f'<m:file-entry m:media-type="{odt}" m:version="1.2" m:full-path="/"/>'
    for files in (
        {"content.xml": "<a/>", "mimetype": odt},
        {"content.xml": "<a/>", "META-INF/manifest.xml": manifest},
    ):
        assert sniff(make_zip(files), whole=True).mime == odt
    idml = {"mimetype": SUFFIXES["idml"], "META-INF/container.xml": "<a/>"}
    assert sniff(make_zip(idml), whole=True).mime == SUFFIXES["idml"]


def test_a_container_alone_makes_no_book() -> None:
    score = make_zip({"META-INF/container.xml": "<a/>", "score.xml": "<score-partwise/>"})
    assert sniff(score, whole=True).mime == "application/zip"
    assert sniff(score, name="song.mxl", whole=True).mime == SUFFIXES["mxl"]
    assert sniff(score, name="novel.epub", whole=True).mime == SUFFIXES["epub"]


def test_an_archive_streamed_into_another_without_packing_does_not_name_it() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    inner = Pipe()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/B.class", "x")
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0")
    outer = Pipe()
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("tool.jar", inner.getvalue())
    assert sniff(inner.getvalue(), whole=True).mime == SUFFIXES["jar"]
    assert sniff(outer.getvalue(), whole=True).mime == "application/zip"

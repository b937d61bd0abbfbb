"""Types that begin with bytes of their own, and what only looks like them."""

import struct

import pytest

from belino.media.sniff import sniff
from belino.media.sniff.hints import UNKNOWN

TRIANGLE = struct.pack("<12f", *[0.5] * 12) + b"\0\0"
STARTS = {
    "a.jng": ("image/x-jng", b"\x8bJNG\r\n\x1a\n"),
    "a.hdr": ("image/vnd.radiance", b"#?RGBE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\2\2\0\1"),
    "a.orf": ("image/x-olympus-orf", b"IIRS\x08\0\0\0"),
    "a.crw": ("image/x-canon-crw", b"II\x1a\0\0\0HEAPCCDR"),
    "a.wmf": ("image/wmf", b"\x01\0\x09\0\0\x03\x23\x01"),
    "a.ra": ("audio/x-pn-realaudio", b".ra\xfd\0\4"),
    "a.h264": ("video/h264", b"\0\0\0\x01\x67\x42"),
    "word2.doc": ("application/msword", b"\xdb\xa5\x2d\0\x31\x40"),
    "old.xls": ("application/vnd.ms-excel", b"\x09\x04\x06\0\0\0\x10\0"),
    "a.wpd": ("application/vnd.wordperfect", b"\xffWPC\x10\0"),
    "a.one": ("application/onenote", bytes.fromhex("e4525c7b8cd8a74daeb15378d02996d3")),
    "winmail.dat": ("application/vnd.ms-tnef", b"\x78\x9f\x3e\x22\x01\0"),
    "a.mdb": ("application/x-msaccess", b"\0\x01\0\0Standard Jet DB\0"),
    "a.dex": ("application/vnd.android.dex", b"dex\n041\0"),
    "a.dylib": ("application/x-mach-binary", b"\xca\xfe\xba\xbf\0\0\0\2"),
    "a.jks": ("application/x-java-keystore", b"\xfe\xed\xfe\xed\0\0\0\2"),
    "a.nc": ("application/x-netcdf", b"CDF\x01"),
    "a.mat": ("application/x-matlab-data", b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124)),
    "a.pcapng": ("application/x-pcapng", b"\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a"),
    "a.pyc": ("application/x-python-code", b"\xa7\r\r\n\0\0\0\0"),
    "a.torrent": ("application/x-bittorrent", b"d10:created by5:tool 4:infod6:lengthi5ee"),
    "a.pfb": ("application/x-font-type1", b"\x80\x01\x90\x01\0\0%!PS-AdobeFont-1.0: X\n"),
    "a.mo": ("application/x-gettext-translation", b"\xde\x12\x04\x95\0\0\0\0"),
    "a.ps": ("application/postscript", b"\x04%!PS-Adobe-3.0\n"),
    "a.lz4": ("application/x-lz4", b"\x02\x21\x4c\x18"),
    "a.zst": ("application/zstd", b"\x50\x2a\x4d\x18\x04\0\0\0\1\2\3\4\x28\xb5\x2f\xfd"),
    "a.iso": ("application/x-iso9660-image", bytes(32_769) + b"BEA01\x01"),
    "a.dib": ("image/bmp", struct.pack("<IiiHH", 40, 4, 4, 1, 24)),
    "os2.ico": ("image/x-os2-graphics", b"BA\x28\0\0\0\x78\0\0\0\0\0\0\0CI\x1a\0\0\0\x10\0\x10\0"),
    "a.stl": ("model/stl", b"a cube".ljust(80) + struct.pack("<I", 12) + 12 * TRIANGLE),
    "bare.cr2": ("image/x-canon-cr2", b"MM\0*\0\0\0\x08"),
    "late.pdf": ("application/pdf", b"% made by hand\r\n\r\n%PDF-1.\r\n\r\nobj\r\n<<>>\r\n"),
    "indented.pdf": ("application/pdf", b" %PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
def test_a_file_is_told_by_its_first_bytes(name: str) -> None:
    mime, head = STARTS[name]
    assert sniff(head + bytes(64), name=name).mime == mime


@pytest.mark.parametrize(
    "head",
    [
        b"\0\x01\0\0\0\0\0\x0c\0\x01\xdd\x64",
        b"\0\x01\0\0\0\x05\0\x07\0\0\0\x09",
        b"\0\0\x01\0\x02\0\0\0\0\0\x09\0\x07\0\x01\0\0\0\x64\0\0\0",
        bytes(34) + b"LP",
        bytes(range(256)) + b"\0ustar" + bytes(300),
    ],
    ids=["a cache of icons", "numbers like a font's", "numbers like an icon's", "two letters", "five letters"],
)
def test_what_shares_a_few_bytes_with_a_type_is_not_of_it(head: bytes) -> None:
    assert sniff(head + bytes(200)).mime == UNKNOWN


def test_a_pdf_after_a_page_of_a_server_is_a_pdf() -> None:
    pdf = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"
    page = b"<html><body>" + b"a warning " * 34 + b"</body></html>"
    assert sniff(page + pdf, whole=True).mime == "application/pdf"
    assert sniff(page * 3 + pdf, whole=True).mime != "application/pdf"
    about = b"<html><body>A file begins with %PDF-1.4\n1 0 obj\nand goes on.</body></html>"
    assert sniff(about, whole=True).mime == "text/html"

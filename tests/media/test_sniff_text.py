"""Kinds of text that their first line, their root or their name tells apart."""

import pytest

from belino.media.sniff import sniff

PATCH = """From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001
From: Ann <ann@example.org>
Date: Mon, 1 Jan 2024 00:00:00 +0000
Subject: [PATCH] Say hello

diff --git a/x b/x
"""
BAG = "Bag Attributes\n    localKeyID: 01\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
XHTML = '<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x">\n<html/>'


@pytest.mark.parametrize(
    ("text", "mime"),
    [
        (PATCH, "text/x-diff"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "text/x-diff"),
        ("1\n00:00:01,000 --> 00:00:02,500\nHello\n", "application/x-subrip"),
        ("[Script Info]\nScriptType: v4.00+\n", "text/x-ssa"),
        ("  0\r\nSECTION\r\n  2\r\nHEADER\r\n", "image/vnd.dxf"),
        ("999\nby hand\n0\nSECTION\n2\nENTITIES\n", "image/vnd.dxf"),
        ("#define a_width 16\n#define a_height 7\nstatic char a_bits[] = {\n", "image/x-xbitmap"),
        ("begin:vcard\nversion:2.1\nend:vcard\n", "text/vcard"),
        ("#![no_std]\nfn main() {}\n", "text/plain"),
        ("#!shell is how it begins\n", "text/plain"),
        ("#!/usr/bin/awk -f\n{ print }\n", "text/x-awk"),
        ("#! /usr/bin/env pwsh\nGet-Date\n", "text/x-powershell"),
        ("<?php\n// first\n?>\n<div>hello</div>\n", "text/x-php"),
        ("<button onclick='x()'>go</button>", "text/html"),
        ("<video src=x onerror=alert(1)></video>", "text/html"),
        ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nhello\n", "text/plain"),
        ("-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n", "application/x-pem-file"),
        ("N\x08NA\x08AM\x08ME\x08E\n       ls - list directory contents\n", "text/plain"),
    ],
)
def test_a_text_tells_its_kind(text: str, mime: str) -> None:
    assert sniff(text.encode(), whole=True).mime == mime


@pytest.mark.parametrize(
    ("text", "name", "mime"),
    [
        ("#![no_std]\nfn main() {}\n", "main.rs", "text/x-rust"),
        (PATCH, "0001-say-hello.patch", "text/x-diff"),
        ('<h1 align="center">belino</h1>\n<p>An assistant</p>\n\n## Start\n', "README.md", "text/markdown"),
        ("<Button>go</Button>\n", "go.jsx", "text/javascript"),
        ("<html>\n<?php echo 1; ?>\n</html>\n", "page.php", "text/x-php"),
        ("<my-app></my-app>\n<script src=x></script>\n", "page.html", "text/html"),
        (XHTML, "page.xhtml", "application/xhtml+xml"),
        (XHTML, "page.html", "text/html"),
        ("<html xmlns='http://www.w3.org/1999/xhtml'/>", "page.xhtml", "application/xhtml+xml"),
        ("<_/>", "a.xml", "application/xml"),
        ("\ufeff\ufeff<?xml version='1.0'?><doc/>", "a.xml", "application/xml"),
        (BAG, "me.pem", "application/x-x509-ca-cert"),
        ("<?xml version='1.0'?><package/>", "content.opf", "application/oebps-package+xml"),
        ("object A\n", "a.scala", "text/x-scala"),
        ('"only a string"\n', "a.json", "application/json"),
        ("42\n", "a.json", "application/json"),
        ('{"asset": {"version": "2.0"}}', "a.gltf", "model/gltf+json"),
        ("From: a@b.c\nDate: today\nSubject: fix\n\ndiff --git a/x b/x\n", "fix.patch", "text/x-diff"),
        ("MIME-Version: 1.0\nContent-Type: multipart/related\n\nA page\n", "page.mht", "message/rfc822"),
        ("List-ID: <x>\nFrom: a@b.c\nTo: d@e.f\nSubject: hi\n\nhello\n", "a.eml", "message/rfc822"),
    ],
)
def test_a_name_settles_what_the_text_leaves_open(text: str, name: str, mime: str) -> None:
    found = sniff(text.encode(), name=name, whole=True)
    assert (found.mime, found.lies) == (mime, "")


def test_a_drawing_whose_root_is_further_on_is_taken_at_its_name() -> None:
    text = b"<?xml version='1.0'?>\n<!-- " + b"made by hand " * 400
    assert sniff(text[:4096], name="logo.svg").mime == "image/svg+xml"
    assert sniff(text[:4096], name="feed.xml").mime == "application/xml"


@pytest.mark.parametrize("page", ["<script>alert(1)</script>", "<html><body onload=x>", "<iframe src=x></iframe>"])
@pytest.mark.parametrize("name", ["README.md", "app.jsx"])
def test_a_page_stays_a_page_under_the_name_of_a_text(page: str, name: str) -> None:
    assert sniff(page.encode(), name=name, whole=True).mime == "text/html"


MAIL = (
    "From ann@example.org Mon Jan  5 10:00:00 2026\nFrom: ann@example.org\nTo: b@example.org\nSubject: hi\n\nhello\n\n"
)


def test_a_mailbox_is_told_from_a_letter() -> None:
    assert sniff(MAIL.encode(), name="inbox.mbox", whole=True).mime == "application/mbox"
    assert sniff(2 * MAIL.encode(), whole=True).mime == "application/mbox"
    assert sniff(MAIL.encode(), whole=True).mime == "message/rfc822"
    assert sniff(b"From here on it is a story.\n\nFrom there too.\n", name="a.mbox", whole=True).mime == "text/plain"


def test_tags_in_a_text_do_not_make_it_xml() -> None:
    tags = b"<doctag><text>hello</text></doctag>"
    assert sniff(tags, name="page.doctags.txt", whole=True).mime == "text/plain"
    assert sniff(tags, whole=True).mime == "application/xml"
    assert sniff(b"<?xml version='1.0'?>" + tags, name="page.txt", whole=True).mime == "application/xml"


@pytest.mark.parametrize(
    ("page", "mime"),
    [
        ("<html><body>Hello</body></html>", "text/html"),
        ("\n<!DOCTYPE html><p>Hello", "text/html"),
        ('<?xml version="1.0"?><note>Hello</note>', "application/xml"),
    ],
)
def test_a_page_of_a_mainframe_is_a_page(page: str, mime: str) -> None:
    assert sniff(page.encode("cp037")).mime == mime

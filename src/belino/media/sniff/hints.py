"""Hints: the type that a name or declaration suggests, used only where the bytes are ambiguous."""

import re
from dataclasses import dataclass

UNKNOWN = "application/octet-stream"

Found = tuple[str, bool]
"""A type, and whether the bytes alone determined it."""

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_SUFFIX = re.compile(r"[a-z0-9+_-]{1,12}")

# One canonical name for each type, for all spellings of platforms, cameras and mail programs.
ALIASES = {
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/apng": "image/png",
    "image/x-ms-bmp": "image/bmp", "image/x-bmp": "image/bmp", "image/x-windows-bmp": "image/bmp",
    "image/tif": "image/tiff", "image/x-tiff": "image/tiff", "image/svg": "image/svg+xml",
    "image/x-icon": "image/vnd.microsoft.icon", "image/photoshop": "image/vnd.adobe.photoshop",
    "image/x-photoshop": "image/vnd.adobe.photoshop", "image/vnd.mpo": "image/jpeg", "image/mpo": "image/jpeg",
    "image/heic-sequence": "image/heic", "image/heif-sequence": "image/heif",
    "audio/mp3": "audio/mpeg", "audio/x-mp3": "audio/mpeg", "audio/mpeg3": "audio/mpeg", "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac", "audio/x-aac": "audio/aac", "audio/aacp": "audio/aac",
    "audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4", "audio/m4b": "audio/mp4", "audio/x-m4b": "audio/mp4",
    "audio/x-aiff": "audio/aiff", "audio/opus": "audio/ogg", "audio/vorbis": "audio/ogg",
    "application/ogg": "audio/ogg",
    "audio/x-midi": "audio/midi", "audio/mid": "audio/midi", "audio/3gp": "audio/3gpp",
    "video/x-matroska-3d": "video/x-matroska", "video/matroska": "video/x-matroska", "video/avi": "video/x-msvideo",
    "video/msvideo": "video/x-msvideo", "video/mov": "video/quicktime",
    "text/xml": "application/xml", "text/json": "application/json", "text/rtf": "application/rtf",
    "text/x-markdown": "text/markdown", "text/x-csv": "text/csv", "application/csv": "text/csv",
    "application/javascript": "text/javascript", "application/x-javascript": "text/javascript",
    "application/x-zip-compressed": "application/zip", "application/x-zip": "application/zip",
    "application/x-gzip": "application/gzip", "application/x-rar-compressed": "application/vnd.rar",
    "application/x-rar": "application/vnd.rar", "application/x-zstd": "application/zstd",
    "application/x-bzip": "application/x-bzip2", "application/bzip2": "application/x-bzip2",
    "application/x-sqlite3": "application/vnd.sqlite3", "application/x-pdf": "application/pdf",
    "application/x-msdownload": "application/vnd.microsoft.portable-executable",
    "application/x-dosexec": "application/vnd.microsoft.portable-executable",
    "application/x-yaml": "application/yaml", "text/yaml": "application/yaml", "text/x-yaml": "application/yaml",
    "application/x-toml": "application/toml", "text/x-toml": "application/toml", "text/x-sql": "application/sql",
    "application/x-sql": "application/sql", "text/x-vcard": "text/vcard", "text/x-vcalendar": "text/calendar",
    "text/comma-separated-values": "text/csv", "text/x-comma-separated-values": "text/csv", "text/x-log": "text/plain",
    "application/jsonl": "application/x-ndjson", "application/jsonlines": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson", "text/srt": "application/x-subrip",
    "text/x-srt": "application/x-subrip", "application/srt": "application/x-subrip", "text/x-patch": "text/x-diff",
    "application/x-sh": "text/x-shellscript", "text/x-sh": "text/x-shellscript",
    "application/x-shellscript": "text/x-shellscript", "text/x-script.python": "text/x-python",
    "application/x-python": "text/x-python", "text/x-python-script": "text/x-python", "text/php": "text/x-php",
    "application/x-php": "text/x-php", "application/x-httpd-php": "text/x-php", "application/x-perl": "text/x-perl",
    "application/typescript": "text/x-typescript", "text/typescript": "text/x-typescript",
    "application/x-tex": "text/x-tex", "application/x-latex": "text/x-tex", "text/x-c++src": "text/x-c++",
    "text/x-csrc": "text/x-c", "text/x-chdr": "text/x-c", "text/x-java-source": "text/x-java",
    "application/x-mbox": "application/mbox",
    "application/x-mimearchive": "message/rfc822", "multipart/related": "message/rfc822",
    "application/x-font-ttf": "font/ttf", "application/font-sfnt": "font/ttf", "font/sfnt": "font/ttf",
    "application/x-font-otf": "font/otf", "application/vnd.ms-opentype": "font/otf",
    "application/x-font-woff": "font/woff",
    "application/font-woff": "font/woff", "application/font-woff2": "font/woff2", "image/tga": "image/x-tga",
    "image/x-targa": "image/x-tga", "image/qoi": "image/x-qoi", "image/x-emf": "image/emf",
    "application/x-emf": "image/emf", "image/x-wmf": "image/wmf", "application/x-msmetafile": "image/wmf",
    "image/x-djvu": "image/vnd.djvu", "image/x-icns": "image/icns", "image/x-jxl": "image/jxl",
    "image/x-dds": "image/vnd.ms-dds", "image/x-eps": "application/postscript",
    "application/eps": "application/postscript",
    "audio/x-ac3": "audio/ac3", "audio/vnd.dolby.dd-raw": "audio/ac3", "audio/x-hx-aac-adts": "audio/aac",
    "audio/x-amr": "audio/amr", "audio/x-ogg": "audio/ogg", "audio/x-opus+ogg": "audio/ogg",
    "audio/x-vorbis+ogg": "audio/ogg", "audio/caf": "audio/x-caf", "video/x-mpeg": "video/mpeg",
    "video/mpg": "video/mpeg", "video/x-ogg": "video/ogg", "video/vnd.avi": "video/x-msvideo",
    "application/vnd.ms-asf": "video/x-ms-asf", "application/x-java-archive": "application/java-archive",
    "application/x-jar": "application/java-archive", "application/tar": "application/x-tar",
    "application/x-chrome-extension": "application/x-google-chrome-extension",
    "application/x-7z": "application/x-7z-compressed", "application/x-cd-image": "application/x-iso9660-image",
    "application/x-bytecode.python": "application/x-python-code", "application/x-executable": "application/x-elf",
    "application/x-sharedlib": "application/x-elf", "application/x-pie-executable": "application/x-elf",
    "application/x-object": "application/x-elf", "application/x-java-applet": "application/java-vm",
    "application/lzip": "application/x-lzip",
    "application/x-debian-package": "application/vnd.debian.binary-package",
    "application/x-deb": "application/vnd.debian.binary-package",
    "application/msaccess": "application/x-msaccess", "application/vnd.ms-access": "application/x-msaccess",
    "application/x-lzh": "application/x-lzh-compressed", "application/x-lha": "application/x-lzh-compressed",
    "application/vnd.fdf": "application/fdf", "image/x-dpx": "image/dpx", "image/vnd.zbrush.pcx": "image/x-pcx",
    "image/pcx": "image/x-pcx", "audio/mpegurl": "application/vnd.apple.mpegurl",
    "audio/x-mpegurl": "application/vnd.apple.mpegurl", "application/x-mpegurl": "application/vnd.apple.mpegurl",
    "application/x-bat": "text/x-msdos-batch", "application/bat": "text/x-msdos-batch",
    "binary/octet-stream": UNKNOWN, "application/binary": UNKNOWN, "application/unknown": UNKNOWN,
    "application/x-binary": UNKNOWN, "application/force-download": UNKNOWN, "application/download": UNKNOWN,
}  # fmt: skip

# Types that only a suffix can suggest, because their bytes are plain text.
TEXT_SUFFIXES = {
    "txt": "text/plain", "text": "text/plain", "log": "text/plain", "nfo": "text/plain", "asc": "text/plain",
    "md": "text/markdown", "markdown": "text/markdown", "mkd": "text/markdown", "csv": "text/csv",
    "tsv": "text/tab-separated-values", "tab": "text/tab-separated-values", "css": "text/css",
    "js": "text/javascript", "mjs": "text/javascript", "cjs": "text/javascript", "py": "text/x-python",
    "yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml", "ini": "text/plain",
    "cfg": "text/plain", "conf": "text/plain", "sql": "application/sql", "sh": "text/x-shellscript",
    "bash": "text/x-shellscript", "c": "text/x-c", "h": "text/x-c", "cpp": "text/x-c++", "cc": "text/x-c++",
    "hpp": "text/x-c++", "java": "text/x-java", "rs": "text/x-rust", "go": "text/x-go", "ts": "text/x-typescript",
    "tsx": "text/x-typescript", "rb": "text/x-ruby", "php": "text/x-php", "pl": "text/x-perl", "lua": "text/x-lua",
    "tex": "text/x-tex", "bib": "text/x-bibtex", "srt": "application/x-subrip", "ics": "text/calendar",
    "vcf": "text/vcard", "vtt": "text/vtt", "eml": "message/rfc822", "mbox": "application/mbox",
    "rst": "text/x-rst", "org": "text/x-org",
    "diff": "text/x-diff", "patch": "text/x-diff", "jsonl": "application/x-ndjson", "ndjson": "application/x-ndjson",
    "html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml", "xml": "application/xml",
    "xsl": "application/xml", "xsd": "application/xml", "rss": "application/rss+xml", "atom": "application/atom+xml",
    "svg": "image/svg+xml", "gpx": "application/gpx+xml", "kml": "application/vnd.google-earth.kml+xml",
    "json": "application/json", "ipynb": "application/json", "geojson": "application/geo+json",
    "webmanifest": "application/manifest+json", "rtf": "application/rtf", "gpl": "text/x-gimp-gpl",
    "gltf": "model/gltf+json", "jsonld": "application/ld+json", "jsx": "text/javascript", "mht": "message/rfc822",
    "mhtml": "message/rfc822", "ass": "text/x-ssa", "ssa": "text/x-ssa", "m3u": "application/vnd.apple.mpegurl",
    "m3u8": "application/vnd.apple.mpegurl", "fb2": "application/x-fictionbook+xml", "rdf": "application/rdf+xml",
    "xmp": "application/rdf+xml", "ttml": "application/ttml+xml", "xlf": "application/xliff+xml",
    "opf": "application/oebps-package+xml", "dae": "model/vnd.collada+xml", "x3d": "model/x3d+xml",
    "musicxml": "application/vnd.recordare.musicxml+xml", "wsdl": "application/wsdl+xml", "cs": "text/x-csharp",
    "kt": "text/x-kotlin", "swift": "text/x-swift", "scala": "text/x-scala", "hs": "text/x-haskell",
    "ps1": "text/x-powershell", "bat": "text/x-msdos-batch", "cmd": "text/x-msdos-batch", "awk": "text/x-awk",
    "tcl": "text/x-tcl", "pyi": "text/x-python", "pyw": "text/x-python", "pm": "text/x-perl", "cxx": "text/x-c++",
}  # fmt: skip

# Types without a signature, known only by declaration.
UNMARKED_SUFFIXES = {
    "tga": "image/x-tga", "iso": "application/x-iso9660-image", "dmg": "application/x-apple-diskimage",
    "p12": "application/x-pkcs12", "pfx": "application/x-pkcs12", "p7m": "application/pkcs7-mime",
    "p7c": "application/pkcs7-mime", "p7s": "application/pkcs7-signature", "der": "application/x-x509-ca-cert",
    "dbf": "application/x-dbf", "mpc": "audio/x-musepack",
}  # fmt: skip

# The type that a suffix implies where the bytes can contradict it.
SUFFIXES = TEXT_SUFFIXES | UNMARKED_SUFFIXES | {
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "jpe": "image/jpeg", "jfif": "image/jpeg", "mpo": "image/jpeg",
    "png": "image/png", "apng": "image/png", "gif": "image/gif", "webp": "image/webp", "bmp": "image/bmp",
    "tif": "image/tiff", "tiff": "image/tiff", "heic": "image/heic", "heif": "image/heif", "avif": "image/avif",
    "avifs": "image/avif", "ico": "image/vnd.microsoft.icon", "psd": "image/vnd.adobe.photoshop",
    "dng": "image/x-adobe-dng", "nef": "image/x-nikon-nef", "arw": "image/x-sony-arw", "pef": "image/x-pentax-pef",
    "mp3": "audio/mpeg", "m4a": "audio/mp4", "m4b": "audio/mp4", "wav": "audio/wav", "ogg": "audio/ogg",
    "oga": "audio/ogg", "opus": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac", "amr": "audio/amr",
    "aif": "audio/aiff", "aiff": "audio/aiff", "mid": "audio/midi", "midi": "audio/midi", "weba": "audio/webm",
    "mka": "audio/x-matroska", "wma": "audio/x-ms-wma", "mp4": "video/mp4", "m4v": "video/x-m4v",
    "mov": "video/quicktime", "qt": "video/quicktime", "3gp": "video/3gpp", "3g2": "video/3gpp2", "webm": "video/webm",
    "mkv": "video/x-matroska", "avi": "video/x-msvideo", "wmv": "video/x-ms-wmv", "ogv": "video/ogg",
    "mpg": "video/mpeg", "mpeg": "video/mpeg", "flv": "video/x-flv", "pdf": "application/pdf", "zip": "application/zip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "docm": "application/vnd.ms-word.document.macroenabled.12",
    "xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
    "pptm": "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "odt": "application/vnd.oasis.opendocument.text", "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation", "odg": "application/vnd.oasis.opendocument.graphics",
    "epub": "application/epub+zip", "jar": "application/java-archive",
    "apk": "application/vnd.android.package-archive", "kmz": "application/vnd.google-earth.kmz",
    "pages": "application/vnd.apple.pages", "numbers": "application/vnd.apple.numbers",
    "key": "application/vnd.apple.keynote", "xpi": "application/x-xpinstall",
    "cbz": "application/vnd.comicbook+zip", "usdz": "model/vnd.usdz+zip",
    "doc": "application/msword", "dot": "application/msword", "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint", "pps": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook", "vsd": "application/vnd.visio", "msi": "application/x-msi",
    "gz": "application/gzip", "tgz": "application/gzip", "bz2": "application/x-bzip2", "xz": "application/x-xz",
    "zst": "application/zstd", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar",
    "tar": "application/x-tar", "tgs": "application/x-tgsticker", "woff": "font/woff", "woff2": "font/woff2",
    "ttf": "font/ttf", "otf": "font/otf", "sqlite": "application/vnd.sqlite3",
    "exe": "application/vnd.microsoft.portable-executable", "dll": "application/vnd.microsoft.portable-executable",
    "dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    "xltx": "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
    "potx": "application/vnd.openxmlformats-officedocument.presentationml.template",
    "ppsx": "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    "dotm": "application/vnd.ms-word.template.macroenabled.12",
    "xlam": "application/vnd.ms-excel.addin.macroenabled.12",
    "xltm": "application/vnd.ms-excel.template.macroenabled.12",
    "xlsb": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    "potm": "application/vnd.ms-powerpoint.template.macroenabled.12",
    "ppsm": "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    "ppam": "application/vnd.ms-powerpoint.addin.macroenabled.12", "vsdx": "application/vnd.ms-visio.drawing",
    "xps": "application/vnd.ms-xpsdocument", "oxps": "application/oxps", "mpp": "application/vnd.ms-project",
    "pub": "application/x-mspublisher", "hwp": "application/x-hwp", "one": "application/onenote",
    "ipa": "application/x-ios-app", "lottie": "application/zip+dotlottie", "mxl": "application/vnd.recordare.musicxml",
    "idml": "application/vnd.adobe.indesign-idml-package",
    "jxl": "image/jxl", "jp2": "image/jp2", "jpx": "image/jpx", "jxr": "image/jxr", "cr2": "image/x-canon-cr2",
    "cr3": "image/x-canon-cr3", "raf": "image/x-fuji-raf", "rw2": "image/x-panasonic-rw2",
    "orf": "image/x-olympus-orf", "cur": "image/x-win-bitmap", "icns": "image/icns", "exr": "image/x-exr",
    "qoi": "image/x-qoi", "xcf": "image/x-xcf", "djvu": "image/vnd.djvu", "emf": "image/emf", "wmf": "image/wmf",
    "dwg": "image/vnd.dwg", "dxf": "image/vnd.dxf", "xbm": "image/x-xbitmap", "xpm": "image/x-xpixmap",
    "dds": "image/vnd.ms-dds", "eps": "application/postscript", "ps": "application/postscript",
    "ac3": "audio/ac3", "eac3": "audio/eac3", "caf": "audio/x-caf", "au": "audio/basic", "mp2": "audio/mpeg",
    "m4p": "audio/mp4", "aifc": "audio/aiff", "ape": "audio/x-ape", "wv": "audio/x-wavpack", "mts": "video/mp2t",
    "m2ts": "video/mp2t", "m2v": "video/mpeg", "vob": "video/mpeg", "asf": "video/x-ms-asf", "f4v": "video/x-f4v",
    "mj2": "video/mj2", "swf": "application/x-shockwave-flash", "ttc": "font/collection",
    "eot": "application/vnd.ms-fontobject", "mobi": "application/x-mobipocket-ebook",
    "azw3": "application/x-mobipocket-ebook", "chm": "application/vnd.ms-htmlhelp", "rpm": "application/x-rpm",
    "deb": "application/vnd.debian.binary-package",
    "cab": "application/vnd.ms-cab-compressed", "cpio": "application/x-cpio", "lz4": "application/x-lz4",
    "lz": "application/x-lzip", "wasm": "application/wasm", "class": "application/java-vm",
    "dex": "application/vnd.android.dex", "pyc": "application/x-python-code", "torrent": "application/x-bittorrent",
    "parquet": "application/vnd.apache.parquet", "npy": "application/x-npy", "h5": "application/x-hdf5",
    "glb": "model/gltf-binary", "stl": "model/stl", "3mf": "model/3mf", "pcap": "application/vnd.tcpdump.pcap",
    "lnk": "application/x-ms-shortcut", "sqlite3": "application/vnd.sqlite3", "svgz": "application/gzip",
    "emz": "application/gzip", "tbz2": "application/x-bzip2", "txz": "application/x-xz", "xar": "application/x-xar",
    "lzh": "application/x-lzh-compressed", "mdb": "application/x-msaccess", "accdb": "application/x-msaccess",
    "psb": "image/vnd.adobe.photoshop", "pcx": "image/x-pcx", "dpx": "image/dpx",
    "qcp": "audio/qcelp", "rm": "application/vnd.rn-realmedia", "rmvb": "application/vnd.rn-realmedia",
    "fdf": "application/fdf", "shp": "application/vnd.shp", "skp": "application/vnd.sketchup.skp",
    "thmx": "application/vnd.ms-officetheme", "wpd": "application/vnd.wordperfect",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The declared type and name of the bytes."""

    suffix: str = ""
    declared: str = ""
    """In canonical spelling; empty if the declaration is uninformative."""

    def suggests(self, *mimes: str) -> bool:
        """Whether the name or the declaration suggests one of these."""
        return self.declared in mimes or SUFFIXES.get(self.suffix) in mimes

    @property
    def named(self) -> str:
        """The type that the suffix implies."""
        return SUFFIXES.get(self.suffix, "")


def hints_of(name: str | None, declared: str | None) -> Hints:
    """The hints of any name and declared type."""
    tail = (name or "")[-64:].rstrip(". \t\r\n\0").lower()
    _, dot, suffix = tail.rpartition(".")
    known = dot and _SUFFIX.fullmatch(suffix)
    mime = normal(declared or "")
    return Hints(suffix=suffix if known else "", declared="" if mime == UNKNOWN else mime)


def normal(mime: str) -> str:
    """A type without parameters, in lower case and canonical spelling; invalid ones are application/octet-stream."""
    plain = mime[:1024].partition(";")[0].strip().lower()
    return ALIASES.get(plain, plain) if _MIME.fullmatch(plain) else UNKNOWN

"""Jobs of the sandbox: a name, and the function that runs in the child.

A function takes the source's descriptor, the target's if the job writes a file, and the options; it returns a small
JSON value. A module may have a `prepare()` that imports what its functions need: the child cannot open files, so
nothing can be imported later.
"""

from collections.abc import Mapping
from types import MappingProxyType

JOBS: Mapping[str, str] = MappingProxyType(
    {
        "image.probe": "belino.media.image.images:probe",
        "image.fit": "belino.media.image.images:fit",
        "image.thumb": "belino.media.image.images:thumb",
        "image.greys": "belino.media.image.images:greys",
        "document.read": "belino.readers.read:read",
        "document.page": "belino.readers.read:page",
        "audio.probe": "belino.media.audio:probe",
        "audio.waveform": "belino.media.audio:waveform",
        "audio.voice": "belino.media.audio:voice",
        "audio.mono": "belino.media.audio:mono",
        "video.probe": "belino.media.video:probe",
        "video.frames": "belino.media.video:frames",
        "video.sheet": "belino.media.video:sheet",
        "sheet.album": "belino.media.sheet:album",
    }
)

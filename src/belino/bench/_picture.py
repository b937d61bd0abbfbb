"""One picture fitted in a process of its own, to measure CPU and memory; or the similarity of two pictures.

`python -m belino.bench._picture ours|usual FILE LIMIT OUT` and `… score FILE RESULT`; the answer is one line of JSON.
"""

import io
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

STATUS, CLEAR_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")
STEPS, SCALE, QUALITY = 6, 0.75, 85
# A score is computed at the original's size, up to this many pixels: more would only take longer.
SCORED_PIXELS = 6_000_000
# The constants of SSIM for values from 0 to 255, and the width of its window.
_C1, _C2, _SIGMA = 6.5025, 58.5225, 1.5


def ours(file: Path, limit: int, out: Path) -> None:
    """Fit with belino."""
    from belino.media.image import images as image

    source = os.open(file, os.O_RDONLY)
    target = os.open(out, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    image.fit(source, target, {"max_bytes": limit})


def usual(file: Path, limit: int, out: Path) -> None:
    """Save with Pillow; while it is too large, up to six times, scale both sides to three quarters."""
    from PIL import Image, ImageOps

    with Image.open(file) as opened:
        kind = opened.format if opened.format in ("PNG", "GIF", "WEBP") else "JPEG"
        picture: Any = ImageOps.exif_transpose(opened)
    for step in range(STEPS + 1):
        if step:
            size = (max(1, int(picture.width * SCALE)), max(1, int(picture.height * SCALE)))
            picture = picture.resize(size, Image.Resampling.LANCZOS)
        saved = io.BytesIO()
        fits = kind != "JPEG" or picture.mode in ("RGB", "L", "CMYK")
        (picture if fits else picture.convert("RGB")).save(saved, kind, quality=QUALITY)
        if saved.tell() <= limit:
            out.write_bytes(saved.getvalue())
            return
    raise ValueError("still too large after six steps")


def score(file: Path, result: Path) -> float:
    """Similarity: SSIM of their luma at the original's size."""
    original, made = _luma(file), _luma(result)
    if original.width * original.height > SCORED_PIXELS:
        original = original.resize((SCORED_PIXELS / (original.width * original.height)) ** 0.5)
    made = made.resize(original.width / made.width, vscale=original.height / made.height, kernel="cubic")
    return float(_ssim(original.copy_memory(), made.copy_memory()))


def _luma(file: Path) -> Any:
    from belino.media.image import decode

    source = os.open(file, os.O_RDONLY)
    picture: Any = decode.decode(source, decode.look(source)).opaque().image
    if picture.bands >= 3:
        picture = picture[0] * 0.299 + picture[1] * 0.587 + picture[2] * 0.114
    return picture[0].cast("float").copy_memory()


def _ssim(one: Any, other: Any) -> float:
    def blur(image: Any) -> Any:
        return image.gaussblur(_SIGMA, precision="float", min_ampl=0.01)

    mean, mean_other = blur(one), blur(other)
    spread = blur(one * one) - mean * mean
    spread_other = blur(other * other) - mean_other * mean_other
    together = blur(one * other) - mean * mean_other
    alike = (mean * mean_other * 2 + _C1) * (together * 2 + _C2)
    apart = (mean * mean + mean_other * mean_other + _C1) * (spread + spread_other + _C2)
    return float((alike / apart).avg())


def main(how: str, file: Path, rest: list[str]) -> dict[str, object]:
    """Run it and report CPU and memory."""
    if how == "score":
        return {"score": score(file, Path(rest[0]))}
    {"ours": _load_ours, "usual": _load_usual}[how]()
    loaded, begun = _forget_peak(), time.process_time()
    {"ours": ours, "usual": usual}[how](file, int(rest[0]), Path(rest[1]))
    spent = time.process_time() - begun
    # Libraries are loaded once for all pictures, for ours in the parent that the sandbox forks its child from; the cost
    # of a picture is what comes on top. The fork, about a millisecond, is left out.
    return {"cpu": spent, "memory": _peak() - loaded}


def _forget_peak() -> int:
    """Reset the memory peak and return the current value: a process inherits the peak of its parent."""
    if CLEAR_PEAK.exists():
        CLEAR_PEAK.write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    """Peak memory so far, in bytes."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _load_ours() -> None:
    from belino.media.image import images as image

    image.prepare()


def _load_usual() -> None:
    from PIL import Image

    Image.init()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])))

"""What an agent has to send, and how it says so."""

import io
from pathlib import Path

from belino.testing import ToolCall


def send(path: Path, **more: str) -> ToolCall:
    return ToolCall(name="send_media", arguments={"path": str(path), **more})


def opus(seconds: float = 1.0) -> bytes:
    """A voice note, by the real encoder."""
    import av
    from av.audio.stream import AudioStream

    written, rate = io.BytesIO(), 48_000
    with av.open(written, "w", format="ogg") as target:
        stream = target.add_stream("libopus", rate=rate)
        assert isinstance(stream, AudioStream)
        frame = av.AudioFrame(format="s16", layout="mono", samples=960)
        frame.sample_rate = rate
        for number in range(int(seconds * 50)):
            frame.planes[0].update(bytes(1920))
            frame.pts = number * 960
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()

"""Speech APIs on loopback: the rules of OpenAI's transcriptions, and Deepgram's API for recordings.

Facts are from the public documentation of both: fields, formats by model, error bodies, limits.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from belino.testing.models import (
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelServer,
    ModelSpeech,
    SpokenPart,
)

if TYPE_CHECKING:
    from aiohttp import web

SPEECH_BYTES = 25 * 1024 * 1024
ENDINGS = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
MAGIC = {"flac": b"fLaC", "wav": b"RIFF"}
FORM_FIELDS = frozenset(
    {
        "model", "language", "languages[]", "prompt", "response_format", "temperature", "timestamp_granularities[]",
        "chunking_strategy", "include[]", "stream",
    }
)  # fmt: skip
DEEPGRAM_FLAGS = frozenset({"punctuate", "utterances", "smart_format", "diarize", "detect_language"})
DEEPGRAM_FIELDS = DEEPGRAM_FLAGS | {"model", "language"}
DEEPGRAM_MODELS = ("nova-3", "nova-2", "base", "enhanced", "whisper")

Json = dict[str, Any]


def broken_form(asked: ModelRequest) -> ModelFailure | None:
    """OpenAI's refusal of a transcription: a missing field, or a format that the model does not have."""
    return next(_broken_form(asked), None)


def _broken_form(asked: ModelRequest) -> Iterator[ModelFailure]:
    fields = asked.body
    model, form = fields.get("model", ""), fields.get("response_format", "json")
    ending = asked.file_name.rpartition(".")[2]
    if not asked.file_name or not model:
        yield _invalid("missing_required_parameter", "you must provide a model and a file parameter")
    if unknown := set(fields) - FORM_FIELDS:
        yield _invalid("unknown_parameter", f"Unknown parameter: '{min(unknown)}'.")
    if len(asked.raw) > SPEECH_BYTES:
        yield ModelFailure(status=413, kind="file_too_large", message=f"Maximum content size limit ({SPEECH_BYTES})")
    if ending not in ENDINGS or not asked.raw.startswith(MAGIC.get(ending, b"")):
        yield _invalid("invalid_file_format", f"Invalid file format. Supported formats: {list(ENDINGS)}")
    if form not in _formats(model):
        yield _invalid("unsupported_value", f"response_format '{form}' is not compatible with model '{model}'.")
    if "timestamp_granularities[]" in fields and form != "verbose_json":
        yield _invalid("invalid_value", "timestamp_granularities requires response_format verbose_json")
    if "prompt" in fields and "diarize" in model:
        yield _invalid("unsupported_parameter", "Prompt is not supported for diarization models")
    if "languages[]" in fields and model != "gpt-transcribe":
        yield _invalid("unsupported_parameter", f"languages is not supported for model '{model}'.")
    if "language" in fields and (model == "gpt-transcribe" or len(fields["language"]) != 2):
        yield _invalid("invalid_language_format", f"Invalid language '{fields['language']}'. Use ISO-639-1.")


def _formats(model: str) -> Sequence[str]:
    if "diarize" in model:
        return ("json", "text", "diarized_json")
    return ("json", "text", "srt", "verbose_json", "vtt") if "whisper" in model else ("json", "text")


def _invalid(kind: str, message: str) -> ModelFailure:
    return ModelFailure(status=400, kind=kind, message=message)


def transcription(asked: ModelRequest, reply: ModelReply) -> Json:
    """The transcript in the requested format, with the usage that the model reports."""
    speech = reply if isinstance(reply, ModelSpeech) else ModelSpeech(parts=_only(reply))
    form, model = asked.body.get("response_format"), asked.body["model"]
    if form == "verbose_json":
        listed = [_whisper_segment(number, part, speech) for number, part in enumerate(speech.parts)]
        usage = {"type": "duration", "seconds": 12}
        named = {"en": "english", "de": "german"}.get(speech.language, speech.language)
        return {"task": "transcribe", "language": named, "text": speech.text, "segments": listed, "usage": usage}
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}
    if form == "diarized_json":
        spoken = [
            {"type": "transcript.text.segment", "id": f"seg_{n}", "start": part.start, "end": part.end,
             "text": part.text, "speaker": "ABCD"[part.speaker]}
            for n, part in enumerate(speech.parts)
        ]  # fmt: skip
        return {"task": "transcribe", "text": speech.text, "segments": spoken, "usage": usage}
    languages = {"languages": [{"code": speech.language}]} if model == "gpt-transcribe" else {}
    return {"text": speech.text, "usage": usage, **languages}


def _only(reply: ModelReply) -> tuple[SpokenPart, ...]:
    text = getattr(reply, "text", "")
    return (SpokenPart(text=text, start=0.0, end=1.0),) if text else ()


def _whisper_segment(number: int, part: SpokenPart, speech: ModelSpeech) -> Json:
    return {
        "id": number,
        "seek": 0,
        "start": part.start,
        "end": part.end,
        "text": f" {part.text}",
        "tokens": [50364],
        "temperature": 0.0,
        "avg_logprob": log(speech.confidence),
        "compression_ratio": 1.2,
        "no_speech_prob": speech.no_speech,
    }


class DeepgramServer(ModelServer):
    """`/v1/listen` for the bytes of a recording."""

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/v1/listen", self._listen)

    async def _listen(self, request: "web.Request") -> "web.StreamResponse":
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = dict(request.query)
        asked = ModelRequest(
            path=request.path_qs, headers=headers, body=body, raw=raw, mime=headers.get("content-type", "")
        )
        _, reply = await self.reply_to(request, asked)
        if not isinstance(reply, ModelFailure) and not _is_sound(asked):
            text = "Bad Request: failed to process audio: corrupt or unsupported data"
            reply = ModelFailure(status=400, kind="Bad Request", message=text)
        if isinstance(reply, ModelFailure):
            return _deepgram_failed(reply)
        return await self.deliver(request, reply, heard(body, reply))

    def refusal(self, request: "web.Request", body: Mapping[str, Any]) -> ModelFailure | None:
        if self.key and request.headers.get("Authorization") != f"Token {self.key}":
            return ModelFailure(status=401, kind="INVALID_AUTH", message="Invalid credentials.")
        if unknown := set(body) - DEEPGRAM_FIELDS:
            return ModelFailure(status=400, kind="Bad Request", message=f"unknown query parameter {min(unknown)}")
        if wrong := [name for name in DEEPGRAM_FLAGS & set(body) if body[name] not in ("true", "false")]:
            return ModelFailure(status=400, kind="Bad Request", message=f"{wrong[0]} must be true or false")
        if not body.get("model", "").startswith(DEEPGRAM_MODELS):
            return ModelFailure(status=400, kind="Bad Request", message="No such model/language/tier combination")
        if "language" in body and "detect_language" in body:
            return ModelFailure(
                status=400, kind="Bad Request", message="language and detect_language exclude each other"
            )
        return None


def _is_sound(asked: ModelRequest) -> bool:
    ending = asked.mime.partition("/")[2]
    return asked.mime.startswith("audio/") and asked.raw.startswith(MAGIC.get(ending, b"")) and bool(asked.raw)


def _deepgram_failed(failure: ModelFailure) -> "web.StreamResponse":
    from aiohttp import web

    told = {"err_code": failure.kind, "err_msg": failure.message, "request_id": "r1"}
    return web.json_response(told, status=failure.status, headers=failure.headers)


def heard(query: Mapping[str, str], reply: ModelReply) -> Json:
    """Deepgram's answer: the best alternative of one channel, and utterances if they are requested."""
    speech = reply if isinstance(reply, ModelSpeech) else ModelSpeech(parts=_only(reply))
    speakers = query.get("diarize") == "true"
    spoken = [word for part in speech.parts for word in _words(part, speakers=speakers)]
    best = {"transcript": speech.text, "confidence": speech.confidence if speech.parts else 0.0, "words": spoken}
    channel: Json = {"alternatives": [best]}
    if query.get("detect_language") == "true":
        channel |= {"detected_language": speech.language, "language_confidence": 0.99}
    results: Json = {"channels": [channel]}
    if query.get("utterances") == "true":
        results["utterances"] = [_utterance(part, speech, speakers=speakers) for part in speech.parts]
    return {"metadata": {"request_id": "r1", "duration": 12.0, "channels": 1}, "results": results}


def _words(part: SpokenPart, *, speakers: bool) -> Iterator[Json]:
    said = part.text.split()
    length = (part.end - part.start) / max(len(said), 1)
    for number, word in enumerate(said):
        start = part.start + number * length
        plain = {"word": word.lower().strip(".,!?"), "punctuated_word": word, "start": start, "end": start + length}
        yield {**plain, "confidence": 0.9, **({"speaker": part.speaker} if speakers else {})}


def _utterance(part: SpokenPart, speech: ModelSpeech, *, speakers: bool) -> Json:
    said = {"start": part.start, "end": part.end, "confidence": speech.confidence, "transcript": part.text}
    return {
        **said,
        "channel": 0,
        "words": [*_words(part, speakers=speakers)],
        **({"speaker": part.speaker} if speakers else {}),
    }

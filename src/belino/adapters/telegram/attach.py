"""Files as the calls that carry them: each form by its own method, several as an album."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from belino.adapters.telegram.raw import has
from belino.domain.limits import Markup, SendAs
from belino.domain.reply import OutgoingFile, StoredFile
from belino.net.raw import Raw, as_table, count, words

METHODS = {
    SendAs.PHOTO: "sendPhoto",
    SendAs.VIDEO: "sendVideo",
    SendAs.AUDIO: "sendAudio",
    SendAs.VOICE: "sendVoice",
    SendAs.ANIMATION: "sendAnimation",
    SendAs.STICKER: "sendSticker",
    SendAs.DOCUMENT: "sendDocument",
}
# An animation is told as a document too, so that it must be looked for first.
_KEPT_AS = sorted(SendAs, key=lambda form: form is SendAs.DOCUMENT)
# Telegram makes pictures of its own of these: their size and name say nothing about what was sent.
_REMADE = frozenset({SendAs.PHOTO, SendAs.ANIMATION, SendAs.STICKER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that makes something visible."""

    method: str
    fields: Mapping[str, object]
    files: Mapping[str, OutgoingFile] = field(default_factory=dict)


def files_call(where: Mapping[str, object], files: Sequence[OutgoingFile], markup: Markup) -> Call:
    """The call for these files, with their captions; `where` are the fields that say to whom."""
    if len(files) == 1:
        (file,) = files
        fields = {**where, **_caption(file, markup), **_facts(file)}
        return Call(method=METHODS[file.send_as], fields=fields, files={str(file.send_as): file})
    parts = {f"file{number}": file for number, file in enumerate(files)}
    media = [
        {"type": str(file.send_as), "media": f"attach://{name}", **_caption(file, markup), **_facts(file)}
        for name, file in parts.items()
    ]
    return Call(method="sendMediaGroup", fields={**where, "media": media}, files=parts)


def as_documents(files: Sequence[OutgoingFile]) -> tuple[OutgoingFile, ...]:
    """The same files in the form that takes anything; in an album documents go only with documents."""
    return tuple(replace(file, send_as=SendAs.DOCUMENT) for file in files)


def kept_as(message: Raw) -> StoredFile:
    """What Telegram says it made of a file."""
    form = next((form for form in _KEPT_AS if has(message, form)), None)
    if form is None or form in _REMADE:
        return StoredFile(form=form)
    kept = as_table(message[form])
    return StoredFile(form=form, size=count(kept, "file_size"), name=words(kept, "file_name") or None)


def _caption(file: OutgoingFile, markup: Markup) -> Mapping[str, object]:
    if not file.caption:
        return {}
    return {"caption": file.caption} | ({"parse_mode": "HTML"} if markup is Markup.HTML else {})


def _facts(file: OutgoingFile) -> dict[str, object]:
    """What Telegram shows and would otherwise have to find out."""
    seconds = None if file.seconds is None else round(file.seconds)
    match file.send_as:
        case SendAs.VIDEO | SendAs.ANIMATION:
            facts: dict[str, object | None] = {"width": file.width, "height": file.height, "duration": seconds}
            if file.send_as is SendAs.VIDEO:
                facts["supports_streaming"] = True
        case SendAs.AUDIO | SendAs.VOICE:
            facts = {"duration": seconds}
        case SendAs.DOCUMENT:
            # It was decided that this is a document; Telegram would make a video or an animation of some.
            facts = {"disable_content_type_detection": True}
        case _:
            facts = {}
    return {name: value for name, value in facts.items() if value}

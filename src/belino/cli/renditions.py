"""Renditions of files and refs: text, pictures, and their price for an agent."""

import asyncio
import base64
import json
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, plain, running_gateway, with_store
from belino.cli.command import NotRunning, number_from
from belino.cli.files import Target, as_blob, head_of, sniffed_file
from belino.cli.reading_files import read_text, reading_prices
from belino.cli.show import clean, clean_lines, progress_bar, show_json, show_table
from belino.config import load
from belino.domain.errors import BelinoError, MediaError
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, Blob, MediaKind, open_files
from belino.domain.units import parse_pages, parse_times
from belino.media.paging import parse_cursor
from belino.media.renditions import LEAST_TOKENS, MADE, MOST_TOKENS, Item, Rendered, RenderOptions
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.domain.stored import RefRecord
    from belino.media.price import Facts
    from belino.media.render import Renderer
    from belino.media.sandbox.sandbox import Sandbox
    from belino.storage.store import Store

LINES = "application/x-ndjson"
READ_SECONDS = 600.0
"""A long sound takes its time."""
READ = ("transcript", "description")
FORMS = (*MADE, *READ, "file")

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


def form_arguments(parser: ArgumentParser) -> None:
    """The --as option and its parameters."""
    parser.add_argument("--as", dest="form", choices=FORMS, default="file", help="in this form (default: file)")
    parser.add_argument("--pages", metavar="3-5", help="only these pages, sheets or slides")
    parser.add_argument("--time-range", metavar="0:30-1:10", help="of a video, only this time")
    parser.add_argument("--max-tokens", type=number_from(1), metavar="N", help="maximum number of tokens")
    parser.add_argument("--cursor", metavar="PLACE", help="continue where the previous text ended")


def text_arguments(parser: ArgumentParser) -> None:
    """A file and its page range."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file on this machine")
    parser.add_argument("--pages", metavar="3-5", help="only these pages, sheets or slides")


def text_file(args: Namespace) -> int:
    """belino media text FILE [--pages 3-5]"""
    from belino.media.renditions import CannotRender

    if _is_recognised(args):
        return read_text(args)
    try:
        told = asyncio.run(_whole_text(args.file, args.pages))
    except CannotRender as error:
        raise BelinoError(error.why) from None  # the reason alone: the user has the file and needs no copy
    if args.json:
        show_json({"file": str(args.file), "about": told[0].about, "text": "".join(page.text for page in told)})
        return OK
    for page in told:
        print(clean_lines(page.text))
    return OK


def _is_recognised(args: Namespace) -> bool:
    """Whether a file may need text recognition: a picture, a video, or a PDF, whose pages may be scans."""
    from belino.media.image.header import DRAWN_MIMES
    from belino.media.price import PDF, has_text

    mime = sniffed_file(args.file).mime
    if mime == PDF:
        return load(Home.at(args.home), None).tools.media.document.enabled
    return not has_text(mime) and (mime in DRAWN_MIMES or mime.startswith("video/"))


def price_file(args: Namespace) -> int:
    """belino media price FILE"""
    from belino.media.price import prices

    path: Path = args.file
    facts = asyncio.run(_known(path))
    made = prices(facts, accepts=_accepted(args))
    read = asyncio.run(reading_prices(args, facts))
    costs = {**made, **{form: cost for form, cost in read.items() if form not in made or facts.scans}}
    if args.json:
        about = {"mime": facts.mime, "size": facts.size, "width": facts.width, "height": facts.height}
        more = {"seconds": facts.seconds, "parts": facts.parts, "unit": facts.unit}
        priced = {
            form: {"tokens": cost.tokens, "bytes": cost.bytes, "seconds": cost.seconds, "usd": cost.usd}
            for form, cost in costs.items()
        }
        show_json({"file": str(path), **about, **more, "price": priced})
        return OK
    print(clean(f"{path.name}: {', '.join(_facts_words(facts))}"))
    rows = [(form, cost, cost.bytes, cost.seconds) for form, cost in costs.items()]
    show_table(("as", "tokens and price", "bytes to fetch", "seconds (about)"), rows, empty="")
    return OK


def _accepted(args: Namespace) -> AcceptedMedia:
    """What the configured agent takes in its own format; nothing if it cannot be made here."""
    from belino.domain.ports import accepted_by
    from belino.turns.agents import Agents

    try:
        return accepted_by(Agents(load(Home.at(args.home), None).agent).default)
    except BelinoError:
        return TEXT_AND_PICTURES


def render_ref(args: Namespace) -> int:
    """belino media fetch REF --as FORM"""
    _wish(args)  # an invalid range fails before any call
    home = Home.at(args.home)
    gateway = running_gateway(home)
    if args.form in READ:
        return _read_ref(args, gateway)
    if gateway:
        media = _render_running(args, gateway)
    else:
        media = asyncio.run(with_store(home, lambda store: _render_resting(args, store)))
    rendered = media.pop("rendered")
    if args.json:
        paths = _write_pictures(args.output, media, rendered["pictures"])
        pictures = [
            {**{key: value for key, value in picture.items() if key != "content"}, "path": str(path)}
            for picture, path in zip(rendered["pictures"], paths, strict=True)
        ]
        show_json({"media": media, "rendered": {**rendered, "pictures": pictures}})
        return OK
    print(clean(rendered["about"]))
    if rendered["text"] and args.output and not rendered["pictures"]:
        paths = [_write_text(args.output, media, rendered["text"])]
    else:
        if rendered["text"]:
            print(clean_lines(rendered["text"]))
        paths = _write_pictures(args.output, media, rendered["pictures"])
    for path in paths:
        print(clean(str(path)))
    return OK


def _read_ref(args: Namespace, gateway: GatewayClient | None) -> int:
    """What is said in a ref, or what it shows; a gateway has the providers."""
    if gateway is None:
        raise NotRunning(f"{args.ref} can be read while a gateway runs; start `belino serve`")
    asked = {"ref": args.ref, "as": args.form, "pages": args.pages, "time_range": args.time_range}
    body = {name: value for name, value in asked.items() if value is not None}
    answer = gateway.ask("POST", "/api/media/read", body, seconds=READ_SECONDS)
    text = answer["reading"]["text"]
    if args.json:
        show_json(answer)
    elif args.output:
        print(clean(str(_write_text(args.output, {"file_name": f"{args.ref}.txt", "mime": "text/plain"}, text))))
    else:
        print(clean_lines(text))
    return OK


def _wish(args: Namespace) -> RenderOptions:
    if args.max_tokens is not None and not LEAST_TOKENS <= args.max_tokens <= MOST_TOKENS:
        raise BelinoError(f"--max-tokens must be a number from {LEAST_TOKENS} to {MOST_TOKENS}")
    if args.cursor is not None:
        parse_cursor(args.cursor)
    return RenderOptions(
        pages=parse_pages(args.pages) if args.pages else None,
        times=parse_times(args.time_range) if args.time_range else None,
        cursor=args.cursor,
        max_tokens=args.max_tokens,
    )


def _render_running(args: Namespace, gateway: GatewayClient) -> dict[str, Any]:
    asked = {
        "ref": args.ref,
        "as": args.form,
        "pages": args.pages,
        "time_range": args.time_range,
        "max_tokens": args.max_tokens,
        "cursor": args.cursor,
    }
    return fetch_running(args, gateway, {name: value for name, value in asked.items() if value is not None})


def fetch_running(args: Namespace, gateway: GatewayClient, body: Mapping[str, Any]) -> dict[str, Any]:
    """Let the gateway fetch a ref, with progress; the ref as it is afterwards, with what was rendered of it."""
    with (
        progress_bar(args.ref, quiet=args.json) as told,
        gateway.opened("POST", "/api/media/fetch", body, accept=LINES) as answer,
    ):
        for line in answer:
            step = json.loads(line)
            if "error" in step:
                raise BelinoError(step["error"]["message"])
            if "media" in step:
                return dict(step["media"])
            told(step["bytes"], step["total"])
    raise BelinoError("the gateway stopped during the fetch; try again")


async def _render_resting(args: Namespace, store: "Store") -> dict[str, Any]:
    """Without a gateway the platform cannot be asked; held bytes can still be rendered."""
    from belino.gateway.rendering import render_ref as render
    from belino.media.render import make_renderer
    from belino.web.fetches import rendered_json
    from belino.web.wire import record_json

    record = await store.find_ref(args.ref)
    if record is None:
        raise BelinoError(f"there is no media {args.ref}; see `belino media ls`")

    async def held(wanted: "RefRecord") -> Blob:
        blob = await store.blob(wanted.ref.sha256) if wanted.ref.sha256 else None
        if blob is None:
            raise MediaError(f"the bytes of {wanted.ref.id} are not held here")
        return blob

    if record.ref.sha256 is None or await store.blob(record.ref.sha256) is None:
        raise NotRunning(f"the bytes of {args.ref} are not held here; start `belino serve` to fetch them")
    async with _sandboxed() as (sandbox, scratch):
        renderer = make_renderer(sandbox, scratch, store)
        rendered = await render(record, args.form, _wish(args), store=store, renderer=renderer, held=held)
    found: dict[str, Any] = plain(record_json(record) | {"rendered": rendered_json(rendered)})
    return found


async def _whole_text(path: Path, pages: str | None) -> list[Rendered]:
    """The whole text of a file, however long."""
    from belino.media.renditions import as_text

    item = _local(path)
    told: list[Rendered] = []
    async with _file_renderer(item, path) as renderer:
        wish = RenderOptions(pages=parse_pages(pages) if pages else None, max_tokens=MOST_TOKENS, sees_images=False)
        while not told or told[-1].rest is not None:
            cursor = told[-1].rest if told else None
            told.append(
                await as_text(
                    renderer, item, wish if cursor is None else RenderOptions(cursor=cursor, max_tokens=MOST_TOKENS)
                )
            )
    return told


async def _known(path: Path) -> "Facts":
    """A file with the facts from its bytes; an unreadable file is priced by its size."""
    from dataclasses import replace

    from belino.media.image.header import HEADER_BYTES, image_size
    from belino.media.price import Facts, has_text, is_film, is_picture, is_sound

    item = _local(path)
    found = image_size(head_of(path, HEADER_BYTES))
    mime = item.blob.mime
    facts = Facts(mime=mime, kind=sniffed_file(path).kind, size=item.blob.size)
    if found:
        facts = replace(facts, width=found[1], height=found[2])
    async with _file_renderer(item, path) as renderer:
        try:
            if is_picture(facts.kind, mime):
                picture = await renderer.probe(item.blob)
                facts = replace(facts, width=picture.width, height=picture.height)
            facts = await renderer.known(facts, item.blob.sha256)
            if is_film(facts) and not facts.still:
                if (await renderer.video(item.blob)).subtitles:
                    await renderer.reading(item.blob, mime=mime, name=path.name)
            elif is_sound(mime):
                await renderer.sound(item.blob)
            elif has_text(mime):
                await renderer.reading(item.blob, mime=mime, name=path.name)
        except MediaError:
            pass  # what was refused is not offered
        return await renderer.known(facts, item.blob.sha256)


def _facts_words(facts: "Facts") -> list[str]:
    from belino.domain.units import format_duration

    told = [facts.mime]
    if facts.dimensions:
        told.append(f"{facts.width}×{facts.height}")
    if facts.seconds:
        told.append(format_duration(facts.seconds))
    if facts.parts and facts.unit:
        told.append(f"{facts.parts} {facts.unit}{'' if facts.parts == 1 else 's'}")
    return [*told, f"{facts.size} bytes"]


def _local(path: Path) -> Item:
    sniffed = sniffed_file(path)
    return Item(blob=as_blob(path, sniffed), title=path.name, name=path.name)


@asynccontextmanager
async def _file_renderer(item: Item, path: Path) -> "AsyncIterator[Renderer]":
    """Renders one local file; links are followed, as only their owner names them."""
    from belino.media.render import Renderer, make_makers

    async with _sandboxed() as (sandbox, scratch):
        yield Renderer(make_makers(sandbox, scratch, open_files({item.blob.sha256: path.resolve()})))


@asynccontextmanager
async def _sandboxed() -> "AsyncIterator[tuple[Sandbox, Path]]":
    from belino.media.sandbox.sandbox import Sandbox

    with tempfile.TemporaryDirectory(prefix="belino-") as scratch:
        async with Sandbox() as sandbox:
            yield sandbox, Path(scratch)


def _write_pictures(output: Path | None, media: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write each picture to a file of its own, named as requested or by its ref; numbered if there are several."""
    paths: list[Path] = []
    for number, picture in enumerate(pictures, 1):
        several = f"-{number}" if len(pictures) > 1 else ""
        suffix = _SUFFIXES[picture["mime"]]
        base = output or Path(f"{media['ref']}{suffix}")
        target = Target(
            base.with_name(f"{base.stem}{several}{base.suffix or suffix}") if output else None,
            {"file_name": f"{media['ref']}{several}{suffix}", "mime": picture["mime"], "kind": MediaKind.IMAGE},
        )
        with target:
            target.write(base64.b64decode(picture["content"]))
            target.keep()
        paths.append(target.path)
    return paths


def _write_text(output: Path, media: Mapping[str, Any], text: str) -> Path:
    with Target(output, media) as target:
        target.write(text.encode())
        target.keep()
    return target.path

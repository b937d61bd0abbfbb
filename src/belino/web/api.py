"""API of the running gateway for a person or the command line."""

import re
import secrets
import unicodedata
from dataclasses import asdict

from starlette.responses import Response

from belino import __version__
from belino.domain.commands import COMMANDS
from belino.domain.errors import NoSuchMessage, SeveralMessages, StoreError
from belino.domain.message import ChatType, ConversationKey
from belino.domain.stored import GrantKind
from belino.gateway import savings
from belino.gateway.doctor import RunningParts, examine
from belino.gateway.explain import Explanation, NotFailed, as_json, explain, retried_json
from belino.gateway.recorder import Recording, RecordingRefused
from belino.web.fields import Fields, parse_conversation
from belino.web.messages import visitor_of
from belino.web.readings import reads_json
from belino.web.request_context import RouteCall, Site
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.uploads import CHUNK_BYTES
from belino.web.wire import Json, accounts_json, channel_json, conversation_json, finding_json, notice_json

NAME_CHARS = 100
SLUG_CHARS = 40
MESSAGE_NAME_CHARS = 1_100


async def me(call: RouteCall) -> Response:
    """The visitor's identity and limits."""
    response = answer(me_json(call.site))
    call.site.cookie.rename(call.request, response, call.visitor, call.site.gateway.clock.now())
    return response


def me_json(site: Site) -> Json:
    """The answer to the page's first request, and the socket's first event."""
    config = site.gateway.config
    return {
        "name": "You",
        "version": __version__,
        "agent": agent_json(site),
        "limits": {
            "file_bytes": config.media.max_bytes,
            "frame_attachment_bytes": config.server.frame_attachment_bytes,
            "chunk_bytes": CHUNK_BYTES,
            "text_chars": config.sessions.max_text_chars,
        },
        "reads": reads_json(site),
        "commands": [asdict(spec) for spec in COMMANDS],
    }


async def list_conversations(call: RouteCall) -> Response:
    """Every conversation and its last message."""
    found = await call.store.conversations()
    agents = call.site.gateway.agents
    listed = [
        conversation_json(one)
        | {"agent": agents.author(one.conversation).name, "visitor": visitor_of(call.site, one.conversation)}
        for one in found
    ]
    return answer({"conversations": listed})


async def open_conversation(call: RouteCall) -> Response:
    """Create a web conversation with a readable, unused address."""
    fields = await call.fields("name")
    name = fields.text("name", most=NAME_CHARS).strip()
    if not name:
        raise bad_request("The body: name must not be empty.")
    taken = {summary.conversation for summary in await call.store.conversations(platform="web")}
    key = web_conversation(slug(name))
    while key in taken:
        key = web_conversation(f"{slug(name)}-{secrets.token_hex(3)}")
    await call.store.open_conversation(key, name, ChatType.DIRECT)
    return answer({"conversation": str(key), "name": name, "platform": "web"}, status=201)


def web_conversation(channel: str) -> ConversationKey:
    return ConversationKey(platform="web", account="default", channel=channel)


def slug(name: str) -> str:
    """A short address from a name; letters of other scripts are kept."""
    folded = "".join(c for c in unicodedata.normalize("NFKD", name.lower()) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", folded).strip("-")[:SLUG_CHARS].rstrip("-") or secrets.token_hex(4)


async def explain_message(call: RouteCall) -> Response:
    """The history of one message."""
    return answer(as_json(await _explained(call, call.query("message"))))


async def retry_message(call: RouteCall) -> Response:
    """Repeat the failed turn of a message."""
    message = (await _explained(call, await call.fields("message"))).message
    try:
        retried = await call.site.gateway.retry_message(message)
    except NotFailed as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    return answer(retried_json(retried))


async def _explained(call: RouteCall, fields: Fields) -> Explanation:
    """The named message; a channel's token must name it by its own conversation."""
    name = fields.text("message", most=MESSAGE_NAME_CHARS)
    if call.visitor.grant.kind is GrantKind.CHANNEL:
        # A bare id or trace would reveal whether it exists elsewhere.
        conversation, slash, _ = name.partition("/")
        if not slash:
            raise not_found()
        call.visitor.must_see(parse_conversation(conversation))
    try:
        explanation = await explain(call.store, name)
    except NoSuchMessage:
        raise not_found() from None
    except SeveralMessages as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    call.visitor.must_see(explanation.message.conversation)
    return explanation


async def status(call: RouteCall) -> Response:
    """Summary of the gateway."""
    gateway = call.site.gateway
    return answer(
        {
            "version": __version__,
            "started": gateway.started,
            "agent": agent_json(call.site),
            "adapters": accounts_json(gateway.health()),
            "notices": [notice_json(notice) for notice in await gateway.owners.notices()],
            "config": asdict(gateway.reloader.state),
            "troubles": dict(gateway.troubles()),
            "soundness": [finding_json(finding) for finding in gateway.soundness()],
            "recording": recording_json(gateway.recorder.state()),
            "retention_days": gateway.config.retention_days,
            "waiting": await call.store.waiting_turns(),
            "counts": dict(await call.store.counts()),
            "savings": savings.as_json(await call.store.media_tallies()),
        }
    )


async def show_savings(call: RouteCall) -> Response:
    """Media seen and fetched, and what the rest would have cost."""
    return answer(savings.as_json(await call.store.media_tallies()))


def agent_json(site: Site) -> Json:
    """The default agent."""
    name, kind = site.gateway.agents.usual()
    return {"name": name, "kind": kind}


async def list_channels(call: RouteCall) -> Response:
    """Every channel and what it holds."""
    return answer({"channels": [channel_json(summary) for summary in await call.store.channels()]})


async def audit(call: RouteCall) -> Response:
    """Whether every arrival, attachment, parcel and blob is accounted for."""
    return answer((await call.site.gateway.audit()).as_json())


async def doctor(call: RouteCall) -> Response:
    """Findings and remedies of the doctor."""
    gateway = call.site.gateway
    running = RunningParts(
        adapters=gateway.adapters,
        health=gateway.health(),
        channels={(each.platform, each.account): tuple(each.access.channels) for each in gateway.config.adapters},
        agents=gateway.agents.checks(),
        speaker=gateway.speaker,
        troubles=gateway.troubles(),
        sandbox=gateway.sandbox,
        understanding=gateway.understanding,
    )
    findings = await examine(
        home=gateway.home,
        store=gateway.store,
        running=running,
        sandbox_required=gateway.config.media.sandbox == "required",
        soundness=(*gateway.soundness(), *gateway.recorder.findings()),
    )
    return answer({"ok": all(finding.ok for finding in findings), "findings": [finding_json(f) for f in findings]})


async def show_recording(call: RouteCall) -> Response:
    """The state of the recording; null if there is none."""
    return answer({"recording": recording_json(call.site.gateway.recorder.state())})


async def start_recording(call: RouteCall) -> Response:
    """Start to record one conversation, or all of them."""
    fields = await call.fields("conversation", "without_text", "without_media")
    where = fields.conversation("conversation") if fields.has("conversation") else None
    try:
        begun = await call.site.gateway.record(
            where, without_text=fields.flag("without_text"), without_media=fields.flag("without_media")
        )
    except RecordingRefused as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    return answer({"recording": recording_json(begun)}, status=201)


async def stop_recording(call: RouteCall) -> Response:
    """End the recording and write its cassette, on this machine."""
    try:
        written = await call.site.gateway.stop_recording()
    except RecordingRefused as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    except StoreError as error:
        raise Refusal(507, Code.INTERNAL, str(error)) from None
    return answer({**asdict(written), "path": str(written.path)})


def recording_json(recording: Recording | None) -> Json | None:
    """A recording in wire format."""
    return None if recording is None else asdict(recording)

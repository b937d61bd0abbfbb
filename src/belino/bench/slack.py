"""Slack: API calls of a workspace, compared with an app that reads the channel at every reply."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from belino.bench import Row
from belino.bench.start import resident
from belino.testing import GatewayProcess, SlackPace, SlackServer

CHANNELS = 50
BEFORE = 30
REPLIES = 10
TIER_3 = 50
"""The limit of conversations.history and conversations.replies calls a minute."""
WAIT_SECONDS = 300.0
LOOK_AGAIN_SECONDS = 0.02
BESIDE = "asks for every thread"
READS = ("conversations.history", "conversations.replies")
NAMES = ("users.info", "users.list", "users.conversations", "conversations.info", "bots.info")

# How most apps find the context of a reply, with the standard library: fetch the thread whenever it grows.
ASKING = """
import json, sys, urllib.parse, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

api, token, me = sys.argv[1:]

def call(method, **fields):
    body = urllib.parse.urlencode(fields).encode()
    wish = urllib.request.Request(api + method, body, {"Authorization": "Bearer " + token})
    with urllib.request.urlopen(wish, timeout=90) as answer:
        return json.load(answer)

class Events(BaseHTTPRequestHandler):
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "challenge" in told:
            self.answer(told["challenge"].encode())
            return
        self.answer(b"")
        event = told["event"]
        if event["type"] != "message" or event.get("bot_id") or event.get("subtype"):
            return
        channel, thread = event["channel"], event.get("thread_ts")
        if thread:
            call("conversations.replies", channel=channel, ts=thread, limit=100)
        if "<@" + me + ">" in event["text"]:
            if not thread:
                call("conversations.history", channel=channel, limit=50)
            where = {"channel": channel, "thread_ts": thread} if thread else {"channel": channel}
            call("chat.postMessage", text="You said this.", **where)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *words):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *whose):
        if not isinstance(sys.exception(), ConnectionError):  # Slack hangs up on who is late, and calls again
            super().handle_error(*whose)

server = Server(("127.0.0.1", 0), Events)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(slots=True, kw_only=True)
class Workspace:
    """Fifty channels with messages from before the app listened."""

    slack: SlackServer
    channels: list[dict[str, Any]] = field(default_factory=list)
    people: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.people = [self.slack.user(f"Person {number}") for number in range(10)]
        for number in range(CHANNELS):
            channel = self.slack.channel(f"channel-{number}", *self.people)
            self.channels.append(channel)
            for said in range(BEFORE):
                self.slack.compose(self.slack.channels[channel["id"]], self.people[said % 10], f"said before: {said}")

    def ask(self) -> list[dict[str, Any]]:
        """One question in every channel."""
        mention = f"<@{self.slack.bot['id']}>"
        return [self.slack.say(channel, self.people[0], f"{mention} what was said?") for channel in self.channels]

    async def talk(self, roots: list[dict[str, Any]]) -> None:
        """Replies below every question, the last of them to the agent; no faster than both designs can receive."""
        for number in range(REPLIES):
            for channel, root in zip(self.channels, roots, strict=True):
                mention = f"<@{self.slack.bot['id']}> " if number == REPLIES - 1 else ""
                self.slack.say(channel, self.people[number % 10], f"{mention}reply {number}", thread=root)
            await _until(self.slack, lambda: not self.slack.deliveries.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """The calls of one design."""

    cold: int
    steady: int
    names: int
    lost: int
    answers: int
    megabytes: float


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure both designs on the same workspace, one after the other. A corpus has no effect."""
    ours, beside = asyncio.run(_measure(_belino)), asyncio.run(_measure(_asking))
    replies = CHANNELS * REPLIES
    return [
        Row(
            metric=f"calls for what was said, cold start, {CHANNELS} active channels",
            ours=ours.cold,
            beside_name=BESIDE,
            beside=beside.cold,
            goal="≤ 1 a channel",
            ok=ours.cold <= CHANNELS and not ours.lost,
        ),
        Row(
            metric=f"calls for what was said, {replies} replies in threads",
            ours=ours.steady,
            beside_name=BESIDE,
            beside=beside.steady,
            goal="0",
            ok=ours.steady == 0,
        ),
        Row(
            metric=f"minutes those calls take at {TIER_3} a minute",
            ours=(ours.cold + ours.steady) / TIER_3,
            beside_name=BESIDE,
            beside=(beside.cold + beside.steady) / TIER_3,
        ),
        Row(metric="calls for names of people and channels", ours=ours.names, beside_name=BESIDE, beside=beside.names),
        Row(
            metric="questions answered",
            ours=ours.answers,
            beside_name=BESIDE,
            beside=beside.answers,
            goal=f"all {2 * CHANNELS}",
            ok=ours.answers == 2 * CHANNELS,
        ),
        Row(metric="MB in memory at the end", ours=ours.megabytes, beside_name=BESIDE, beside=beside.megabytes),
    ]


Design = Callable[[SlackServer, Workspace, Path], AbstractAsyncContextManager[int]]


async def _measure(design: Design) -> CallCost:
    # Slack's limits apply only to the design that keeps them; the other would take a quarter of an hour.
    strict = design is _belino
    pace = SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=100_000, other=TIER_3 if strict else 10**6)
    async with SlackServer(pace=pace) as slack:
        workspace = Workspace(slack=slack)
        with TemporaryDirectory(prefix="belino-bench-") as folder:
            async with design(slack, workspace, Path(folder)) as pid:
                roots = workspace.ask()
                await _until(slack, lambda: len(slack.sent) == CHANNELS)
                cold = _reads(slack)
                await workspace.talk(roots)
                await _until(slack, lambda: len(slack.sent) == 2 * CHANNELS and not slack.deliveries.waiting)
                megabytes = resident(pid)
        return CallCost(
            cold=cold,
            steady=_reads(slack) - cold,
            names=sum(slack.calls[name] for name in NAMES),
            lost=len(slack.deliveries.lost),
            answers=len(slack.sent),
            megabytes=megabytes,
        )


def _reads(slack: SlackServer) -> int:
    return sum(slack.calls[name] for name in READS)


async def _until(slack: SlackServer, happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not happened():
            await slack.clock.sleep(LOOK_AGAIN_SECONDS)


@asynccontextmanager
async def _belino(slack: SlackServer, workspace: Workspace, folder: Path) -> AsyncIterator[int]:
    """The real gateway in a process of its own, with the demo agent."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    listed = "".join(
        f'[adapters.slack.access.channels.{channel["id"]}]\nsenders = ["*"]\nparticipation_minutes = 0\n'
        for channel in workspace.channels
    )
    (home / "belino.toml").write_text(
        f'[logs]\nlevel = "error"\n[pace]\ncalls_per_minute = {TIER_3}\n[adapters.slack]\nbot_token = "env:BENCH_BOT"\n'
        f'app_token = "env:BENCH_APP"\napi_url = "{slack.api_url}"\n{listed}',
        encoding="utf-8",
    )
    environment = {"BENCH_BOT": slack.bot_token, "BENCH_APP": slack.app_token}
    gateway = GatewayProcess(home, environment=environment)
    await asyncio.to_thread(gateway.start)
    try:
        await _until(slack, lambda: bool(slack.socket_mode.connections))
        yield gateway.pid
    finally:
        await asyncio.to_thread(gateway.stop)


@asynccontextmanager
async def _asking(slack: SlackServer, workspace: Workspace, folder: Path) -> AsyncIterator[int]:
    """An app in a process of its own that stores nothing."""
    command = [sys.executable, "-c", ASKING, slack.api_url, slack.bot_token, slack.bot["id"]]
    process = await asyncio.to_thread(subprocess.Popen, command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(await asyncio.to_thread(process.stdout.readline))
        await slack.use_http(f"http://127.0.0.1:{port}/events")
        yield process.pid
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)

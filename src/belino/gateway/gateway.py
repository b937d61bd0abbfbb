"""Gateway: construct, run and close every part of belino."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime, timedelta, tzinfo
from functools import cached_property, partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from belino.aio.deadline import deadline
from belino.aio.retry import Retry
from belino.cassette.journal import Journal
from belino.cassette.pseudonyms import Secrets
from belino.config import Config
from belino.context import line_format
from belino.context.history import History
from belino.delivery.connections import Account
from belino.delivery.outgoing_files import Keeper
from belino.delivery.prepare import Preparer
from belino.delivery.send import ParcelNews, Sender, SenderCallbacks
from belino.delivery.typing import Signs
from belino.domain import tokens
from belino.domain.audit import Audit
from belino.domain.errors import Busy, MediaError
from belino.domain.failpoints import failpoint
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import CacheSize, Counters, Finding, MessageOutcome, TurnState
from belino.domain.ports import Agent, Clock, Taken
from belino.domain.stored import ClaimedParcel, ParcelRecord, StoredMessage, Tidied
from belino.domain.turn import Toolbox
from belino.gateway.access import wake_words, why_not_still
from belino.gateway.accounts import Accounts, MakeAdapter, TakesPosts, from_registry, open_on_behalf
from belino.gateway.cassettes import WrittenCassette, begin, finish, secrets_of
from belino.gateway.channel_inbox import ChannelInbox
from belino.gateway.commands import CommandCallbacks, Commands
from belino.gateway.events import EventBus
from belino.gateway.explain import retry_failed
from belino.gateway.health import HealthBoard
from belino.gateway.intake import Intake, IntakeCallbacks
from belino.gateway.joining import Joiner
from belino.gateway.maintenance import Backups, Maintenance, index_ahead, try_all_decoders
from belino.gateway.media_views import MediaViews
from belino.gateway.operations import AccountOperations
from belino.gateway.owners import Groups, Owners
from belino.gateway.publisher import Publisher
from belino.gateway.recorder import Recorder, Recording
from belino.gateway.reload import ConfigSource, MediaReaders, Reloader, no_source
from belino.gateway.sessions import Sessions
from belino.gateway.unasked import UnaskedMessages
from belino.gateway.voice import make_speaker
from belino.media.fetch import Fetcher
from belino.media.sandbox.sandbox import Sandbox
from belino.net.client import Client
from belino.net.clock import SystemClock, time_zone
from belino.net.guard import Guard
from belino.net.tap import Closable, TappedClient
from belino.storage.home import Home
from belino.storage.static_vectors import SearchConfig
from belino.storage.store import Store, open_store
from belino.tools.ipc import Bridge, BridgeTools
from belino.tools.server import load_server
from belino.turns.agents import Agents
from belino.turns.environment import Environment, TurnMedia, TurnObservers
from belino.turns.reply import Downloads, Flushed, Replies
from belino.turns.runner import TurnRunner
from belino.turns.tool_access import ToolAccess

if TYPE_CHECKING:
    from belino.gateway.readings import BackgroundReadings
    from belino.media.audio import Sounds
    from belino.media.image.images import Images
    from belino.media.render import Renderer
    from belino.understanding.read import Hold, Understanding
    from belino.understanding.speaker import Speaker

log = logging.getLogger(__name__)

SENDING_GRACE_SECONDS = 2.0
CLOSING_SECONDS = 5.0


class OpensStore(Protocol):
    """Opens a store: by default that of the state folder."""

    async def __call__(self, place: Home, /, *, clock: Clock, zone: tzinfo, search: SearchConfig) -> Store: ...


class Gateway(AccountOperations, MediaViews):
    """All of belino, in one process and one event loop. `async with` opens and closes it; `run` runs it."""

    store: Store
    agents: Agents
    started: datetime
    history: History
    owners: Owners
    groups: Groups

    def __init__(
        self,
        config: Config,
        home: Home,
        *,
        store: OpensStore = open_store,
        clock: Clock | None = None,
        agent: Agent | None = None,
        make_adapter: MakeAdapter = from_registry,
        outside: Closable | None = None,
        source: ConfigSource | None = None,
        understanding: "Callable[[Gateway, Hold], Understanding] | None" = None,
        rng: Random | None = None,
    ) -> None:
        """`store` opens the store that the gateway works on, and closes at its end.

        `source` reads the configuration again for a reload, such as `file_source(home)`; without one, only the program
        that made it can change it.
        """
        self.config = config
        self.home = home
        self.clock: Clock = clock or SystemClock()
        self.notices = EventBus()
        self.counters = Counters()
        self.turn_tools = ToolAccess()
        self.sandbox = Sandbox(config.media.sandbox, max_pixels=config.media.max_pixels)
        self._open_store = store
        self.recorder = Recorder(Journal(home.cassettes), secrets=Secrets(secrets_of(config)), clock=self.clock)
        self._agent = agent
        self._health = HealthBoard(self.clock, works=self._account_works, changed=self._health_changed)
        self.publisher = Publisher(lambda: self.store, lambda: self.config.server, self.small_picture)
        self.accounts = Accounts(
            make_adapter,
            clock=self.clock,
            guard=Guard(config.net.allow),
            witness=self.recorder,
            health=self._health,
            publisher=self.publisher,
            moves=self.moves,
            home=home,
        )
        self._outside = outside
        """Fetches the URLs an agent names; our own client, unless one is passed."""
        self._make_understanding = understanding
        """Makes what reads media as text; of the configuration, unless another is passed."""
        self._rng = rng or Random()  # noqa: S311 - jitter, not a secret
        self._insist = Retry(self.clock, self._rng)
        self.reloader = Reloader(self, source or ConfigSource(load=no_source))
        self._open = AsyncExitStack()
        self._checking_media, self._stopping = asyncio.Lock(), asyncio.Event()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            zone = time_zone(self.config.context.timezone)
            search = self.config.search
            self.store = await self._open_store(self.home, clock=self.clock, zone=zone, search=search)
            opening.push_async_callback(self.store.close)
            self.owners = self._make_owners()
            self.groups = Groups(self.store, self.owners, changed=self.refresh_access)
            await self.groups.load()
            await self.moves.load()
            self._construct(opening)
            self.recorder.resume()
            opening.callback(self.recorder.journal.close)
            self._open = opening.pop_all()
        failpoint("start.opened")
        self.started = self.clock.now()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    @property
    def web(self) -> TakesPosts | None:
        """The adapter for messages from our own pages, if it is configured."""
        return next((adapter for adapter in self.adapters.values() if isinstance(adapter, TakesPosts)), None)

    @cached_property
    def images(self) -> "Images":
        """Decodes pictures in the sandbox; its leftovers after a crash are swept with other unfinished files."""
        from belino.media.image.images import Images

        return Images(self.sandbox, self.store.scratch, self.store.local)

    @cached_property
    def renderer(self) -> "Renderer":
        """Makes renditions in the sandbox, and stores them."""
        from belino.media.render import make_renderer

        return make_renderer(self.sandbox, self.store.scratch, self.store, images=self.images)

    @property
    def understanding(self) -> "Understanding":
        """Reads media as text."""
        return self._readers.understanding

    @property
    def read_ahead(self) -> "BackgroundReadings":
        """Reads media between turns, where `tools.media.read_ahead` says so."""
        return self._readers.read_ahead

    @cached_property
    def sounds(self) -> "Sounds":
        """Encodes sounds, in the sandbox."""
        from belino.media.audio import Sounds

        return Sounds(self.sandbox, self.store.scratch, self.store.local)

    async def run(self) -> None:
        """Run until `stop`; then stop listening, wait for running turns, and requeue those that do not end in time."""
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._sender.run())
            answering = group.create_task(self._sessions.run())
            filing = group.create_task(self._replies.run())
            self.accounts.start(group, self._listen)
            others = [group.create_task(work()) for work in (self._upkeep.run, self.owners.watch, self.reloader.run)]
            others.append(group.create_task(self._upkeep.follow_deletions()))
            others.append(group.create_task(index_ahead(self.store, self.clock)))
            others.append(group.create_task(try_all_decoders(self.clock)))
            others.append(group.create_task(self.agents.prepare_all(self.clock, self._load_tools, load_server)))
            others.append(group.create_task(self._backups.run()))
            others.append(group.create_task(self._signs.run()))
            others.append(group.create_task(self._bridge.run()))
            others.append(group.create_task(self.linking.run()))
            self._readers.start(group)
            await self._stopping.wait()
            failpoint("stop.begin")
            self.channel_inbox.stop()
            self.unasked.stop()
            self.accounts.stop()
            self._readers.stop()
            for task in others:
                task.cancel()
            self._sessions.stop()
            await self._ended(answering, self.config.sessions.shutdown_seconds + CLOSING_SECONDS)
            failpoint("stop.turns.ended")
            self._sender.stop(SENDING_GRACE_SECONDS)
            await self._ended(sending, SENDING_GRACE_SECONDS + CLOSING_SECONDS)
            self._replies.stop(SENDING_GRACE_SECONDS)
            await self._ended(filing, SENDING_GRACE_SECONDS + CLOSING_SECONDS)

    async def check_media(self, account: Account, to: ConversationKey | None = None) -> tuple[Finding, ...]:
        """Send one of each kind of media, read it back and compare; by default to the first owner on the account."""
        from belino.gateway.media_check import MediaCheckTools, check_media

        async with self._checking_media:
            attempted = partial(self._health.attempted, account)
            tools = MediaCheckTools(keeper=self._keeper(), preparer=self._preparer, open_ref=self._open_media)
            return await check_media(self, account, to, tools=tools, attempted=attempted)

    async def _ended(self, task: asyncio.Task[None], seconds: float) -> None:
        """Wait for a task that was asked to stop; cancel it if it still waits for the store."""
        try:
            async with deadline(self.clock, seconds):
                await asyncio.wait({task})
        except TimeoutError:
            task.cancel()

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stopping.set()

    async def accept(self, arrival: Arrival, cursor: str | None = None) -> Taken:
        """Accept an arrival; when this returns, arrival and cursor are on disk."""
        return await self._intake.accept(arrival, cursor=cursor)

    async def accept_many(self, arrivals: Iterable[Arrival]) -> tuple[Taken, ...]:
        """Accept arrivals that came together."""
        return await self._intake.accept_all([(arrival, None) for arrival in arrivals])

    async def retry_message(self, message: StoredMessage) -> tuple[StoredMessage, ...]:
        """Run a message's failed turn again, with the rest of its album; NotFailed if it did not fail."""
        most = self.config.sessions.max_waiting
        if await self.store.waiting_turns() >= most:
            raise Busy(f"{most} messages wait for their turn (sessions.max_waiting); try again when some are answered")
        retried = await retry_failed(self.store, message)
        for each in retried:
            self.notices.message(each)
        self._sessions.queued(1)
        self._sessions.wake(retried[0].conversation)
        self.notices.turn(message.conversation, 0, TurnState.WAITING)
        return retried

    async def abort(self, conversation: ConversationKey) -> bool:
        """Stop the running turn of a conversation; False if there is none."""
        return self._turns.abort(conversation)

    def toolbox(self, conversation: ConversationKey) -> Toolbox:
        """A conversation's tools, for a client that is not in a turn."""
        return self._turns.toolbox(conversation)

    async def flush(self, conversation: ConversationKey | None = None) -> tuple[Flushed, ...]:
        """Send the files in the folder `pending` of a conversation, or of all, without a turn."""
        return await self._replies.flush_all() if conversation is None else (await self._replies.flush(conversation),)

    async def retry_parcel(self, key: str) -> ParcelRecord | None:
        """Send a parcel that was held, given up or delayed; None if that is no longer possible."""
        return self._parcel_asked(await self.store.retry_parcel(key))

    async def drop_parcel(self, key: str) -> ParcelRecord | None:
        """Give a parcel up for good; None if it is sent, being sent or given up already."""
        return self._parcel_asked(await self.store.drop_parcel(key))

    async def record(
        self,
        conversation: ConversationKey | None = None,
        *,
        without_text: bool = False,
        without_media: bool = False,
    ) -> Recording:
        """Start recording a conversation, or all of them, until `stop_recording`, also across restarts."""
        return await begin(self, conversation, without_text=without_text, without_media=without_media)

    async def stop_recording(self) -> WrittenCassette:
        """Stop the recording and write its cassette."""
        return await finish(self)

    def soundness(self) -> tuple[Finding, ...]:
        """Findings about the state folder: the database, the bytes of media, and scheduled backups."""
        return (*self._upkeep.soundness(), *self._backups.finding())

    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied:
        """Collect garbage in the state folder, or only count it."""
        return await self._upkeep.tidy(dry_run=dry_run, all_strays=all_strays)

    async def audit(self) -> Audit:
        """Check that everything in the store is accounted for."""
        return await self.store.audit()

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The size of every cache, so that a cache that fills can be told from a leak."""
        made = [self.__dict__[name] for name in ("images", "renderer") if name in self.__dict__]  # on first use only
        sizes = {
            **self.store.cache_sizes(),
            "media": self._fetcher.memory_size,
            "token_prices": tokens.cache_size(),
            "written_lines": line_format.cache_size(),
        }
        for part in made:
            sizes |= part.cache_sizes()
        return sizes

    def troubles(self) -> Mapping[str, str]:
        """Store calls that are being retried, each with the reason; empty when all is well."""
        return dict(self._insist.troubles)

    def _construct(self, opening: AsyncExitStack) -> None:
        opening.push_async_callback(self.sandbox.close)
        opening.push_async_callback(self.accounts.close)
        for config in self.config.adapters:
            self.accounts.add(self.accounts.make(config))
        self.agents = Agents(self.config.agent, self._agent)
        opening.push_async_callback(self.agents.close)
        self._access = {(each.platform, each.account): self._account_access(each) for each in self.config.adapters}
        self._sender = self._make_sender()
        self._fetcher = Fetcher(
            self.store, self.store, self._open_media, self.config.media, self.clock, self.counters.memory
        )
        self.history = self._make_history()
        self.speaker = self._make_speaker(opening)
        self._preparer = Preparer(
            self.store, lambda: self.images, lambda: self.sounds, unpublished=self.publisher.why_not
        )
        self._replies = self._make_replies(opening)
        self._upkeep = Maintenance(
            self.store, self._fetcher, self._replies, config=self.config, home=self.home, clock=self.clock
        )
        self._backups = Backups(self.config.backup, self.home, self.clock)
        self._signs = Signs(self.adapters, self.config.delivery.sign, self.clock)
        self._turns = self._make_turns()
        self._bridge = self._make_bridge()
        self.unasked = UnaskedMessages(self.store, self._replies, self.notices, self.clock, self._keeper)
        self.channel_inbox = ChannelInbox(
            self.store, self._replies, self.unasked, self.notices, self.clock, given=self._signs.show_once
        )
        self._sessions = Sessions(
            self.store,
            self._turns.run,
            owner=self.store.instance,  # the same at every start, so that a crash is recovered from
            config=self.config.sessions,
            clock=self.clock,
            rng=self._rng,
            insist=self._insist,
        )
        self._readers = MediaReaders(
            self._new_understanding, self._new_read_ahead, ahead=lambda: self.config.tools.media.read_ahead != "off"
        )
        opening.push_async_callback(self._readers.close)
        self._commands = self._make_commands()
        self._intake = self._make_intake()

    def _make_commands(self) -> Commands:
        callbacks = CommandCallbacks(
            abort=self._turns.abort,
            put=self._sender.wake,
            changed=self._stopped,
            ended=lambda turns: self._sessions.queued(-turns),
            speaks=lambda: None if self.speaker is None else self.speaker.config.auto,
        )
        return Commands(self.store, self.agents, self.adapters, callbacks)

    def _arrived(self, arrival: Arrival, taken: Taken) -> None:
        self.recorder.arrived(arrival, taken)
        if taken.refs:
            self._bridge.arrived(arrival.conversation)
        if taken.outcome is MessageOutcome.WAITING and isinstance(arrival, Message):
            self._signs.waits(arrival, is_full=self._sessions.is_full)

    def _deleted(self) -> None:
        self._bridge.deleted()
        self._upkeep.deletion()

    def _make_bridge(self) -> Bridge:
        toolbox = self._turns.container_toolbox
        tools = BridgeTools(of_turn=partial(toolbox, of_turn=True), outside=partial(toolbox, of_turn=False))
        return Bridge(
            tools,
            wanted=self.agents.in_container,
            known=self.store.conversations,
            folder=self.home.bridged,
            lifetime=lambda: timedelta(minutes=self.config.media.ref_ttl_minutes),
            clock=self.clock,
        )

    def _stopped(self, message: StoredMessage) -> None:
        """Publish a message that no turn answers any more."""
        self._signs.forget(message)
        self.notices.message(message)

    def _make_intake(self) -> Intake:
        return Intake(
            self.store,
            self._access,
            self._sessions,
            config=self.config.sessions,
            clock=self.clock,
            notices=self.notices,
            counters=self.counters,
            callbacks=IntakeCallbacks(
                arrived=self._arrived,
                deleted=self._deleted,
                to_send=self._sender.wake,
                heard=self._health.heard,
            ),
            commands=self._commands,
            groups=self.groups,
            moves=self.moves,
            joiner=Joiner(self.config.sessions, self.adapters, self._turns.underway),
            hears_first=self.config.tools.media.audio_preflight,
        )

    def _load_tools(self) -> None:
        """Describe the tools of some conversation, which loads what reads and renders media."""
        nowhere = ConversationKey(platform="web", account="default", channel="nowhere")
        _ = self.toolbox(nowhere).specs

    def _new_understanding(self) -> "Understanding":
        from belino.gateway.understanding import understanding_of

        return (self._make_understanding or understanding_of)(self, self._held)

    def _new_read_ahead(self) -> "BackgroundReadings":
        from belino.gateway.readings import BackgroundReadings

        return BackgroundReadings(self, self._held, self._access, self._sessions)

    def _make_speaker(self, opening: AsyncExitStack) -> "Speaker | None":
        return make_speaker(self.config, self.home, self.store, sandbox=self.sandbox, clock=self.clock, opening=opening)

    def _make_turns(self) -> TurnRunner:
        return TurnRunner(
            self.store,
            self.agents,
            self.adapters,
            media=TurnMedia(
                fetcher=self._fetcher,
                renderer=lambda: self.renderer,
                understanding=lambda: self.understanding,
                wake_words=lambda where: wake_words(
                    self.store, where, self._access.get((where.platform, where.account))
                ),
                link=self.publisher.media,
            ),
            history=self.history,
            replies=self._replies,
            environment=Environment(
                config=self.config, home=self.home, clock=self.clock, insist=self._insist, tools=self.turn_tools
            ),
            observers=TurnObservers(
                events=self.notices,
                counters=self.counters,
                recorder=self.recorder,
                owners=self.owners,
                replied=self._sender.wake,
                signs=self._signs,
                commanded=lambda command, claimed: self._commands.carry_out(command, claimed),
                begins=lambda where: self._bridge.begin(where),
            ),
        )

    def _keeper(self) -> Keeper:
        return Keeper(self.store, self.images, max_bytes=self.config.media.max_bytes)

    def _make_replies(self, opening: AsyncExitStack) -> Replies:
        # URLs that an agent names: `net.allow` applies, the addresses that adapters may reach do not.
        http = TappedClient(self._outside or Client(guard=Guard(self.config.net.allow)), self.recorder, ("", ""))
        opening.push_async_callback(http.close)
        return Replies(
            self.store,
            self.adapters,
            self._preparer,
            keeper=self._keeper,
            downloads=Downloads(http=http, limits=self._fetcher.allowances),
            home=self.home,
            clock=self.clock,
            put=self._sender.wake,
            speaker=self.speaker,
            inline_code_lines=self.config.delivery.inline_code_lines,
        )

    def _make_history(self) -> History:
        days = self.config.retention_days
        return History(
            self.store,
            self.adapters,
            config=self.config.pace,
            clock=self.clock,
            counts=self.counters.history,
            keeps=timedelta(days=days) if days else None,
            text_chars=self.config.sessions.max_text_chars,
            recalled=self.recorder.recalled,
            may_command=lambda message: self._intake.may_command(message),
        )

    def _make_sender(self) -> Sender:
        callbacks = SenderCallbacks(
            author=self.agents.author,
            may_still=self._may_still,
            note=self.store.note,
            parcel=self._parcel_news,
            message=self.notices.message,
            attempted=self._health.attempted,
            timed=self._deleted,
        )
        return Sender(
            self.store,
            self.adapters,
            config=self.config.delivery,
            callbacks=callbacks,
            clock=self.clock,
            rng=self._rng,
            insist=self._insist,
        )

    async def _may_still(self, claimed: ClaimedParcel) -> str:
        where = claimed.parcel.conversation
        return await why_not_still(claimed, self.store, self._access.get((where.platform, where.account)))

    def _make_owners(self) -> Owners:
        return Owners(
            self.store,
            self.adapters,
            self._health,
            config=self.config.access,
            clock=self.clock,
            events=self.notices,
            wake=lambda conversation: self._sender.wake(conversation),
        )

    def _parcel_asked(self, record: ParcelRecord | None) -> ParcelRecord | None:
        """Publish an operator's decision about a parcel, and wake the sender: other parcels may follow now."""
        if record is not None:
            where = record.conversation
            self._parcel_news(ParcelNews(key=record.key, conversation=where, state=record.state, reason=record.reason))
            self._sender.wake(where)
        return record

    def _parcel_news(self, news: ParcelNews) -> None:
        self.counters.parcels[news.state] += 1
        self.notices.parcel(news)
        self.recorder.parcel(news.conversation, news.key, news.state, news.reason)
        self._replies.parcel_news(news)
        self._turns.parcel_news(news)

    def _open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        adapter = self.adapters.get((ref.platform, ref.account))
        if adapter is None:
            raise MediaError(f"{ref.id} cannot be opened: the account {ref.platform}:{ref.account} is not configured")
        return open_on_behalf(adapter, ref)

"""Every error belino raises on purpose, grouped by who must act.

BelinoError
├── ConfigError              the operator: a setting is wrong
├── StoreError               the operator: the state folder cannot be used
│   ├── StoreInUse           another gateway holds it
│   ├── StoreTooNew          a newer belino wrote it
│   ├── StoreDamaged         the database cannot be read: repair or restore it
│   ├── StoreIncomplete      the database or the key is missing beside the rest of the state
│   └── StoreUnwritable      nothing was stored; it can be tried again
│       ├── StoreFull        the disk is full
│       ├── StoreReadOnly    the state folder can only be read
│       └── StoreBusy        another process holds the database
├── AdapterError             belino: try again, the platform failed
│   ├── RateLimited          belino: wait `retry_after` seconds
│   ├── Unauthorized         the operator: the platform refused our credentials
│   ├── ListeningRefused     the operator: the platform hands out no events; sending works
│   ├── AddressRefused       the operator: belino does not connect to such an address
│   ├── Unreached            belino: try again, the platform received nothing
│   ├── Unanswered           belino: no answer came, the platform may have done it
│   ├── Undeliverable        final: the platform will never accept this parcel
│   │   ├── NothingToEdit    belino: send the same as a new message
│   │   └── Withheld         the operator: the platform accepts it later; it is held
│   │       └── WindowClosed the person: it is sent once they write
│   └── MarkupRefused        belino: send the same without markup
├── MediaError               the person who sent it
│   ├── MediaNotFound        no such ref here
│   ├── MediaExpired         the platform no longer has the bytes
│   ├── MediaTooLarge        over `limit` bytes
│   ├── OverDailyLimit       the channel has used up its daily limit
│   ├── UploadsFull          uploads that no message took yet fill their total limit
│   └── MediaRefused         the bytes are not of the required form
├── ProviderError            belino: ask the next provider
├── AgentError               the operator: the agent could not answer
│   └── MemoryLost           belino: ask again, with the whole context
├── ToolError                the agent: a sentence it can act on
├── ScopeError               final: something tried to reach outside its channel
├── UploadError              the uploading client: wrong offset, hash or size
└── Busy                     the sender: too much is queued, try again
"""


class BelinoError(Exception):
    """Anything belino raises on purpose."""


class ConfigError(BelinoError):
    """A setting is wrong; the message names the key and the way out."""


class StoreError(BelinoError):
    """The state folder cannot be used as it is."""


class StoreInUse(StoreError):
    """Another gateway uses the same state folder."""


class StoreTooNew(StoreError):
    """The database was written by a newer belino."""


class StoreDamaged(StoreError):
    """SQLite reports that the database file is corrupt, or not a database."""


class StoreIncomplete(StoreError):
    """The database or the key is missing while other state exists; the message lists the options."""


class StoreUnwritable(StoreError):
    """The store cannot be written to at the moment; the same write may succeed later."""


class StoreFull(StoreUnwritable):
    """The disk is full."""


class StoreReadOnly(StoreUnwritable):
    """The state folder can only be read."""


class StoreBusy(StoreUnwritable):
    """Another process holds the database."""


class AdapterError(BelinoError):
    """A platform call failed and may be retried."""


class RateLimited(AdapterError):
    """The platform asks us to wait."""

    def __init__(self, message: str, *, retry_after: float, is_global: bool = False) -> None:
        """`is_global`: it holds for all of the account, not only for this conversation."""
        super().__init__(message)
        self.retry_after = retry_after
        self.is_global = is_global


class Unauthorized(AdapterError):
    """The platform refused our credentials."""


class ListeningRefused(AdapterError):
    """The platform hands out no events, for example because another program gets them; sending is not affected."""

    def __init__(self, message: str, *, removable: bool = False) -> None:
        super().__init__(message)
        self.removable = removable
        """Whether the adapter can remove the reason, once the operator agrees; see TakesOver."""


class AddressRefused(AdapterError):
    """A URL leads to an address that belino does not connect to; a retry fails as well."""


class Unreached(AdapterError):
    """The platform could not be reached: it has done nothing."""


class Unanswered(AdapterError):
    """The platform did not answer: it may have done what was requested."""


class Undeliverable(AdapterError):
    """The platform will never accept this parcel; retries are useless."""


class TogetherRefused(Undeliverable):
    """The platform will never accept these files in one call; each may be sent in a call of its own."""

    def __init__(self, message: str, *, culprit: int | None = None) -> None:
        super().__init__(message)
        self.culprit = culprit
        """The place of the only file that it refuses, from 0, if it says so: that one is sent as a document."""


class NothingToEdit(Undeliverable):
    """The message that a parcel edits is gone."""


class Withheld(Undeliverable):
    """The platform accepts no such parcel until something happens."""


class WindowClosed(Withheld):
    """The person has not written for so long that the platform accepts it only once they write again."""


class Unfindable(AdapterError):
    """The platform does not show what it did with a parcel, for example one that a single person sees."""


class PlaceClosed(Undeliverable):
    """A thread or topic is gone or takes no messages; the parcel can be sent to the channel that it is part of."""

    def __init__(self, message: str, *, reply_to: str | None = None, is_told: bool = True) -> None:
        super().__init__(message)
        self.reply_to = reply_to
        """The message of the channel that it answers there, if any."""
        self.is_told = is_told
        """Whether people are told why the answer is in the channel."""


class MarkupRefused(AdapterError):
    """The platform cannot parse the markup; it accepts the same text without."""


class MediaError(BelinoError):
    """The bytes of a media ref are not available."""


class MediaNotFound(MediaError):
    """There is no such media in this channel."""


class MediaExpired(MediaError):
    """The platform no longer provides the bytes."""


class MediaTooLarge(MediaError):
    """The bytes are over a limit."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class OverDailyLimit(MediaError):
    """The channel has used up its daily limit of bytes."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class UploadsFull(MediaError):
    """Uploads that no message took yet have used up their total limit."""


class MediaRefused(MediaError):
    """The bytes are not of the required form."""


class ProviderError(BelinoError):
    """A provider could not read the media."""


class AgentError(BelinoError):
    """The agent could not finish its turn.

    The message is for people in the chat; with `says`, it is for the operator and people read that instead.
    """

    def __init__(self, message: str = "", *, says: str = "") -> None:
        super().__init__(message)
        self.says = says


class MemoryLost(AgentError):
    """The agent's memory is gone or unusable; nothing of this turn has been answered yet."""


class ToolError(BelinoError):
    """A sentence for the agent: why the call failed and what it may do instead."""


class ScopeError(BelinoError):
    """Something tried to reach outside its channel."""


class UploadError(BelinoError):
    """An upload does not match its announcement."""


class Busy(BelinoError):
    """Too much is queued; the same call may succeed later."""


class NoSuchMessage(BelinoError):
    """No stored message has this name."""


class SeveralMessages(BelinoError):
    """A name may mean more than one message; the error lists them."""


def reason_of(error: BaseException) -> str:
    """A sentence for people: the message of our own errors; of others only the type, as messages may hold secrets."""
    return (str(error) if isinstance(error, BelinoError) else "") or type(error).__name__


def place_of(error: BaseException) -> str:
    """A line for the log: the type of the error, and the file and line where it was raised."""
    # Without the module traceback, which `belino --help` would then import.
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" at {trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{where}"

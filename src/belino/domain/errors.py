"""Every error belino raises on purpose, grouped by who must act.

BelinoError
├── ConfigError              the operator: a setting is wrong
├── StoreError               the operator: the state folder cannot be used
│   ├── StoreInUse           another gateway holds it
│   ├── StoreTooNew          a newer belino wrote it
│   ├── StoreDamaged         the database cannot be read: repair or restore it
│   ├── StoreIncomplete      the database or the key is missing beside the rest of the state
│   └── StoreUnwritable      nothing was kept; it can be offered again
│       ├── StoreFull        the disk is full
│       ├── StoreReadOnly    the state folder can only be read
│       └── StoreBusy        another process holds the database
├── AdapterError             belino: try again, the platform failed
│   ├── RateLimited          belino: wait `retry_after` seconds
│   ├── Unauthorized         the operator: the platform refused our credentials
│   ├── AddressRefused       the operator: belino does not connect to such an address
│   ├── Unreached            belino: try again, the platform heard nothing
│   ├── Unanswered           belino: no answer came, the platform may have done it
│   ├── Undeliverable        nobody: the platform will never take this parcel
│   │   └── NothingToEdit    belino: say the same in a message of its own
│   └── MarkupRefused        belino: send the same without markup
├── MediaError               the person who sent it
│   ├── MediaNotFound        no such ref here
│   ├── MediaExpired         the platform no longer has the bytes
│   ├── MediaTooLarge        over `limit` bytes
│   ├── OverDailyLimit       the channel has spent its bytes for today
│   ├── UploadsFull          uploads that no message took yet fill their total
│   └── MediaRefused         the bytes are not what they must be
├── ProviderError            belino: ask the next provider
├── AgentError               the operator: the agent could not answer
│   └── MemoryLost           belino: ask again, and tell everything anew
├── ToolError                the agent: a sentence it can act on
├── ScopeError               nobody: something reached beyond its channel
├── UploadError              the uploading client: wrong offset, hash or size
└── Busy                     the sender: too much is waiting, try again
"""


class BelinoError(Exception):
    """Anything belino raises on purpose."""


class ConfigError(BelinoError):
    """A setting is wrong; the message names the key and the way out."""


class StoreError(BelinoError):
    """The state folder cannot be used as it is."""


class StoreInUse(StoreError):
    """Another gateway works on the same state folder."""


class StoreTooNew(StoreError):
    """The database was written by a newer belino."""


class StoreDamaged(StoreError):
    """SQLite reports that the database file is corrupt, or no database."""


class StoreIncomplete(StoreError):
    """The database or the key is missing while other state exists; the message lists the options."""


class StoreUnwritable(StoreError):
    """The store cannot be written to just now; what is offered again later is taken."""


class StoreFull(StoreUnwritable):
    """The disk is full."""


class StoreReadOnly(StoreUnwritable):
    """The state folder can only be read."""


class StoreBusy(StoreUnwritable):
    """Another process holds the database."""


class AdapterError(BelinoError):
    """A platform call failed and may be tried again."""


class RateLimited(AdapterError):
    """The platform asks us to wait."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unauthorized(AdapterError):
    """The platform refused our credentials."""


class AddressRefused(AdapterError):
    """A URL leads where belino does not connect to; tried again it still does."""


class Unreached(AdapterError):
    """The platform could not be reached: whatever it was asked for, it has not done."""


class Unanswered(AdapterError):
    """The platform was asked and did not answer: it may have done what it was asked for."""


class Undeliverable(AdapterError):
    """The platform will never take this parcel, however often it is offered."""


class TogetherRefused(Undeliverable):
    """The platform will never take these files in one call; each may go in one of its own."""


class NothingToEdit(Undeliverable):
    """The message that a parcel was to change is gone."""


class MarkupRefused(AdapterError):
    """The platform cannot read the markup; it takes the same text without."""


class MediaError(BelinoError):
    """The bytes of a media ref cannot be had."""


class MediaNotFound(MediaError):
    """There is no such media in this channel."""


class MediaExpired(MediaError):
    """The platform no longer hands out the bytes."""


class MediaTooLarge(MediaError):
    """The bytes are over a limit."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class OverDailyLimit(MediaError):
    """The channel has fetched all the bytes it may fetch today."""

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class UploadsFull(MediaError):
    """Uploads that no message took yet hold all the bytes they may hold together."""


class MediaRefused(MediaError):
    """The bytes are not what they must be."""


class ProviderError(BelinoError):
    """A provider could not read the media."""


class AgentError(BelinoError):
    """The agent could not finish its turn."""


class MemoryLost(AgentError):
    """What the agent remembered is gone, or of no use any more; nothing of this turn has been answered yet."""


class ToolError(BelinoError):
    """A sentence for the agent saying why the call failed and what it may do instead."""


class ScopeError(BelinoError):
    """Something reached for what lies outside its channel."""


class UploadError(BelinoError):
    """An upload does not fit what was announced."""


class Busy(BelinoError):
    """Too much is waiting already; offered again later it will be taken."""


class NoSuchMessage(BelinoError):
    """No stored message has this name."""

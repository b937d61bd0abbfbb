"""Home: the state folder and its paths, readable by its owner only."""

import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from belino.domain.errors import StoreError, StoreFull, StoreInUse
from belino.domain.message import ConversationKey

FOLDER_NAME_BYTES = 80
_HASH_CHARS = 16
_OUTGOING = ("pending", "sent", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The paths inside one state folder."""

    path: Path

    @classmethod
    def at(cls, path: Path | None = None) -> "Home":
        """The given folder, else `$BELINO_HOME`, else `~/.belino`; created if it does not exist."""
        chosen = path or Path(os.environ.get("BELINO_HOME") or Path.home() / ".belino")
        home = cls(path=Path(os.path.abspath(chosen.expanduser())))  # noqa: PTH100  resolve() would follow links
        try:
            _make_private(home.path)
        except OSError as error:
            raise StoreError(f"the state folder {home.path} cannot be made: {error.strerror}") from error
        _refuse_foreign(home.path)
        _refuse_shared(home.path)
        return home

    @property
    def config_file(self) -> Path:
        """`belino.toml`, or `belino.json` where only that exists."""
        as_json = self.path / "belino.json"
        as_toml = self.path / "belino.toml"
        return as_json if as_json.exists() and not as_toml.exists() else as_toml

    def good_config_file(self, like: Path) -> Path:
        """The copy of the configuration that worked last, in the format of this file."""
        return self.path / f"last-good{'.json' if like.suffix == '.json' else '.toml'}"

    @property
    def database(self) -> Path:
        return self.path / "belino.db"

    @property
    def key_file(self) -> Path:
        return self.path / "key"

    @property
    def run_file(self) -> Path:
        return self.path / "run.json"

    @property
    def lock_file(self) -> Path:
        return self.path / "belino.lock"

    @property
    def secrets(self) -> Path:
        """The folder of `file:NAME` secrets of the configuration."""
        return self.path / "secrets"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def cassettes(self) -> Path:
        """The folder of recordings."""
        return self.path / "cassettes"

    @property
    def models(self) -> Path:
        """The folder of local models that were fetched."""
        return self.path / "models"

    def account(self, platform: str, account: str) -> Path:
        """The folder of an account whose platform's library keeps its session there, created on call."""
        where = ConversationKey(platform=platform, account=account, channel="session")
        return _make_private(_make_private(self.path / "accounts") / folder_name(where))

    def folder(self, conversation: ConversationKey) -> Path:
        """The conversation's folder, created on call."""
        return _make_private(_make_private(self.path / "media") / folder_name(conversation))

    def incoming(self, conversation: ConversationKey) -> Path:
        """The session's folder: files the agent asked for."""
        return _make_private(self.folder(conversation) / "incoming")

    def outgoing(self, conversation: ConversationKey) -> Path:
        """Files the agent offers, with `pending/`, `sent/` and `error/`."""
        outgoing = _make_private(self.folder(conversation) / "outgoing")
        for name in _OUTGOING:
            _make_private(outgoing / name)
        return outgoing

    def bridged(self, conversation: ConversationKey) -> Path:
        """The conversation's folder, with `ipc/` in it for a container."""
        _make_private(self.folder(conversation) / "ipc")
        return self.folder(conversation)

    def session_folders(self, conversations: Iterable[ConversationKey]) -> list[Path]:
        """Of these conversations, the folders of sessions that were ever given a file."""
        folders = (self.path / "media" / folder_name(conversation) for conversation in conversations)
        return [folder for folder in folders if (folder / "incoming").is_dir() or (folder / "ipc").is_dir()]

    def has_outgoing(self, conversation: ConversationKey) -> bool:
        """Whether that folder exists."""
        return (self.path / "media" / folder_name(conversation) / "outgoing").is_dir()

    def probe(self) -> None:
        """Write a test file and delete it; StoreFull if the write fails."""
        try:
            with tempfile.TemporaryFile(dir=self.path) as file:
                file.write(b"belino" * 1024)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreFull(f"the state folder takes no writes: {error.strerror}") from error


def lock_folder(home: Home) -> int:
    """A descriptor that holds the lock until it is closed. The kernel releases it when the process ends."""
    lock = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(lock, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise StoreInUse(f"the state folder {home.path} is in use by another gateway (process {holder})") from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def folder_name(conversation: ConversationKey) -> str:
    """A short hash, which tells conversations apart, and a readable part."""
    name = str(conversation)
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    return f"{digest}-{readable}"[:FOLDER_NAME_BYTES].rstrip("-")


def _make_private(folder: Path) -> Path:
    """Create a folder that only its owner can enter, whatever the umask; an existing one must be a real folder."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            raise StoreError(f"{folder} must be a folder, not a link or a file") from None
    else:
        folder.chmod(0o700)
    return folder


def _refuse_foreign(folder: Path) -> None:
    # Most likely left by `sudo`.
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        cure = f"name another with --home, or run: sudo chown -R $(id -u) {folder}"
        raise StoreError(f"the state folder {folder} cannot be read and written by you; {cure}")


def _refuse_shared(folder: Path) -> None:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o022:
        raise StoreError(f"others may write to the state folder {folder}; run: chmod 700 {folder}")
    if mode & 0o077:
        folder.chmod(0o700)

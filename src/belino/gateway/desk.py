"""What an adapter is given to work with: its account's name, one HTTP client, the clock."""

from belino.domain.errors import ConfigError
from belino.domain.ports import Clock
from belino.domain.reply import OutgoingFile
from belino.net.client import Client


class AccountDesk:
    """The desk of one account."""

    def __init__(self, account: str, clock: Clock) -> None:
        self.account = account
        self.clock = clock
        self.http = Client()

    async def publish(self, file: OutgoingFile) -> str:
        """No platform that fetches from us is supported yet."""
        raise ConfigError(f"{file.name} cannot be published: this belino does not serve files to platforms")

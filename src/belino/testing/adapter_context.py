"""Adapter context for tests: what an adapter under test receives from the gateway."""

from collections.abc import Mapping, Sequence

from belino.domain.message import Arrival
from belino.domain.ports import Clock, HttpClient, Known
from belino.domain.reply import OutgoingFile
from belino.testing.clock import FakeClock


class FakeContext:
    """An AdapterContext that records what was published; give it an HTTP client if the adapter calls its platform.

    `belino.net.client.Client(hosts=["127.0.0.1:PORT"])` and a server on loopback are better than any mock.
    """

    def __init__(self, *, account: str = "default", clock: Clock | None = None, http: HttpClient | None = None) -> None:
        self.account = account
        self.clock: Clock = clock or FakeClock()
        self.published: list[OutgoingFile] = []
        self.reported: list[tuple[object, Mapping[str, object], Sequence[Arrival]]] = []
        self._http = http

    @property
    def http(self) -> HttpClient:
        assert self._http is not None, "this adapter calls its platform: make the desk with FakeContext(http=…)"
        return self._http

    async def publish(self, file: OutgoingFile) -> str:
        self.published.append(file)
        return f"https://belino.test/published/{file.sha256}"

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        self.reported.append((payload, known(), arrivals))

"""Provider port: what a service that reads media must implement, and what it is given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from belino.domain.ports import Clock, HttpClient
from belino.domain.reading import Material, Read, ReadingOptions, Skill


class LocalWorker(Protocol):
    """Runs a local provider's model in a process of its own: no network, no files, limits on memory and time."""

    async def run(
        self, function: str, material: Sequence[Material], options: Mapping[str, object], *, seconds: float, memory: int
    ) -> Mapping[str, object]:
        """Call a function (`package.module:name`) in the worker and return its JSON value; ProviderError if it fails.

        The function gets the descriptors of the material and the options. Its module's `prepare()` imports the library
        in the parent process, and its `load(options)` loads the model in the job's process, before the walls go up.
        """
        ...

    async def run_program(
        self,
        command: Sequence[str],
        material: Material,
        *,
        readable: Sequence[Path],
        environment: Mapping[str, str],
        seconds: float,
        memory: int,
    ) -> str:
        """Run a program on the material, its standard input, and return its output; ProviderError if it fails.

        It has no network, writes no files, and reads only what is below `readable`.
        """
        ...


class ProviderContext(Protocol):
    """What the gateway gives to a provider."""

    @property
    def http(self) -> HttpClient: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def worker(self) -> LocalWorker: ...

    @property
    def scratch(self) -> Path:
        """A folder for files of one call, which the provider removes."""
        ...

    @property
    def models(self) -> Path:
        """The folder of models that `belino models get` fetched; a local provider finds them there by name."""
        ...


class Provider(Protocol):
    """A service that reads media. Constructed as `Provider(config, context)`.

    Its module's `Config` has at least `model: str | None`; a remote one's also `base_url: str` and
    `key: Secret | None`. One provider is made for each key.
    """

    skills: frozenset[Skill]
    local: bool
    """Whether nothing leaves this machine."""
    languages: frozenset[str] | None
    """The languages it understands, as tags such as `en`; None if that is open."""

    def model(self, skill: Skill) -> str:
        """The model that it uses for a skill; part of the key under which its readings are stored."""
        ...

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        """Read the material. ProviderError, RateLimited or Unauthorized if that fails."""
        ...


@runtime_checkable
class ClosesProvider(Protocol):
    """A provider with something to finish when belino ends, such as the deletion of a file that it uploaded."""

    async def close(self) -> None:
        """Finish it; belino waits a few seconds."""
        ...

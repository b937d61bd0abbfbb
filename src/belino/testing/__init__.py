"""Test kit for authors of adapters, agents and providers: contracts, clock, contexts, files, fake platforms."""

from belino.testing.agent_contract import AgentTrial, check_agent
from belino.testing.clock import START, FakeClock, settle
from belino.testing.contract import Trial, check_adapter, check_cassette
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace
from belino.testing.fakes import FakeContext, ScriptedAgent, ScriptLine, ToolCall
from belino.testing.file_server import FakeUpload
from belino.testing.files import make_gif, make_jpeg, make_pdf, make_png, make_wav, make_webp
from belino.testing.line import LineServer
from belino.testing.memory import (
    ForgetfulMemoryAdapter,
    Loss,
    MemoryAdapter,
    MemoryPlatform,
    ReadableMemoryAdapter,
)
from belino.testing.process import GatewayProcess
from belino.testing.provider_contract import FakeProviderContext, ProviderTrial, RawAnswer, check_provider
from belino.testing.signal import SignalServer
from belino.testing.slack import SlackServer
from belino.testing.slack.request import SlackPace
from belino.testing.telegram import TelegramServer
from belino.testing.telegram.request import TelegramPace
from belino.testing.whatsapp import WhatsAppServer
from belino.testing.whatsapp.calls import CloudPace

__all__ = [
    "START",
    "AgentTrial",
    "CloudPace",
    "DiscordPace",
    "DiscordServer",
    "FakeClock",
    "FakeContext",
    "FakeProviderContext",
    "FakeUpload",
    "ForgetfulMemoryAdapter",
    "GatewayProcess",
    "LineServer",
    "Loss",
    "MemoryAdapter",
    "MemoryPlatform",
    "ProviderTrial",
    "RawAnswer",
    "ReadableMemoryAdapter",
    "ScriptLine",
    "ScriptedAgent",
    "SignalServer",
    "SlackPace",
    "SlackServer",
    "TelegramPace",
    "TelegramServer",
    "ToolCall",
    "Trial",
    "WhatsAppServer",
    "check_adapter",
    "check_agent",
    "check_cassette",
    "check_provider",
    "make_gif",
    "make_jpeg",
    "make_pdf",
    "make_png",
    "make_wav",
    "make_webp",
    "settle",
]

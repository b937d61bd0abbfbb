"""Impersonation: messages of the page on another platform, where an adapter allows it, as in the demo."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from belino.domain.errors import Busy
from belino.domain.message import ConversationKey
from belino.domain.stored import StoredMessage
from belino.gateway.events import Notice
from belino.web.request_context import Site
from belino.web.responses import bad_request

HEARD_SECONDS = 20.0


@runtime_checkable
class LendsVoice(Protocol):
    """A platform on which the page's user has an identity."""

    visitor: str
    """The author id of the page's user."""

    async def speak(self, conversation: ConversationKey, text: str, *, key: str, reply_to: str | None = None) -> str:
        """Send it on the platform and return the message's id there; the same key is sent once."""
        ...


def visitor_of(site: Site, conversation: ConversationKey) -> str | None:
    """The author under which the page may speak here; None if it may only read."""
    voice = _voice(site, conversation)
    return None if voice is None else voice.visitor


async def speak(
    site: Site, conversation: ConversationKey, text: str, *, key: str, reply_to: str | None
) -> StoredMessage:
    """Send it there, and wait until it arrives like any other message."""
    voice = _voice(site, conversation)
    if voice is None:
        raise bad_request("Only web conversations take messages here; write to the others on their own platform.")
    await site.must_exist(conversation)
    channel = conversation.whole_channel
    async with site.gateway.notices.subscribe(lambda one: one is not None and one.whole_channel == channel) as notices:
        said = await voice.speak(conversation, text, key=key, reply_to=reply_to)
        for message in await site.store.messages(channel, [said]):
            return message
        try:
            async with asyncio.timeout(HEARD_SECONDS):
                return await _heard(notices, said)
        except TimeoutError:
            raise Busy("It was said and has not come back yet; send it again under the same id.") from None


def _voice(site: Site, conversation: ConversationKey) -> LendsVoice | None:
    adapter: object = site.gateway.adapters.get((conversation.platform, conversation.account))
    return adapter if isinstance(adapter, LendsVoice) else None


async def _heard(notices: AsyncIterator[Notice], said: str) -> StoredMessage:
    async for notice in notices:
        message = notice.payload
        if isinstance(message, StoredMessage) and message.id == said:
            return message
    raise TimeoutError

"""SDK clients through pydantic-ai, for APIs that belino does not speak itself: Gemini and OpenAI's responses.

Importing it takes seconds of CPU.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelTimeoutError,
    UserError,
)
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from belino.agents.llm.failures import Cut, Declined, ModelError, ModelSilent, NotAnAnswer
from belino.agents.llm.messages import (
    AnswerMessage,
    Asking,
    CallPart,
    Completion,
    Ends,
    Item,
    Message,
    RequestMessage,
    ResultPart,
    UserPart,
    WordsPart,
    answer_of_native,
)
from belino.domain.turn import Usage
from belino.net.client import SdkAnswers, open_sdk_client

ENDS: dict[str, Ends] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tools",
    "content_filter": "filter",
    "error": "error",
}


class SdkClient:
    """One model at one address."""

    def __init__(self, *, provider: str, name: str, url: str, key: str, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._name = name
        self._client = open_sdk_client()
        # Retries are ours: those of an SDK would wait unnoticed.
        self._settings: ModelSettings = {"max_tokens": max_tokens, "max_retries": 0, "cache": True}
        if provider == "google":
            self._model = self._google(url, key)
        else:
            self._model = self._responses(url, key)

    def _google(self, url: str, key: str) -> Model:
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(self._name, provider=GoogleProvider(api_key=key, base_url=url, http_client=self._client))

    def _responses(self, url: str, key: str) -> Model:
        from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
        from pydantic_ai.providers.openai import OpenAIProvider

        # We keep the conversation: the provider is asked to store nothing.
        self._settings = OpenAIResponsesModelSettings(
            max_tokens=self.max_tokens, max_retries=0, cache=True, openai_store=False
        )
        provider = OpenAIProvider(base_url=url, api_key=key, http_client=self._client)
        return OpenAIResponsesModel(self._name, provider=provider)

    async def ask(self, asking: Asking) -> AsyncGenerator[str | Completion]:
        """The words of an answer as they come, and the whole."""
        begun = False
        try:
            async with self._stream(asking) as stream:
                begun = True
                async for event in stream:
                    yield _text_of(event)
                answer = stream.get()
        except (AgentRunError, UserError) as error:
            failure = _model_error(error)
            raise Cut if begun and isinstance(failure, ModelSilent) else failure from None
        yield _completion(answer, self._name)

    async def close(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def _stream(self, asking: Asking) -> AsyncIterator[StreamedResponse]:
        """One request. An early exit closes its connection, which not every SDK does."""
        answers = SdkAnswers()
        settings: ModelSettings = {**self._settings, "tool_choice": "none"} if asking.must_answer else self._settings
        request = (sdk_messages(asking.messages), settings, parameters(asking))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(answers.close)
            with answers.noted():
                stream = await stack.enter_async_context(self._model.request_stream(*request))
            yield stream


def parameters(asking: Asking) -> ModelRequestParameters:
    """The system prompt and the tools of a request."""
    # Never strict: providers require different schemas for it, and the toolbox checks arguments itself.
    tools = [
        ToolDefinition(
            name=spec.name, description=spec.description, parameters_json_schema=dict(spec.schema), strict=False
        )
        for spec in asking.tools
    ]
    instructions = [InstructionPart(content=text) for text in asking.system]
    return ModelRequestParameters(function_tools=tools, instruction_parts=instructions)


def sdk_messages(told: Sequence[Message]) -> list[ModelMessage]:
    """Messages in the form of pydantic-ai."""
    return [_request(message) if isinstance(message, RequestMessage) else _response(message) for message in told]


def _request(request: RequestMessage) -> ModelRequest:
    parts: list[UserPromptPart | ToolReturnPart] = []
    for part in request.parts:
        if isinstance(part, UserPart):
            parts.append(UserPromptPart(content=[_item(item) for item in part.items]))
        else:
            parts.append(_returned(part))
    return ModelRequest(parts=parts)


def _returned(result: ResultPart) -> ToolReturnPart:
    items = [_item(item) for item in result.items]
    return ToolReturnPart(
        tool_name=result.tool,
        content=items[0] if len(items) == 1 and isinstance(items[0], str) else items,
        tool_call_id=result.call,
        outcome="failed" if result.failed else "success",
    )


def _item(item: Item) -> str | BinaryContent:
    if isinstance(item, str):
        return item
    return BinaryContent(data=item.data, media_type=item.mime, identifier=item.ref)


def _response(answer: AnswerMessage) -> ModelMessage:
    if answer.native is not None:
        return ModelMessagesTypeAdapter.validate_python([answer.native])[0]
    parts: list[TextPart | ToolCallPart] = []
    for part in answer.parts:
        if isinstance(part, WordsPart):
            parts.append(TextPart(content=part.text))
        elif isinstance(part, CallPart):
            parts.append(ToolCallPart(tool_name=part.tool, args=part.arguments, tool_call_id=part.id))
    return ModelResponse(parts=parts)


def _text_of(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _completion(response: ModelResponse, name: str) -> Completion:
    details = response.provider_details or {}
    usage = Usage(
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cost_usd=_cost(response),
        model=response.model_name or name,
    )
    return Completion(
        answer=answer_of_native(ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]),
        ends=ENDS.get(response.finish_reason or ""),
        usage=usage,
        reason=str(details.get("block_reason") or details.get("finish_reason") or ""),
    )


def _cost(response: ModelResponse) -> float | None:
    """The cost by the library's bundled price list; makes no request."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def _model_error(error: Exception) -> ModelError:
    if isinstance(error, ModelTimeoutError | ModelConnectionError):
        return ModelSilent(late=isinstance(error, ModelTimeoutError))
    if isinstance(error, ModelAPIError):
        return Declined(
            error.status_code if isinstance(error, ModelHTTPError) else None,
            error.body if error.body is not None else error.message,
            code=error.provider_error_code or "",
            retry_after=error.retry_after if isinstance(error, ModelHTTPError) else None,
            is_unpaid=isinstance(error, ModelQuotaExceededError),
            is_too_long=isinstance(error, ModelContextWindowExceededError),
        )
    return NotAnAnswer(type(error).__name__)

"""Tools that the official conformance suite of MCP asks for, behind belino's own MCP server."""

import asyncio
from collections.abc import Mapping

from belino.domain.errors import ToolError
from belino.domain.media import AudioBlock, Block, DocumentBlock, ImageBlock, TextBlock
from belino.domain.turn import ToolSpec
from belino.testing.files import make_png, make_wav
from belino.tools.tool_context import PROGRESS, tell_client

PICTURE = ImageBlock(data=make_png(1, 1), mime="image/png", ref="tg_k3v9d0q2m7xa", sha256="0" * 64, tokens=1)
SOUND = AudioBlock(data=make_wav(1), mime="audio/wav", ref="tg_k3v9d0q2m7xb", sha256="1" * 64, tokens=1, seconds=1.0)
DOCUMENT = DocumentBlock(
    data=b"%PDF-1.4", mime="application/pdf", ref="tg_k3v9d0q2m7xc", sha256="2" * 64, tokens=1, pages=1
)
SAYS_ERROR = "This tool intentionally returns an error for testing"
NOTHING: Mapping[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMA_2020_12: Mapping[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
RESULTS: Mapping[str, tuple[Block, ...]] = {
    "test_simple_text": (TextBlock(text="This is a simple text response for testing."),),
    "test_image_content": (PICTURE,),
    "test_audio_content": (SOUND,),
    "test_embedded_resource": (DOCUMENT,),
    "test_multiple_content_types": (TextBlock(text="Multiple content types test:"), PICTURE, DOCUMENT),
    "json_schema_2020_12_tool": (TextBlock(text="done"),),
}
REPORTING = ("test_tool_with_logging", "test_tool_with_progress")
FAILING = "test_error_handling"


class SuiteTools:
    """A toolbox of these tools."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        names = (*RESULTS, *REPORTING, FAILING)
        schemas = {"json_schema_2020_12_tool": SCHEMA_2020_12}
        return tuple(ToolSpec(name=each, description=each, schema=schemas.get(each, NOTHING)) for each in names)

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        if name == "test_tool_with_logging":
            for says in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                tell_client(says)
                await _let_others_run()
        elif name == "test_tool_with_progress":
            for done in (1, 50, 100):
                if (progress := PROGRESS.get()) is not None:
                    progress(done, 100)
                await _let_others_run()
        elif name not in RESULTS:
            raise ToolError(SAYS_ERROR)
        return RESULTS.get(name, (TextBlock(text="done"),))


async def _let_others_run() -> None:
    for _ in range(100):
        await asyncio.sleep(0)

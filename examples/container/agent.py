"""The smallest agent in a container: it looks at the newest media of its conversation, and says what it got."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

SERVER = "import sys; from belino.cli import main; sys.exit(main(sys.argv[1:]))"


def call(server: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """One MCP request and its result."""
    asks: IO[str] | None = server.stdin
    answers: IO[str] | None = server.stdout
    assert asks is not None
    assert answers is not None
    asks.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    asks.flush()
    result: dict[str, Any] = json.loads(answers.readline())["result"]
    return result


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")


def main(folder: Path) -> None:
    refs = json.loads((folder / "media_refs.json").read_text(encoding="utf-8"))["refs"]
    command = [sys.executable, *(["-S"] if sys.flags.no_site else []), "-c", SERVER, "mcp", "--ipc", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        call(server, 1, "initialize", {"protocolVersion": "2025-06-18"})
        tools = call(server, 2, "tools/list", {})["tools"]
        say("tools: " + ", ".join(tool["name"] for tool in tools))
        for number, ref in enumerate(refs[:1], 3):
            given = {"name": "fetch_media", "arguments": {"ref": ref["artifact_id"]}}
            for item in call(server, number, "tools/call", given)["content"]:
                say("got: " + (item["text"] if item["type"] == "text" else f"{item['type']} ({item['mimeType']})"))
        assert server.stdin is not None
        server.stdin.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

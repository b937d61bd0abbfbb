"""Presets: how well-known programs are called without a terminal, and how their version and login are checked.

Each takes its prompt on standard input. `{arguments}` are the operator's own, such as a model or a permission.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

PresetName = Literal["", "aider", "claude", "codex", "gemini", "opencode"]

_CODEX = (
    *("codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "--add-dir", "{outgoing}"),
    *("-c", 'mcp_servers.belino.url="{mcp_url}"'),
    *("-c", 'mcp_servers.belino.bearer_token_env_var="BELINO_MCP_TOKEN"'),
    # Without a terminal it asks for no approval, and would refuse the tools that send.
    *("-c", 'mcp_servers.belino.default_tools_approval_mode="approve"'),
    "{arguments}",
)
_GEMINI = ("gemini", "--output-format", "stream-json", "--allowed-mcp-server-names", "belino", "{arguments}")
_OPENCODE = ("opencode", "run", "--format", "json", "{arguments}")
_CLAUDE = (
    *("claude", "-p", "--output-format", "stream-json", "--verbose", "--append-system-prompt", "{system}"),
    *("--mcp-config", "{mcp_config}", "--strict-mcp-config", "--allowedTools=mcp__belino", "{arguments}"),
)
_AIDER = (
    *("aider", "--message-file", "/dev/stdin", "--yes-always", "--no-pretty", "--no-stream", "--no-check-update"),
    *("--no-suggest-shell-commands", "--no-git", "{arguments}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """How one program is called."""

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()
    dialect: str = ""
    """Of its JSON lines; empty if it writes plain text."""
    environment: tuple[str, ...] = ("HOME",)
    """Its login is in the home folder, or in one of these variables."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set for it, with placeholders."""
    adds_usage: bool = False
    """Its usage is of one step each; otherwise of the turn so far."""
    sums_session: bool = False
    """Its usage is of its whole session, with earlier turns."""
    session_lost: str = ""
    login: tuple[str, ...] = ()
    """Exits with 0 if a person is logged in."""
    login_files: tuple[str, ...] = ()
    """Any of these in the home folder means that a person logged in."""
    cure: str = ""


PRESETS: Mapping[str, Preset] = {
    # https://developers.openai.com/codex/noninteractive
    "codex": Preset(
        command=(*_CODEX, "-"),
        resume=(*_CODEX, "resume", "{session}", "-"),
        dialect="codex",
        sums_session=True,
        environment=("HOME", "CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY"),
        session_lost="no rollout found|session not found|no saved session",
        login=("codex", "login", "status"),
        cure="Run `codex login` as the user that runs belino.",
    ),
    # https://geminicli.com/docs/cli/headless/
    "gemini": Preset(
        command=_GEMINI,
        resume=(*_GEMINI, "--resume", "{session}"),
        dialect="gemini",
        environment=("HOME", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"),
        # In a folder that is not trusted it ends at once; belino's own folder, or the operator's choice, is.
        settings={"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "{mcp_config}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        session_lost="invalid session identifier|no previous sessions found|error resuming session",
        login_files=(".gemini/oauth_creds.json",),
        cure="Run `gemini` once and log in, or set GEMINI_API_KEY for belino.",
    ),
    # https://opencode.ai/docs/cli/
    "opencode": Preset(
        command=_OPENCODE,
        resume=(*_OPENCODE, "--session", "{session}"),
        dialect="opencode",
        environment=("HOME", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
        settings={
            "OPENCODE_CONFIG_CONTENT": '{"mcp":{"belino":{"type":"remote","enabled":true,"url":"{mcp_url}",'
            '"headers":{"Authorization":"Bearer {mcp_token}"}}}}'
        },
        adds_usage=True,
        session_lost="session not found",
        login_files=(".local/share/opencode/auth.json",),
        cure="Run `opencode auth login` as the user that runs belino, or set its provider's key for belino.",
    ),
    # https://code.claude.com/docs/en/headless
    "claude": Preset(
        command=(*_CLAUDE, "--session-id", "{session}"),
        resume=(*_CLAUDE, "--resume", "{session}"),
        dialect="claude",
        environment=("HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
        session_lost="No conversation found",
        login=("claude", "auth", "status"),
        cure="Run `claude` once and log in as the user that runs belino, or set ANTHROPIC_API_KEY for belino.",
    ),
    # https://aider.chat/docs/scripting.html
    "aider": Preset(
        command=_AIDER,
        environment=("HOME", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"),
        login_files=(".aider.conf.yml",),
        cure="Set the key of its provider for belino, such as OPENAI_API_KEY.",
    ),
}

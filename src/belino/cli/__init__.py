"""The command line: a static table, so that help is cheap and a command imports only itself."""

import errno
import io
import os
import sys

OK, FAILED, USAGE, NOT_RUNNING, UNCERTAIN, BAD_CONFIG, INTERRUPTED = 0, 1, 2, 69, 75, 78, 130

COMMANDS = {
    "serve": "Start the gateway and the web chat.",
    "demo": "Watch a busy group that costs nothing until asked; needs no key.",
    "setup": "Connect a platform, an agent or a reader: ask, check, store.",
    "status": "Show whether a gateway runs, and what it holds.",
    "doctor": "Check the machine, its state, the configuration and every platform.",
    "audit": "Check that every message, file and answer is accounted for.",
    "config": "Show, check, write or reload the configuration.",
    "login": "Print a fresh login link for the web chat.",
    "pair": "Approve a person or a group that asks for access, or list requests.",
    "channels": "List the channels belino knows.",
    "context": "Show the agent's context, and what it costs.",
    "search": "Find what was said in a channel, as the agent would.",
    "media": "List and fetch received media; inspect and read local files.",
    "readings": "List what was read from media, by whom and at what cost.",
    "models": "List local speech models; fetch one that knows more languages.",
    "send": "Send a message and files to a conversation, and wait for receipts.",
    "outbox": "List unsent messages; retry, drop or send them.",
    "explain": "Show what happened to a message, and why.",
    "retry": "Repeat the failed turn of a message.",
    "record": "Record conversations in a file without secrets, ids and names.",
    "replay": "Run a recorded file offline, and show what differs.",
    "backup": "Back up everything to a folder while the gateway runs.",
    "restore": "Restore a backup; the current state is moved aside.",
    "token": "Make, list or revoke tokens for programs.",
    "mcp": "Give any MCP client a conversation's tools, over stdio.",
    "bench": "Measure this machine against the goals.",
}

GROUPS = {
    "audit": "doctor",
    "channels": "status",
    "login": "access",
    "pair": "access",
    "replay": "record",
    "restore": "backup",
    "retry": "explain",
    "token": "access",
}
"""The module of a command that is not in one of its own name."""

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _have_streams()
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _stop_printing()  # the reader has gone (`| head`)
        return FAILED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _stop_printing()
        print(f"belino: the output cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(given: list[str]) -> int:
    if given[:1] == ["help"] and given[1:]:
        given = [*given[1:], "--help"]
    name = given[0] if given else ""
    if name in ("-h", "--help", "help"):
        print(help_text())
        return OK
    if name in ("-V", "--version"):
        from belino import __version__

        print(f"belino {__version__}")
        return OK
    if name not in COMMANDS:
        print(_unknown(name) if name else help_text(), file=sys.stderr)
        return USAGE
    from belino.cli.command import run_command

    try:
        return run_command(name, given[1:])
    except SystemExit as ended:  # argparse printed the usage
        return USAGE if ended.code else OK


def help_text() -> str:
    """What `belino --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {says}" for name, says in COMMANDS.items()]
    return "\n".join(
        [
            "belino connects chat platforms to AI agents.",
            "",
            "usage: belino COMMAND [options]",
            "",
            *lines,
            "",
            "Every command takes --json, --home FOLDER and --help.",
            "State is stored in ~/.belino or $BELINO_HOME.",
        ]
    )


def _have_streams() -> None:
    """The parent process may have closed standard streams; the first file we opened would take the place of one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale may lack letters of a name


def _stop_printing() -> None:
    """Discard remaining output: Python must not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"belino: options follow the command, like belino status {name}; belino --help lists the commands."
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"belino: there is no command {name!r}.{hint} Commands: {', '.join(COMMANDS)}."

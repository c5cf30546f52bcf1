"""`asides doctor --clean`: removes the envelopes of a relay from a saved history. Sends nothing."""

from __future__ import annotations

from argparse import Namespace

from asides.cli.doctor import encode_history, write_history
from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_chunks
from asides.cli.terminal import Terminal
from asides.intake.documents import decode_history, parse_history
from asides.relay.state.clean_history import CleanedHistory, clean_document
from asides.values.errors import ConfigError


def clean_history(arguments: Namespace, terminal: Terminal) -> int:
    """Print the history on stdout, or write it to the file of --fix. What was removed goes to stderr."""
    given = (arguments.to, arguments.origin, arguments.base_url, arguments.thinking)
    if any(value is not None for value in given) or arguments.other_account or arguments.json:
        raise ConfigError("--clean allows only --fix and -q. Leave the other options out.")
    if arguments.file is None:
        raise ConfigError("there is no history. Name its file; `-` reads standard input.")
    with open_chunks(arguments.file) as chunks:
        data = b"".join(chunks)
    history, is_lines = parse_history(data)
    cleaned = clean_document(history)
    # A history without envelopes stays as it is, byte for byte.
    content = data if cleaned.document is history else encode_history(cleaned.document, data, is_lines=is_lines)
    if arguments.fix in (None, "-"):
        terminal.write_answer(decode_history(content).decode())
        terminal.end_answer()
    else:
        write_history(arguments.fix, arguments.file, content, data)
    if not arguments.quiet:
        terminal.print_info(_describe(cleaned))
    return Exit.DONE


def _describe(cleaned: CleanedHistory) -> str:
    if not cleaned.envelopes:
        return "no envelope was found; the history is unchanged"
    removed = f"{cleaned.envelopes} envelope(s) removed"
    if not cleaned.thoughts:
        return removed
    return f"{removed}, {cleaned.thoughts} of them with its thinking, which providers refuse without a seal"

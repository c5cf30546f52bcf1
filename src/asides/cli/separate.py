"""`asides separate`: takes the thinking out of a text with inline tags, as it arrives. Made for pipes: loads little."""

from __future__ import annotations

import codecs
from argparse import Namespace
from collections.abc import Iterator

from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_chunks
from asides.cli.render import Display, print_json
from asides.cli.terminal import Stopwatch, Terminal
from asides.values.errors import ConfigError
from asides.values.thinking import ThoughtKind
from asides.wire.inline_tags import Position, Separator, StartsInside, separate

STARTS_INSIDE: dict[str, StartsInside] = {"auto": "auto", "yes": True, "no": False}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the answer on stdout as soon as it is certain; with -t, the thinking on stderr."""
    if arguments.column is not None or arguments.messages is not None or arguments.response:
        from asides.cli.separate_files import run as run_files

        return run_files(arguments, terminal)
    _refuse_row_options(arguments)
    tags = read_tags(arguments)
    position: Position = arguments.position or "auto"
    starts_inside = STARTS_INSIDE[arguments.starts_inside or "auto"]
    try:
        separator = Separator(tags, position, starts_inside)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with open_chunks(arguments.files[0] if arguments.files else "-") as chunks:
        if arguments.json:
            separated = separate("".join(_decode(chunks)), tags, position, starts_inside)
            fields = {name: getattr(separated, name) for name in ("text", "thinking", "commentary", "truncated")}
            print_json(terminal, fields)
            return Exit.DONE
        # No settings are read here: the text is the user's own, and -t asks for its thinking.
        shown: frozenset[ThoughtKind] = frozenset({"raw", "summary"}) if arguments.show_thinking else frozenset()
        display = Display(terminal, Stopwatch(), shown=shown)
        try:
            for text in _decode(chunks):
                display.show(separator.feed(text))
            display.show(separator.finish())
        finally:
            display.end()
    if separator.truncated:
        terminal.print_note("warning: the text ends in the middle of the thinking")
    return Exit.DONE


def read_tags(arguments: Namespace) -> tuple[tuple[str, str], ...] | None:
    """The pairs of `--tags`."""
    return None if arguments.tags is None else tuple((opening, closing) for opening, closing in arguments.tags)


# What only rows have.
_ROW_OPTIONS = (
    "output",
    "verdict_column",
    "model",
    "to",
    "into",
    "prompt_column",
    "accept",
    "undecided",
    "show",
    "stats",
    "stats_page",
    "input_format",
    "output_format",
    "via",
    "ray_address",
    "actors",
)


def _refuse_row_options(arguments: Namespace) -> None:
    given = next((name for name in _ROW_OPTIONS if getattr(arguments, name)), None)
    if given is not None or len(arguments.files) > 1:
        what = "several files are" if given is None else f"--{given.replace('_', '-')} is"
        raise ConfigError(f"{what} for files of rows. Name their text with --column, --messages or --response.")


def _decode(chunks: Iterator[bytes]) -> Iterator[str]:
    """Decode UTF-8 that may be cut anywhere; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)

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
from asides.wire.inline_tags import Separator, StartsInside, separate

_STARTS_INSIDE: dict[str, StartsInside] = {"auto": "auto", "yes": True, "no": False}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the answer on stdout as soon as it is certain; with -t, the thinking on stderr."""
    tags = None if arguments.tags is None else [(opening, closing) for opening, closing in arguments.tags]
    starts_inside = _STARTS_INSIDE[arguments.starts_inside]
    try:
        separator = Separator(tags, arguments.position, starts_inside)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with open_chunks(arguments.file) as chunks:
        if arguments.json:
            separated = separate("".join(_decode(chunks)), tags, arguments.position, starts_inside)
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


def _decode(chunks: Iterator[bytes]) -> Iterator[str]:
    """Decode UTF-8 that may be cut anywhere; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)

"""`asides separate`: a text with thinking inside, taken apart while it comes. For pipes, so it loads little."""

from __future__ import annotations

import codecs
from argparse import Namespace
from collections.abc import Iterator

from asides.cli.exit_codes import Exit
from asides.cli.progress import Progress
from asides.cli.read_body import opened
from asides.cli.render import Display, print_json
from asides.cli.terminal import Terminal
from asides.values.errors import ConfigError
from asides.wire.inline_tags import Separator, StartsInside, separate

_STARTS_INSIDE: dict[str, StartsInside] = {"auto": "auto", "yes": True, "no": False}


def run(arguments: Namespace, terminal: Terminal) -> int:
    """The answer on stdout as soon as it is certain, the thinking on stderr with -t."""
    tags = None if arguments.tags is None else [(opening, closing) for opening, closing in arguments.tags]
    starts_inside = _STARTS_INSIDE[arguments.starts_inside]
    try:
        separator = Separator(tags, arguments.position, starts_inside)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    with opened(arguments.file) as pieces:
        if arguments.json:
            separated = separate("".join(_texts(pieces)), tags, arguments.position, starts_inside)
            fields = {"text": separated.text, "thinking": separated.thinking, "truncated": separated.truncated}
            print_json(terminal, fields)
            return Exit.DONE
        display = Display(terminal, Progress(), shows_thinking=arguments.show_thinking)
        try:
            for text in _texts(pieces):
                display.take(separator.feed(text))
            display.take(separator.finish())
        finally:
            display.end()
    if separator.truncated:
        terminal.note("warning: the text ends in the middle of the thinking")
    return Exit.DONE


def _texts(pieces: Iterator[bytes]) -> Iterator[str]:
    """UTF-8 that may be cut anywhere; what is none becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)

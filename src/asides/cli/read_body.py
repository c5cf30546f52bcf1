"""Bytes that are already here: a file, or what is piped in. Not here: what they mean."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from asides.values.errors import ConfigError

_READ_SIZE = 64 * 1024


@contextmanager
def opened(name: str) -> Generator[Iterator[bytes]]:
    """The pieces of a file, or of standard input when it is called "-", each as soon as it is there."""
    if name == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ConfigError("there is nothing to read: name a file, or pipe something in.")
        yield _pieces(sys.stdin.buffer)
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below, where errors of the caller are not ours to word
    except OSError as problem:
        raise ConfigError(f"the file {name} cannot be read: {reason_of(problem)}.") from None
    with file:
        yield _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    # read() would wait until it has as much as it was asked for.
    read = getattr(file, "read1", file.read)
    while data := read(_READ_SIZE):
        yield data


def reason_of(problem: OSError | UnicodeDecodeError) -> str:
    """Why a file does not read, in words."""
    return (problem.strerror if isinstance(problem, OSError) else None) or "it is not text in UTF-8"

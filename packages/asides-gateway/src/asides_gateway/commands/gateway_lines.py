"""`asides gateway export` and `asides gateway import`: keys and conversations as JSON lines, between any two stores."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.render import print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.database import StoreUnavailable
from asides.database.migrate import check, migrate
from asides.database.postgres_url import describe_url
from asides.settings_files import find_state_folder
from asides.values.errors import ConfigError
from asides.values.notices import escape_controls
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.maintenance.export_lines import Damaged, export_lines
from asides_gateway.maintenance.exported_lines import Counts
from asides_gateway.maintenance.import_lines import MAX_LINE, ImportReport, ImportTarget, import_lines
from asides_gateway.maintenance.open_stores import open_stores
from asides_gateway.page_store import open_page_file

_STDIN = "-"


def run_export(arguments: Namespace, terminal: Terminal) -> int:
    """Write the lines to the file that is named, or to stdout."""
    path = _read_path(arguments, "export")
    place = _find_place(arguments, terminal)
    if isinstance(place, str) and check(place).missing:
        raise ConfigError(f"{describe_url(place)} lacks tables of this version. Run `asides store migrate` first.")
    counts = Counts()
    damaged: list[str] = []
    with open_stores(str(place)) as stores, _open_output(path) as out:
        for line in export_lines(stores):
            if isinstance(line, Damaged):
                damaged.append(line.what)
                terminal.print_note(f"{escape_controls(line.what)} cannot be read, and is not exported.")
                continue
            counts = Counts(
                counts.keys + line.startswith(b'{"key":'),
                counts.conversations + line.startswith(b'{"conversation":'),
            )
            out.write(line)
    terminal.print_info(f"exported {_describe(counts)}.")
    if path is not None:
        terminal.print_info("The file has what was asked, answered and thought. Keep it private.")
    if damaged:
        terminal.print_note("Run `asides store check` to see what is damaged.")
    return Exit.SOME_FAILED if damaged else Exit.DONE


def run_import(arguments: Namespace, terminal: Terminal) -> int:
    """Read lines from the file that is named, or from stdin."""
    path = _read_path(arguments, "import")
    if path is None:
        raise ConfigError("no file is named. Write `asides gateway import FILE`, or - for standard input.")
    place = _find_place(arguments, terminal)
    report = ImportReport()
    with _open_input(path) as lines, _open_target(place) as target:
        try:
            import_lines(lines, target, report)
        except StoreUnavailable:
            stopped = f"The import stopped at line {report.lines}; the lines before it are imported."
            terminal.print_note(f"{stopped} Run it again for the rest.")
            raise
    if arguments.json:
        print_json(terminal, {"whole": report.is_whole, **msgspec.to_builtins(report)})
        return Exit.DONE if report.is_whole else Exit.SOME_FAILED
    for odd in report.odd:
        print_lines(terminal, [f"line {odd.line} is not imported: {escape_controls(odd.problem)}"])
    if report.is_cut:
        print_lines(terminal, ["the last line is missing, or its counts are wrong: the file may be cut off"])
    others = [("updated", report.updated), ("there already", report.there)]
    more = "".join(f"; {words}: {_describe(counts)}" for words, counts in others if counts != Counts())
    print_lines(terminal, [f"imported {_describe(report.added)}{more}"])
    return Exit.DONE if report.is_whole else Exit.SOME_FAILED


def _read_path(arguments: Namespace, action: str) -> str | None:
    words: list[str] = arguments.words
    if len(words) > 1:
        raise ConfigError(f"`asides gateway {action}` takes one file. Name one.")
    return words[0] if words else None


def _find_place(arguments: Namespace, terminal: Terminal) -> str | Path:
    """The URL of PostgreSQL, or a folder. --folder precedes the setting `store`, so that moving needs no other one."""
    if arguments.folder is not None:
        return Path(arguments.folder).expanduser().absolute()
    settings = read_settings(terminal)
    if settings.store is not None:
        return settings.store
    named = settings.gateway.folder
    return find_state_folder(os.environ) if named is None else Path(named).expanduser().absolute()


@contextmanager
def _open_output(path: str | None) -> Generator[BinaryIO, None, None]:
    """The file, which appears when it is whole, for its owner alone; None: stdout."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).expanduser()
    try:
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(part).replace(target)
        finally:
            Path(part).unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"{target} cannot be written: {problem.strerror or problem}. Name another file.") from None


@contextmanager
def _open_input(path: str) -> Generator[Iterator[bytes], None, None]:
    if path == _STDIN:
        yield _read_lines(sys.stdin.buffer)
        return
    try:
        with Path(path).expanduser().open("rb") as file:
            yield _read_lines(file)
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror or problem}. Name another file.") from None


def _read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines. One that is too long comes as its beginning, which is longer than lines may be."""
    while line := file.readline(MAX_LINE + 2):
        yield line
        while len(line) > MAX_LINE + 1 and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE + 2)


@contextmanager
def _open_target(place: str | Path) -> Generator[ImportTarget, None, None]:
    if isinstance(place, str):
        migrate(place)
        database = open_database(GatewaySettings(store=place))
        try:
            yield ImportTarget(database, database)
        finally:
            database.close()
        return
    conversations = open_page_file(place)
    keys = open_database(GatewaySettings(folder=place))
    try:
        yield ImportTarget(keys, conversations)
    finally:
        keys.close()
        conversations.close()


def _describe(counts: Counts) -> str:
    keys = f"{counts.keys} key{'s' * (counts.keys != 1)}"
    return f"{keys} and {counts.conversations} conversation{'s' * (counts.conversations != 1)}"

"""`asides doctor FILE`: says what a model would refuse of a history, and writes the repaired one. Sends nothing.

Without a file it checks whether the servers in the settings can be used.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from asides.cli.exit_codes import Exit
from asides.cli.inputs import open_chunks
from asides.cli.render import print_json, print_lines
from asides.cli.terminal import Terminal
from asides.cli.trust import read_settings
from asides.conversations.serialise import write_file
from asides.history.doctor.diagnose import diagnose
from asides.history.doctor.findings import Diagnosis, Finding
from asides.intake.documents import decode_history, parse_history
from asides.packages import PARTS, explain_missing, load_entry
from asides.settings import Settings
from asides.settings_files import find_state_folder
from asides.values.errors import ConfigError
from asides.values.notices import escape_controls

_STREAM = "-"


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Print the findings on stdout, or on stderr where the repaired history goes to stdout."""
    if arguments.clean:
        from asides.cli.clean import clean_history  # It reads envelopes of a relay, which few histories have.

        return clean_history(arguments, terminal)
    settings = read_settings(terminal)
    if arguments.file is None:
        return _check_servers(settings, arguments, terminal)
    if arguments.to is None:
        raise ConfigError("no target model. Name one with --to PROVIDER:MODEL.")
    with open_chunks(arguments.file) as chunks:
        data = b"".join(chunks)
    history, is_lines = parse_history(data)
    found = diagnose(
        history,
        settings.resolve_model(arguments.to),
        origin=None if arguments.origin is None else settings.resolve_model(arguments.origin),
        other_account=arguments.other_account,
        format_name=arguments.format,
        thinking=arguments.thinking,
        base_url=arguments.base_url,
        providers=settings.providers,
    )
    if arguments.fix is not None:
        # A history that needs no repair is copied as it is, byte for byte.
        content = data if found.repaired == history else encode_history(found.repaired, data, is_lines=is_lines)
        if arguments.fix == _STREAM:
            _print_to_stderr(found, arguments, terminal)
            terminal.write_answer(decode_history(content).decode())
            terminal.end_answer()
            return Exit.DONE
        write_history(arguments.fix, arguments.file, content, data)
    if arguments.json:
        print_json(terminal, {"file": arguments.file, "fixed": arguments.fix, **_describe(found)})
    else:
        print_lines(terminal, _format(found, arguments))
        terminal.end_answer()
    return _choose_code(found, is_fixed=arguments.fix is not None)


def _choose_code(found: Diagnosis, *, is_fixed: bool) -> Exit:
    return Exit.DONE if found.sound or is_fixed else Exit.UNEXPECTED


# --- the servers ------------------------------------------------------------------------------------------------------


def _check_servers(settings: Settings, arguments: Namespace, terminal: Terminal) -> int:
    given = [arguments.to, arguments.fix, arguments.origin, arguments.base_url, arguments.thinking]
    if any(value is not None for value in given) or arguments.other_account or arguments.format != "auto":
        raise _build_no_file_error()
    check_servers = load_entry(PARTS, "check_servers")
    if check_servers is None:
        if settings.store is None and settings.gateway.redis is None:
            raise _build_no_file_error()
        raise explain_missing("a check of the servers", "gateway")
    checks = check_servers(settings.store, settings.gateway.redis)
    is_sound = all(each.is_sound for each in checks)
    if arguments.json:
        print_json(terminal, {"sound": is_sound, "servers": [msgspec.to_builtins(each) for each in checks]})
    else:
        lines = [
            f"{each.name}: {'' if each.is_sound else 'problem: '}{each.text}"
            for each in checks
            if not (arguments.quiet and each.is_sound)
        ]
        if settings.store is None and not arguments.quiet:
            lines.insert(0, f"store: none is set; SQLite files in {find_state_folder(os.environ)} are used")
        print_lines(terminal, map(escape_controls, lines))
    return Exit.DONE if is_sound else Exit.UNEXPECTED


def _build_no_file_error() -> ConfigError:
    return ConfigError("there is no history. Name its file; `-` reads standard input.")


# --- the repaired file ------------------------------------------------------------------------------------------------


def encode_history(repaired: Any, data: bytes, *, is_lines: bool) -> bytes:
    """Write the history as the file was: in lines, indented, or on one line."""
    if is_lines:
        return b"".join(msgspec.json.encode(line) + b"\n" for line in repaired)
    encoded = msgspec.json.encode(repaired)
    return msgspec.json.format(encoded, indent=2) + b"\n" if b"\n" in data.strip() else encoded


def write_history(name: str, source: str, content: bytes, data: bytes) -> None:
    """Write the history. If this is the file that it came from, that is kept beside it."""
    path = Path(name)
    if source != _STREAM and _is_same_file(path, Path(source)):
        if content == data:
            return
        original = path.with_name(f"{path.name}.orig")
        if original.exists():
            raise ConfigError(f"{original} exists, and the input would be kept there. Write to another file.")
        write_file(original, data)
    write_file(path, content)


def _is_same_file(path: Path, source: Path) -> bool:
    try:
        return path.samefile(source)
    except OSError:
        return False


# --- the report -------------------------------------------------------------------------------------------------------


def _describe(found: Diagnosis) -> dict[str, Any]:
    fields = found.to_dict()
    del fields["repaired"]
    return {**fields, "sound": found.sound}


def _print_to_stderr(found: Diagnosis, arguments: Namespace, terminal: Terminal) -> None:
    for line in _format(found, arguments):
        terminal.print_info(line)


def _format(found: Diagnosis, arguments: Namespace) -> Iterator[str]:
    """The report, line by line. Names in the file may hold anything."""
    return map(escape_controls, _list_lines(found, arguments))


def _list_lines(found: Diagnosis, arguments: Namespace) -> Iterator[str]:
    refused, ignored = found.refused, found.ignored
    name = "standard input" if arguments.file == _STREAM else arguments.file
    yield f"{name} ({found.format}) to {found.model}: {_sum_up(len(refused))}"
    for finding in refused:
        yield from _format_finding(finding)
    if not arguments.quiet:
        for finding in ignored:
            yield from _format_finding(finding)
        yield from (f"note: {note}" for note in found.notes)
    if arguments.fix is not None and arguments.fix != _STREAM:
        yield f"written: {arguments.fix}"
    elif refused and arguments.fix is None:
        yield "Write the repaired history with --fix FILE."


def _sum_up(count: int) -> str:
    match count:
        case 0:
            return "sound"
        case 1:
            return "not sound, one thing would be refused"
        case _:
            return f"not sound, {count} things would be refused"


def _format_finding(finding: Finding) -> Iterator[str]:
    kind = f" ({finding.kind})" if finding.kind else ""
    yield f"{finding.path}: {finding.effect}{kind}"
    yield f"  {finding.detail}"
    if finding.repair:
        yield f"  repair: {finding.repair}"
    if finding.source:
        yield f"  since {finding.since}: {finding.source}" if finding.since else f"  source: {finding.source}"

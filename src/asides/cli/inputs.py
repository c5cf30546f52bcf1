"""What was typed, read into what the library takes: the prompt with its files, the options of a call, the settings.

Not here: the options themselves (options), and sending anything.
"""

from __future__ import annotations

import json
import mimetypes
import os
import select
import sys
from argparse import Namespace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import urlsplit

from asides.cli.default_model import default_model
from asides.cli.gate import Gate
from asides.cli.read_body import reason_of
from asides.cli.terminal import Terminal
from asides.options import Options
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError
from asides.values.messages import File, Image, Message, Part, Text

# Longer than any pipe that has something to say needs to begin; then it is better to say what we wait for.
_STDIN_PATIENCE_SECONDS = 1.0

_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


# Those that go to the library as they were typed.
_PlainOption: TypeAlias = Literal[
    "thinking",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "base_url",
    "api_key",
    "timeout",
    "retries",
    "on_conflict",
]
_PLAIN_OPTIONS: tuple[_PlainOption, ...] = get_args(_PlainOption)


class Asked(NamedTuple):
    """Who is asked, and how; the same for every question of a chat."""

    target: Target
    options: Options
    settings: Settings

    @property
    def model(self) -> str:
        """As the library takes it: provider:model."""
        return f"{self.target.provider.name}:{self.target.model}"

    @property
    def gate(self) -> Gate:
        """Whether its thinking is shown."""
        return Gate(self.settings, self.model)

    def towards(self, model: str) -> Asked:
        """The same for another model. An address and a key given by hand stay with the provider they are for."""
        target = find_target(model, base_url=self.options.get("base_url"), rows=self.settings.providers)
        if target.provider.name == self.target.provider.name:
            return self._replace(target=target)
        options = self.options.copy()
        options.pop("base_url", None)
        options.pop("api_key", None)
        return self._replace(target=find_target(model, rows=self.settings.providers), options=options)


def read_asked(arguments: Namespace, terminal: Terminal) -> Asked:
    """The model and the options of a call, with the settings of the environment and the file below them."""
    settings = load_settings(show_reasoning_thinking=arguments.show_thinking)
    model = arguments.model or settings.model or default_model(arguments, settings, os.environ, terminal)
    target = find_target(model, base_url=arguments.base_url, rows=settings.providers)
    if arguments.api_key:
        better = f": {' or '.join(target.provider.key_env)}" if target.provider.key_env else ""
        terminal.note(f"others on this machine can read a key on the command line; the environment is better{better}")
    return Asked(target, read_options(arguments), settings)


def read_options(arguments: Namespace) -> Options:
    """The options that were given; what was not is left to the settings."""
    options: Options = {}
    for name in _PLAIN_OPTIONS:
        if (value := getattr(arguments, name)) is not None:
            options[name] = value
    if arguments.system is not None:
        options["system"] = _text(arguments.system)
    if arguments.extra is not None:
        options["extra"] = _object(arguments.extra, "--extra")
    if arguments.schema is not None:
        options["output"] = _object(_read_text(arguments.schema, "--schema"), f"--schema {arguments.schema}")
    return options


def _text(argument: str) -> str:
    """An argument as text that can be sent: bytes that the shell passed and that are no UTF-8 become U+FFFD."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise ConfigError(f"{where} does not read as JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where} has to be a JSON object, in braces.")
    return value


def _read_text(path: str, where: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{where} {path} cannot be read: {reason_of(problem)}.") from None


# --- the prompt -----------------------------------------------------------------------------------------------------


def read_prompt(arguments: Namespace, terminal: Terminal) -> Message:
    """The files, then the words, then what was piped in."""
    words = _text(" ".join(arguments.prompt)).strip()
    piped = "" if arguments.no_stdin else _piped(terminal, words)
    if not words and not piped.strip() and not arguments.file:
        raise ConfigError("there is nothing to ask: write a question, pipe one in, or use `asides chat`.")
    parts = [read_file(path) for path in arguments.file]
    return message_of(parts, "\n\n".join(text for text in (words, piped.rstrip("\n")) if text))


def message_of(parts: list[Part], words: str) -> Message:
    """A user's message. Neighbouring texts are one, since not every host takes a list."""
    said: list[Part] = []
    for part in (*parts, Text(words)):
        if isinstance(part, Text) and said and isinstance(said[-1], Text):
            said[-1] = Text(f"{said[-1].text}\n\n{part.text}" if part.text else said[-1].text)
        elif not isinstance(part, Text) or part.text:
            said.append(part)
    return Message("user", tuple(said))


def _piped(terminal: Terminal, words: str) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if words and not _has_begun():
        terminal.note("reading standard input, to put it behind the question (--no-stdin leaves it out) …")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("what is piped in is not text in UTF-8; pass it with -f FILE.") from None


def _has_begun() -> bool:
    try:
        return bool(select.select([sys.stdin], [], [], _STDIN_PATIENCE_SECONDS)[0])
    except (OSError, ValueError):
        return True  # Windows can only ask sockets.


def read_file(path: str) -> Part:
    """A file, or the address of one, as a part of a message."""
    if path.startswith(("https://", "http://")):
        name = PurePosixPath(urlsplit(path).path).name
        if name.lower().endswith(".pdf"):
            return File(name=name, url=path)
        return Image(url=path, media_type=_guess(name) or "image/png")
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise ConfigError(f"the file {path} cannot be read: {reason_of(problem)}.") from None
    name = Path(path).name
    kind = _media_type(data, name)
    if kind is None:
        text = data.decode("utf-8-sig")
        return Text(f'<file name="{name}">\n{text.rstrip()}\n</file>')
    if kind.startswith("image/"):
        return Image(data=data, media_type=kind)
    return File(name=name, data=data, media_type=kind)


def _media_type(data: bytes, name: str) -> str | None:
    """What a file is, by its first bytes; None for text."""
    for beginning, kind in _IMAGES:
        if data.startswith(beginning):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        guessed = _guess(name)
        if guessed is None or guessed.startswith("text/"):
            raise ConfigError(f"the file {name} is neither text in UTF-8 nor of a kind that its name tells.") from None
        return guessed
    return None


def _guess(name: str) -> str | None:
    return mimetypes.guess_type(name)[0]

"""The questions of a file, one JSON line, or one line of text, for each: for batches and for `ask --each`.

A row is text, an object with `prompt`, `question` or `messages`, or a row of a vendor's batch file (`custom_id` with
`body` or `params`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from asides.options import PromptLike
from asides.values.error_words import find_near_name
from asides.values.errors import AsidesError, ConfigError

_PROMPTS = ("prompt", "question", "messages")
_OPTIONS = ("system", "thinking", "max_tokens", "temperature", "top_p", "stop", "seed")
_KNOWN = ("id", "model", *_PROMPTS, *_OPTIONS)
FillPrompt: TypeAlias = Callable[[str], str]
"""Puts a question into the prompt of a template."""
LEDGER_SUFFIX = ".ledger"
"""Suffix of the ledger file of a batch, which is beside its output."""
# A row is data. It does not decide where a request or a key goes.
_NOT_FROM_A_ROW = ("api_key", "base_url", "extra")
# The address of a vendor's row that has `params`: that form has only one.
_PARAMS_URL = "/v1/messages"


class Question(msgspec.Struct, frozen=True):
    """One question of the file."""

    index: int
    """Its place among the questions; the first is 0."""
    id: str | int | None
    prompt: PromptLike
    model: str | None = None
    options: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    """Other fields of the row. They are copied to the answer."""
    content: dict[str, Any] = {}
    """What is asked, as a row without its id and other fields: `read_row` reads it back."""
    line: int = 0
    """The line of its file; the first is 1."""
    is_vendor_form: bool = False
    """Whether it is a row of a vendor's batch file: its model counts only where the caller names none."""

    @property
    def fingerprint(self) -> str:
        """The same for rows that ask the same, whatever their id and their other fields."""
        return compute_fingerprint(encode_canonical(self.content))

    def fill(self, fill_prompt: FillPrompt | None) -> Question:
        """The question in the prompt of a template; None: as it is."""
        if fill_prompt is None or not isinstance(self.prompt, str):
            return self
        prompt = fill_prompt(self.prompt)
        return msgspec.structs.replace(self, prompt=prompt, content={**self.content, "prompt": prompt})


def compute_fingerprint(content: bytes) -> str:
    """The fingerprint of a question in the rows of every output. `content`: its canonical JSON."""
    return hashlib.sha256(content).hexdigest()[:32]


def read_lines(file: Iterable[bytes], name: str, *, is_text: bool = False) -> Iterator[Question]:
    """Read the questions of a file lazily. Raises a ConfigError that names the line."""
    return _read_numbered(file, name, is_text, None)


def read_good_lines(
    file: Iterable[bytes], name: str, on_problem: Callable[[ConfigError], object], *, is_text: bool = False
) -> Iterator[Question]:
    """The same, but `on_problem` gets the error of each invalid line, and reading continues."""
    return _read_numbered(file, name, is_text, on_problem)


def _read_numbered(
    file: Iterable[bytes], name: str, is_text: bool, on_problem: Callable[[ConfigError], object] | None
) -> Iterator[Question]:
    index = 0
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            question = _read_line(line, index, number, f"{name}, line {number}", is_text)
        except ConfigError as problem:
            if on_problem is None:
                raise
            on_problem(problem)
            continue
        if question is not None:
            yield question
            index += 1


def _read_line(line: bytes, index: int, number: int, where: str, is_text: bool) -> Question | None:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not text in UTF-8.") from None
    if not text:
        return None
    return read_row(text if is_text else _parse(text, where), index, where, number)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float)
    except _NoNumber as problem:
        raise ConfigError(f"{where} has {problem}, which is not a JSON number. Write null, or leave it out.") from None
    except (ValueError, RecursionError):
        raise ConfigError(
            f'{where} is not JSON. Write "a question" in quotes or {{"prompt": …}} a line; or plain text in a '
            "file whose name ends with .txt."
        ) from None


class _NoNumber(ValueError):
    """A number that Python reads and JSON does not have, such as NaN: other programs could not read the output."""


def _refuse_constant(name: str) -> Any:
    raise _NoNumber(name)


def _read_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NoNumber("a number beyond all limits")
    return number


def read_row(row: Any, index: int, where: str, line: int = 0) -> Question:
    """Read one row. Raises a ConfigError that names the place."""
    if isinstance(row, str):
        return Question(index, None, _check_prompt(row, where), content={"prompt": row}, line=line)
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: a question must be text or an object, not {type(row).__name__}.")
    if ("body" in row or "params" in row) and not any(name in row for name in _PROMPTS):
        return _read_vendor_row(row, index, where, line)
    _check_names(row, where)
    named = [name for name in _PROMPTS if row.get(name) is not None]
    if len(named) != 1:
        found = f"has {' and '.join(named)}" if named else "has no question"
        raise ConfigError(f"{where} {found}. Give one of {', '.join(_PROMPTS)}.")
    model = row.get("model")
    if not isinstance(model, (str, type(None))):
        raise ConfigError(f"{where}: model is text, as provider:model.")
    options = {name: row[name] for name in _OPTIONS if row.get(name) is not None}
    prompt = _check_prompt(row[named[0]], where)
    content: dict[str, Any] = {"prompt" if isinstance(prompt, str) else "messages": prompt, **options}
    return Question(
        index,
        _read_id(row.get("id"), "id", where),
        prompt,
        model,
        options,
        {name: value for name, value in row.items() if name not in _KNOWN},
        content if model is None else {**content, "model": model},
        line,
    )


def _read_id(given: Any, name: str, where: str) -> str | int | None:
    if not isinstance(given, (str, int, type(None))) or isinstance(given, bool):
        raise ConfigError(f"{where}: {name} is text or a number.")
    return given


def _check_names(row: dict[str, Any], where: str) -> None:
    for name in row:
        if name in _NOT_FROM_A_ROW:
            raise ConfigError(f"{where}: {name} does not come from a row. Give it on the command line.")
        if name not in _KNOWN and (near := find_near_name(name, _KNOWN, cutoff=0.8)) is not None:
            raise ConfigError(f"{where} has a field {name[:40]!r}; did you mean {near}?")


def _check_prompt(prompt: Any, where: str) -> PromptLike:
    is_given = bool(prompt.strip()) if isinstance(prompt, str) else bool(prompt)
    if not isinstance(prompt, (str, list)) or not is_given:
        raise ConfigError(f"{where}: a question is text, or a list of messages, and not empty.")
    checked: PromptLike = prompt
    return checked


def encode_canonical(value: object) -> bytes:
    """JSON with sorted names and without spaces: equal values give equal bytes."""
    return _CANONICAL.encode(value).encode()


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


# --- rows of vendors' batch files ---------------------------------------------------------------------------------


def _read_vendor_row(row: dict[str, Any], index: int, where: str, line: int) -> Question:
    """A row as OpenAI's batches have it (custom_id, method, url, body), or Anthropic's (custom_id, params)."""
    url, body = row.get("url", "/v1/chat/completions"), row.get("body")
    if "params" in row:
        url, body = _PARAMS_URL, row["params"]
    if not isinstance(url, str) or not isinstance(body, dict):
        raise ConfigError(f"{where}: a row of a batch file has the text url and the object body, or the object params.")
    if row.get("method", "POST") != "POST":
        raise ConfigError(f"{where}: only requests with the method POST can be asked.")
    prompt, model = _read_body(url, body, where)
    known = ("custom_id", "method", "url", "body", "params")
    return Question(
        index,
        _read_id(row.get("custom_id"), "custom_id", where),
        prompt,
        model,
        rest={name: value for name, value in row.items() if name not in known},
        content={"url": url, "body": body},
        line=line,
        is_vendor_form=True,
    )


def _read_body(url: str, body: dict[str, Any], where: str) -> tuple[PromptLike, str]:
    # Few files are of this form, and readers of requests load much.
    from asides.providers.find import find_provider
    from asides.providers.table import find_maker
    from asides.relay.endpoints import NoEndpoint, find_endpoint, find_reply_form

    try:
        endpoint = find_endpoint("POST", url, "", {})
    except NoEndpoint:
        endpoint = None
    if endpoint is None or endpoint.action != "reply":
        raise ConfigError(f"{where}: {url[:80]!r} is not an endpoint that replies. Use /v1/chat/completions.")
    read, _ = find_reply_form(endpoint.dialect, endpoint.path, {})
    try:
        served = read(encode_canonical(body), endpoint.path)
    except AsidesError as problem:
        raise ConfigError(f"{where}: {problem}") from None
    named = served.model.partition(":")
    is_qualified = bool(named[1])
    try:
        find_provider(named[0])
    except ConfigError:
        is_qualified = False
    model = served.model if is_qualified else f"{find_maker(endpoint.dialect)}:{served.model}"
    return served.prompt, model

"""What a test expects of the requests that reached a stage: none was refused, and no thinking leaked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import unquote, unquote_plus

from asides_stage.stage.request_log import Received, RefusedRequest

Searched: TypeAlias = "str | bytes | Path | Mapping[str, Searched] | Iterable[Searched]"
"""A text, bytes, a file or a folder, or several of them."""

_MOST_SHOWN = 10
# The fields in which a turn of the model takes its own thinking back, in the dialects that have one.
_THINKING_FIELDS = frozenset({"thinking", "reasoning", "reasoning_content", "reasoning_details", "reasoningContent"})
# The items and blocks that are thinking.
_THINKING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MODEL_ROLES = frozenset({"assistant", "model"})


class RefusalExpectation:
    """Expects that no request breaks a rule: to the end of its `with` block, or else until the stage closes."""

    def __init__(self, list_refusals: Callable[[], list[RefusedRequest]]) -> None:
        self._list_refusals = list_refusals
        self._seen: set[int] = set()
        """The identities of the refusals before the block."""
        self._is_checked = False

    def __enter__(self) -> Self:
        self._seen = {id(refusal) for refusal in self._list_refusals()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.check()
        else:
            # The exception of the block is shown, and the refusals would hide it.
            self._is_checked = True

    def check(self) -> None:
        """Raise AssertionError with the reasons if there was a refusal. Checking again after a block does nothing."""
        if self._is_checked:
            return
        self._is_checked = True
        refusals = [refusal for refusal in self._list_refusals() if id(refusal) not in self._seen]
        if refusals:
            shown = [f"  request {one.number} {one.path}: {one.kind or 'no kind'}: {one.text}" for one in refusals]
            more = [f"  and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
            count = "1 request" if len(refusals) == 1 else f"{len(refusals)} requests"
            raise AssertionError("\n".join([f"the stage's rules refuse {count}:", *shown[:_MOST_SHOWN], *more]))


# --- leaks ------------------------------------------------------------------------------------------------------------


def assert_no_leak(canary: str, requests: Iterable[Received] = (), in_: Searched | None = None) -> None:
    """Raise AssertionError with the places if the canary is where thinking must not be.

    In requests, it may only be in the thinking of the model's own turns. In other things (`in_`), it may be nowhere.
    The error names the places, not their content.
    """
    if not canary:
        raise ValueError("an empty canary is in every text. Give a word that only the thinking has.")
    places = [place for number, one in enumerate(requests) for place in _search_request(canary, one, number)]
    if in_ is not None:
        places += _search(canary, in_, "in_")
    if places:
        more = [f"  and {len(places) - _MOST_SHOWN} more"] if len(places) > _MOST_SHOWN else []
        raise AssertionError("\n".join(["thinking leaked into:", *(f"  {one}" for one in places[:_MOST_SHOWN]), *more]))


def _search_request(canary: str, request: Received, number: int) -> Iterator[str]:
    name = f"request {number} {request.method}"
    for part, text in (("path", request.path), ("query", request.query)):
        if canary in text or canary in unquote(text) or canary in unquote_plus(text):
            yield f"{name}: the {part} of the address"
    for header, value in request.headers.items():
        if canary in value or canary in unquote(value):
            yield f"{name}: the header {header}"
    document = request.json
    if document is None:
        yield from _search(canary, request.body, f"{name}: the body")
    else:
        yield from _search_json(canary, document, f"{name}: body", of_model=False)


def _search_json(canary: str, value: Any, place: str, *, of_model: bool) -> Iterator[str]:
    """Yield the places of the canary in a document. `of_model`: it is inside of a turn of the model."""
    if isinstance(value, str):
        if canary in value:
            yield place
        return
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _search_json(canary, inner, f"{place}[{number}]", of_model=of_model)
        return
    if not isinstance(value, dict):
        return
    role = value.get("role")
    of_model = role in _MODEL_ROLES if isinstance(role, str) else of_model
    # An item of its own is thinking without a role.
    is_item = value.get("type") == "reasoning" and role is None
    if is_item or (of_model and (value.get("type") in _THINKING_TYPES or value.get("thought") is True)):
        return
    for name, inner in value.items():
        if canary in name:
            yield f"{place}: a name"
        if not (of_model and name in _THINKING_FIELDS):
            yield from _search_json(canary, inner, f"{place}.{name}", of_model=of_model)


def _search(canary: str, value: Searched, place: str) -> list[str]:
    if isinstance(value, str):
        return [place] if canary in value else []
    if isinstance(value, (bytes, bytearray, memoryview)):
        return [place] if canary.encode() in bytes(value) else []
    if isinstance(value, Path):
        return _search_path(canary, value)
    if isinstance(value, Mapping):
        inside = [found for name, inner in value.items() for found in _search(canary, inner, f"{place}[{name!r}]")]
        return [*(f"{place}: a name" for name in value if canary in str(name)), *inside]
    given: Any = value
    if not isinstance(given, Iterable):
        raise TypeError(f"{place} is a {type(given).__name__}. Give text, bytes, a Path, or a list or dict of them.")
    return [found for number, inner in enumerate(value) for found in _search(canary, inner, f"{place}[{number}]")]


def _search_path(canary: str, path: Path) -> list[str]:
    """Search a file, or every file of a folder. A file that is not there is an error: it would hide a leak."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        return [found for one in files for found in _search_path(canary, one)]
    named = [f"the name of {path.name}"] if canary in path.name else []
    return [*named, *([f"the file {path.name}"] if canary.encode() in path.read_bytes() else [])]

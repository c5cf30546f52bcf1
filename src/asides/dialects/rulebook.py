"""The rulebook: what the hosts of a dialect refuse, as data and small functions over a wire request.

Each dialect has a module `rules` with a tuple `RULES` and a function `check(request, target)`, which yields every rule
that a request breaks. The stage refuses with it, the doctor reports with it, the conformance suite checks with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import msgspec

from asides.providers.provider import Target

if TYPE_CHECKING:
    from asides.values.rejections import RejectionKind

Wire: TypeAlias = dict[str, Any]
"""A JSON object as it was sent. Its fields may have any type."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a host: the kind of refusal, the server's words, and where and when they were seen."""

    kind: RejectionKind | None
    """The kind of refusal, by which a request is repaired; None if it has none."""
    text: str
    """The server's words, with {names} for the parts that vary. Literal braces are doubled."""
    since: str
    """The date of the wording: year-month(-day)."""
    source: str
    status: int = 400
    code: str | None = None
    """The machine-readable code of the error, where the server sends one."""
    param: str | None = None
    """The field that the error names, with {names} for the parts that vary."""

    def broken(self, path: str = "", /, *, quoted: Any = None, **names: object) -> BrokenRule:
        """Report that the request breaks this rule at `path`; `names` fill in the text and the param."""
        param = None if self.param is None else self.param.format(**names)
        return BrokenRule(self, self.text.format(**names), path, param, quoted)

    def shown(self, path: str, text: str) -> BrokenRule:
        """Report that a saved history breaks this rule at `path`; `text` says in our words what it shows."""
        return BrokenRule(self, text, path)


class BrokenRule(msgspec.Struct, frozen=True):
    """A rule that a request or a saved history breaks."""

    rule: Rule
    text: str
    """What is wrong: for a request in the server's words."""
    path: str = ""
    """The place in the request: "messages[3].content[0]", or the name of a field; "" for the whole request."""
    param: str | None = None
    """The field that the error names, for hosts that name one."""
    quoted: Any = None
    """The refused value, for hosts that quote it."""

    @property
    def kind(self) -> RejectionKind | None:
        """The kind of refusal."""
        return self.rule.kind


class WireRequest(msgspec.Struct, frozen=True):
    """A request as a server sees it, without its credential."""

    body: Wire
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Header names are in lower case."""
    path: str = ""
    """The URL path, for dialects that name the model there."""
    today: date = date(2026, 11, 18)
    """The day whose rules apply. Pure code has no clock, so the caller sets it."""


class SavedHistory(msgspec.Struct, frozen=True):
    """What is known about a saved history besides its messages."""

    target: Target
    """The model whose rules hold for it."""
    is_request: bool = False
    """It came with the settings of a request."""
    is_stored: bool = False
    """The provider may have stored items."""
    continues: bool = False
    """The request continues a conversation that the provider has stored."""


class Rulebook(Protocol):
    """The module `rules` of a dialect. Some also have `check_saved`, for what only a saved history shows."""

    RULES: tuple[Rule, ...]

    def check(self, request: WireRequest, target: Target) -> Iterator[BrokenRule]:
        """Yield every rule that the request breaks at this target, in the order in which the server checks."""
        ...


def find_rulebook(dialect: str) -> Rulebook | None:
    """Return the rules of one of our dialects; None for a dialect of the caller, or without rules."""
    from asides.dialects import DIALECTS

    module = f"asides.dialects.{dialect}.rules"
    if dialect not in DIALECTS or find_spec(module) is None:
        return None
    return cast("Rulebook", import_module(module))


def check_saved(dialect: str, items: Sequence[Wire], history: SavedHistory) -> Iterator[BrokenRule]:
    """Yield the rules that a saved history breaks for certain, though a request alone does not show it."""
    check = getattr(find_rulebook(dialect), "check_saved", None)
    return iter(()) if check is None else check(items, history)


def find_rule_of(dialect: str, kind: RejectionKind) -> Rule:
    """Return the first rule of a kind of refusal: of the dialect, or else of chat completions."""
    books = (find_rulebook(dialect), find_rulebook("openai_chat"))
    return next(rule for book in books if book is not None for rule in book.RULES if rule.kind == kind)


def as_object(value: Any) -> Wire:
    """Return a JSON object; {} for any other value."""
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[Wire]:
    """Return the objects of a list, {} in place of any other value."""
    return [as_object(item) for item in value] if isinstance(value, list) else []

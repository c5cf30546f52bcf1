"""Thoughts, seals and their origin; `Thinking`, the request for an amount of thinking; and how it is read from the
forms that callers use (`read_thinking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from asides.values.errors import InvalidThinking
from asides.values.json_form import JsonForm
from asides.values.notices import Notice

Effort: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
Mode: TypeAlias = Literal["off", "auto", "on", "between_tools"]
Show: TypeAlias = Literal["none", "summary", "raw"]
Summary: TypeAlias = Literal["auto", "concise", "detailed"]
ThoughtKind: TypeAlias = Literal["summary", "raw", "hidden"]
ThoughtSource: TypeAlias = Literal["field", "tags", "block", "responses_summary", "responses_raw"]

EFFORTS: tuple[Effort, ...] = get_args(Effort)


def nearest_effort(asked: Effort, supported: Sequence[Effort]) -> Effort:
    """Return the supported effort that is closest to the one asked for; of two, the lower, which costs less."""
    place = EFFORTS.index(asked)
    return min(supported, key=lambda effort: (abs(EFFORTS.index(effort) - place), EFFORTS.index(effort)))


class Origin(msgspec.Struct, JsonForm, frozen=True):
    """The provider, endpoint, model and account that made a thought. Seals go back only there."""

    provider: str
    endpoint: str
    """The base URL, without credentials."""
    model: str
    account: str = ""
    """A fingerprint of the account that asked; "" where it is not known."""


ENVELOPES = ("asd1.", "YXNkMS")
"""Prefixes of a relay's tokens, plain and in base64. Only the relay that made them can read them."""


class Seal(msgspec.Struct, JsonForm, frozen=True):
    """An opaque token that a provider wants back. It is stored byte for byte and never shown."""

    _private = {"value": "seals", "entry": "both"}

    kind: str
    """Its name on the wire: "signature", "encrypted", "redacted", "thought_signature", "reasoning_details" …"""
    value: str
    """The token; "" where only the entry goes back."""
    origin: Origin | None = None
    entry: str | None = None
    """The JSON object that carried the value, verbatim, where the whole object goes back."""

    def __repr__(self) -> str:
        return f"Seal(kind={self.kind!r}, value=<{len(self.value)} characters>)"


class Thought(msgspec.Struct, JsonForm, frozen=True, tag="reasoning"):
    """One block of a model's thinking, or all blocks joined (`reply.thinking`). It is false without text and seals."""

    _private = {"text": "thinking"}

    text: str
    kind: ThoughtKind = "raw"
    source: ThoughtSource = "field"
    origin: Origin | None = None
    seals: tuple[Seal, ...] = ()
    via: str | None = None
    """The wire field that carried it. Providers want it back under the same name."""
    complete: bool = True
    """False: the reply broke off inside it. (Version 0.1 also saved it for thoughts that are not `replayable`.)"""
    withheld: bool = False
    """True: it was saved without its text, so it cannot go back."""
    replayable: bool = True
    """False: it may be shown but not sent back, since messages that its seals depend on have changed or are lost."""

    seconds: float | None = None
    """How long the model was seen to think it: from its first text until something else came. None if its arrival was
    not seen, as in a reply that came in one piece, or in a saved conversation. Not compared, and not saved.
    """

    @property
    def can_replay(self) -> bool:
        """Whether it may go back to its provider: it is complete, replayable and has its text."""
        return self.complete and self.replayable and not self.withheld

    def __bool__(self) -> bool:
        return bool(self.seals or self.text.strip())

    def __repr__(self) -> str:
        size = f"<{len(self.text)} characters>"
        return f"Thought({size}, kind={self.kind!r}, source={self.source!r}, seals={len(self.seals)})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Thought) and _get_content(self) == _get_content(other))

    def __ne__(self, other: object) -> bool:
        # Without this, the != of Struct would not call __eq__.
        return not self == other

    def __hash__(self) -> int:
        return hash(_get_content(self))


SAVED_THOUGHT_FIELDS = tuple(name for name in Thought.__struct_fields__ if name != "seconds")
_get_content = attrgetter(*SAVED_THOUGHT_FIELDS)

NO_THOUGHT = Thought("", "hidden")
"""The thinking of a reply that has none."""


# A server that closes its tag after every token sends many blocks of a word each (contract, §5).
_FRAGMENT_LENGTH = 24
_FRAGMENTS = 6


def join_thoughts(texts: Sequence[str]) -> str | None:
    """Join the texts of all blocks, with a blank line between them; None when all are blank."""
    blocks = [text for text in texts if text and not text.isspace()]
    if len(blocks) < 2:
        return blocks[0] if blocks else None
    if len(blocks) >= _FRAGMENTS and all(len(text) <= _FRAGMENT_LENGTH and "\n" not in text for text in blocks):
        return " ".join(text.strip() for text in blocks)
    return "\n\n".join(blocks)


# --- the request ------------------------------------------------------------------------------------------------------


class Thinking(msgspec.Struct, frozen=True):
    """The requested amount of thinking. A field that is unset is not sent, so that the provider's default applies."""

    mode: Mode | None = None
    """"off", "auto" (the model decides), "on" (no effort named), "between_tools" (only between tool calls, for the few
    models that have it); None: unset, or implied by effort or budget."""
    effort: Effort | None = None
    budget: int | None = None
    """The number of tokens for thinking."""
    show: Show = "summary"
    """The thinking that the provider is asked to show, and that the command line prints. It never changes `text`."""
    summary: Summary | None = None
    replay: Literal["auto", "never"] = "auto"
    """Whether earlier thinking goes back: by the provider's rule, or never."""
    display: str | None = None
    """Claude's own word for the thinking to show, sent as it is; None: the one that `show` means."""

    def __post_init__(self) -> None:
        if self.effort is not None and self.effort not in EFFORTS:
            _read_word(self.effort, [])  # Raises InvalidThinking, or maps another word for an effort.

    @property
    def asked(self) -> bool:
        """Whether the caller set an amount of thinking, "off" included."""
        return self.mode is not None or self.effort is not None or self.budget is not None

    @property
    def wanted(self) -> bool:
        """Whether the caller asked for thinking, in any form."""
        return self.asked and self.mode != "off"


def turn_off(thinking: Thinking) -> Thinking:
    """The same request with thinking turned off."""
    return msgspec.structs.replace(thinking, mode="off", effort=None, budget=None)


# --- reading a request ------------------------------------------------------------------------------------------------

ThinkingSetting: TypeAlias = "Thinking | str | int | bool | Mapping[str, Any] | None"


def read_thinking(
    setting: ThinkingSetting = None,
    *,
    reasoning_effort: str | None = None,
    reasoning: Mapping[str, Any] | None = None,
) -> tuple[Thinking, tuple[Notice, ...]]:
    """Read a request for thinking in any of its forms; return it with notices about mapped values.

    `setting` is `thinking=`, the objects of Anthropic and of other programs included. `reasoning_effort` and
    OpenRouter's object `reasoning` are the two other forms. More than one of them raises `InvalidThinking`.
    """
    given = [
        name
        for name, value in (("thinking", setting), ("reasoning_effort", reasoning_effort), ("reasoning", reasoning))
        if value is not None
    ]
    if len(given) > 1:
        raise InvalidThinking(
            f"{' and '.join(given)} both set the amount of thinking; give one of them.", setting=given[0]
        )
    notices: list[Notice] = []
    if reasoning_effort is not None:
        return _read_word(reasoning_effort, notices), tuple(notices)
    if reasoning is not None:
        return _read_openrouter(reasoning, notices), tuple(notices)
    if isinstance(setting, Mapping):
        return _read_mapping(_rename_fields(setting), notices), tuple(notices)
    if isinstance(setting, Thinking):
        # A Struct accepts any value in any field, so they are checked here.
        return _read_mapping(msgspec.structs.asdict(setting), notices), tuple(notices)
    if setting is None:
        return Thinking(), ()
    if isinstance(setting, bool):
        return Thinking(mode="on" if setting else "off"), ()
    if isinstance(setting, int):
        return _read_budget(setting), ()
    return _read_word(setting, notices), tuple(notices)


# Python refuses to read a number of more than 4,300 digits.
_MAX_DIGITS = 20


def _read_word(word: object, notices: list[Notice]) -> Thinking:
    if not isinstance(word, str):
        raise InvalidThinking(
            f"thinking must be a word, a number of tokens or an object, not {type(word).__name__}.", setting="thinking"
        )
    name = word.strip().lower()
    if name == "ultra":
        # DeepSeek and Ollama read it as max; in OpenAI's command line it is max with helpers (2026-11-15).
        notices.append(Notice("effort_mapped", "ultra is called max here", "thinking", "ultra", "max"))
        name = "max"
    if name in EFFORTS:
        return Thinking(effort=name)
    match name:
        case "off" | "none" | "false" | "disabled":
            return Thinking(mode="off")
        case "auto" | "adaptive":
            return Thinking(mode="auto")
        case "on" | "true" | "enabled":
            return Thinking(mode="on")
        case _ if name.isdecimal() and len(name) < _MAX_DIGITS:
            return _read_budget(int(name))
        case _:
            raise InvalidThinking(
                f"thinking={word!r} is not known; use off, auto, {', '.join(EFFORTS)}, or a number of tokens.",
                setting="thinking",
            )


def _read_budget(tokens: object) -> Thinking:
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise InvalidThinking(
            f"a thinking budget must be a whole number of tokens, not {type(tokens).__name__}.", setting="thinking"
        )
    if abs(tokens) >= 10**_MAX_DIGITS:
        raise InvalidThinking("the thinking budget is too large to be a number of tokens.", setting="thinking")
    if tokens < 0:
        raise InvalidThinking(f"a thinking budget of {tokens} tokens is below zero.", setting="thinking")
    return Thinking(mode="off") if tokens == 0 else Thinking(budget=tokens)


def _read_summary(word: object, notices: list[Notice]) -> Summary | None:
    match word:
        case None | "none":
            return None
        case "auto":
            return "auto"
        case "concise":
            return "concise"
        case "detailed":
            return "detailed"
        case "brief":
            notices.append(
                Notice(
                    "summary_mapped", "brief is called concise today", setting="summary", asked="brief", sent="concise"
                )
            )
            return "concise"
        case _:
            raise InvalidThinking(f"summary={word!r} is not known; use auto, concise or detailed.", setting="summary")


_OPENROUTER_FIELDS = frozenset({"effort", "max_tokens", "exclude", "enabled", "summary"})


def _read_openrouter(value: object, notices: list[Notice]) -> Thinking:
    if not isinstance(value, Mapping):
        raise InvalidThinking(
            f"reasoning is an object with {', '.join(sorted(_OPENROUTER_FIELDS))}, not {type(value).__name__}.",
            setting="reasoning",
        )
    _reject_unknown_fields(value, _OPENROUTER_FIELDS, "reasoning")
    show: Show = "none" if value.get("exclude") is True or value.get("summary") == "none" else "summary"
    summary = _read_summary(value.get("summary"), notices)
    if value.get("enabled") is False:
        return Thinking(mode="off", show=show, summary=summary)
    asked = Thinking(mode="on") if value.get("enabled") is True else Thinking()
    if value.get("effort") is not None:
        asked = _read_word(value["effort"], notices)
    elif value.get("max_tokens") is not None:
        asked = _read_budget(value["max_tokens"])
    return msgspec.structs.replace(asked, show=show, summary=summary)


# Other names that people have for the tokens of a budget.
_BUDGET_NAMES = ("budget", "budget_tokens", "budgetTokens", "max_tokens", "maxTokens")
_SHOWS: tuple[Show, ...] = get_args(Show)


def _rename_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Thinking`, from the objects that other programs configure thinking with: `mode` says what to show
    (summary, raw), `enabled` whether to think, `exclude` that nothing is shown; a budget has several names.
    """
    fields = {name: given for name, given in value.items() if given is not None}
    budgets = [name for name in _BUDGET_NAMES if name in fields]
    if len(budgets) > 1:
        raise InvalidThinking(f"{' and '.join(budgets)} both set the budget; give one of them.", setting="thinking")
    if budgets:
        fields["budget_tokens" if "type" in fields else "budget"] = fields.pop(budgets[0])
    if "type" in fields:
        return fields
    shown: list[Any] = [fields.pop("show")] if "show" in fields else []
    if fields.get("mode") == "none":
        fields["mode"] = "off"
    if fields.get("mode") in _SHOWS:
        shown.append(fields.pop("mode"))
        fields.setdefault("enabled", True)
    if (exclude := fields.pop("exclude", False)) is True:
        shown.append("none")
    enabled = fields.pop("enabled", None)
    if not isinstance(exclude, bool) or not isinstance(enabled, bool | None):
        raise InvalidThinking("enabled and exclude are true or false.", setting="thinking")
    if any(word != shown[0] for word in shown):
        raise InvalidThinking(
            f"the thinking to show is {' and '.join(map(str, shown))}; give one of them.", setting="thinking"
        )
    if shown:
        fields["show"] = shown[0]
    if enabled and fields.get("mode") == "off":
        raise InvalidThinking("thinking is enabled, and its mode is off; give one of them.", setting="thinking")
    if enabled is False:
        fields = {**fields, "mode": "off"}
    elif enabled and not fields.keys() & {"mode", "effort", "budget"}:
        fields["mode"] = "on"
    return fields


_OUR_FIELDS = frozenset({"effort", "budget", "show", "summary", "replay", "mode", "display"})
# The words of Claude that `show` has too.
_DISPLAYS = ("omitted", "summarized", None)


def _read_mapping(value: Mapping[str, Any], notices: list[Notice]) -> Thinking:
    """Read the Anthropic object, or the fields of `Thinking` as a mapping, as in `asides.toml`."""
    if "type" in value:
        display: Show = "none" if value.get("display") == "omitted" else "summary"
        if (word := value.get("display")) not in _DISPLAYS:
            given = {name: field for name, field in value.items() if name != "display"}
            return msgspec.structs.replace(_read_mapping(given, notices), display=str(word))
        match value["type"]:
            case "disabled":
                return Thinking(mode="off", show=display)
            case "adaptive":
                return Thinking(mode="auto", show=display)
            case "between_tools":
                return Thinking(mode="between_tools", show=display)
            case "enabled":
                budget = value.get("budget_tokens")
                asked = Thinking(mode="on") if budget is None else _read_budget(budget)
                return msgspec.structs.replace(asked, show=display)
            case other:
                raise InvalidThinking(
                    f"thinking type {other!r} is not known; use enabled, adaptive, between_tools or disabled.",
                    setting="thinking",
                )
    _reject_unknown_fields(value, _OUR_FIELDS, "thinking")
    fields = {name: given for name, given in value.items() if given is not None}
    if fields.get("summary") == "none" and fields.get("show", "summary") == "summary":
        fields["show"] = "none"
    fields["summary"] = _read_summary(fields.get("summary"), notices)
    for name in ("budget", "effort"):
        if name in fields:
            given = fields.pop(name)
            amount = _read_budget(given) if name == "budget" else _read_word(given, notices)
            parts = {"mode": amount.mode, "effort": amount.effort, "budget": amount.budget}
            fields = {**{name: part for name, part in parts.items() if part is not None}, **fields}
    try:
        return msgspec.convert(fields, Thinking)
    except msgspec.ValidationError as problem:
        raise InvalidThinking(f"thinking is invalid: {problem}.", setting="thinking") from None


def _reject_unknown_fields(value: Mapping[str, Any], fields: frozenset[str], setting: str) -> None:
    unknown = sorted(str(name) for name in value if name not in fields)
    if unknown:
        raise InvalidThinking(
            f"{setting} has no field {unknown[0]!r}; it has {', '.join(sorted(fields))}.", setting=setting
        )

"""Reads the switches of a request back: `read(dialect, fields) → Thinking`, the inverse of `write`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from asides.providers.switches import table
from asides.providers.switches.table import Fields, Switch
from asides.values.errors import ConfigError, InvalidThinking
from asides.values.thinking import EFFORTS, Effort, Mode, Show, Summary, Thinking, read_thinking

Value = TypeVar("Value")

_TYPES = ("enabled", "disabled", "adaptive", "between_tools", "auto")
_SUMMARIES: tuple[str, ...] = get_args(Summary)


def read(dialect: str, fields: Fields) -> Thinking:
    """Take the fields that ask for thinking out of a request, and return what they ask for. Other fields stay, also
    inside the same objects, and so do words that are not known here: a newer server may know them. Raises ConfigError
    with a message for the client.
    """
    if fields.keys().isdisjoint(_list_roots(dialect)):
        return _read_nothing(dialect)
    return _read(dialect, fields)


@cache
def _list_roots(dialect: str) -> frozenset[str]:
    """The fields of a request in which something about thinking may be."""
    paths = [path for switch in table.SWITCHES[dialect] for path in switch.list_paths()]
    return frozenset(path.partition(".")[0] for path in (*paths, *table.OTHER_NAMES.get(dialect, ())))


@cache
def _read_nothing(dialect: str) -> Thinking:
    """What a request without any of these fields asks for."""
    return _read(dialect, {})


def _read(dialect: str, fields: Fields) -> Thinking:
    known = _READERS.get(dialect)
    return _read_levels(fields, table.SWITCHES[dialect][0]) if known is None else known(fields)


# --- taking fields out ------------------------------------------------------------------------------------------------


def _find_holders(fields: Fields, path: str) -> list[Fields]:
    """The objects on the way to a field, the request first; [] if one is missing."""
    holders = [fields]
    for name in path.split(".")[:-1]:
        inner = holders[-1].get(name)
        if not isinstance(inner, dict):
            return []
        holders.append(inner)
    return holders


def _peek(fields: Fields, path: str) -> Any:
    """The value of a field; None if it is not set."""
    holders = _find_holders(fields, path)
    return holders[-1].get(path.rpartition(".")[2]) if holders else None


def _take(fields: Fields, path: str, kind: type[Value]) -> Value | None:
    """Take a field out, and the objects that are empty without it; None if it is not set. Raises ConfigError if it has
    another type.
    """
    holders, names = _find_holders(fields, path), path.split(".")
    if not holders:
        return None
    value = holders[-1].pop(names[-1], None)
    for holder, name in zip(reversed(holders[:-1]), reversed(names[:-1]), strict=True):
        if not holder[name]:
            del holder[name]
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{path}: {problem}.") from None


def _take_word(fields: Fields, path: str) -> str | None:
    """Take a field out if it is text; other values stay."""
    return _take(fields, path, str) if isinstance(_peek(fields, path), str) else None


def _take_object(fields: Fields, root: str, *switches: Switch) -> dict[str, Any]:
    """Take the fields of these switches out of an object; others stay in it. Raises ConfigError if it is not one."""
    given = _take(fields, root, dict[str, Any])
    if given is None:
        return {}
    names = {path.removeprefix(f"{root}.") for switch in switches for path in switch.list_paths()}
    if others := {name: value for name, value in given.items() if name not in names and value is not None}:
        table.put(fields, root, others)
    return {name: value for name, value in given.items() if name in names and value is not None}


def _is_known(word: object) -> bool:
    """Whether a word asks for an amount of thinking that is known here. Other types are left to the reader."""
    if not isinstance(word, str):
        return True
    try:
        read_thinking(word)
    except InvalidThinking:
        return False
    return True


def _peek_unknown(fields: Fields, path: str) -> bool:
    """Whether a field has a word that is not known here."""
    return not _is_known(_peek(fields, path))


def _read_mode(fields: Fields, switch: Switch) -> Thinking | None:
    """Take the field of a switch that has one value for on, and perhaps one for off; other values stay."""
    path, on = switch.on[0]
    value = _peek(fields, path)
    if type(value) is not type(on) or (path, value) not in (*switch.on, *switch.off):
        return None
    _take(fields, path, type(on))
    return Thinking(mode="on" if value == on else "off")


# --- chat completions -------------------------------------------------------------------------------------------------


def _read_chat(fields: Fields) -> Thinking:
    """Merge the settings for thinking of all hosts. "off" wins over an amount beside it (requirements, I4)."""
    first, second = (_read_mode(fields, switch) for switch in table.TEMPLATES)
    modes = [_read_mode(fields, switch) for switch in (table.ENABLE, table.PROMPT_MODE, table.THINK)]
    found = [
        _read_effort(fields),
        _read_object(fields, "reasoning", table.OBJECT),
        _read_object(fields, "thinking", table.TOGGLE),
        first or second,
        *modes,
        *(_read_budget(fields, path) for path in table.CHAT_BUDGETS),
    ]
    return _merge([thinking for thinking in found if thinking is not None])


def _read_effort(fields: Fields) -> Thinking | None:
    path = table.EFFORT.effort
    if (path, fields.get(path)) == table.HOST_DEFAULT or _peek_unknown(fields, path):
        return None
    effort = _take(fields, path, str)
    return None if effort is None else read_thinking(reasoning_effort=effort)[0]


def _read_object(fields: Fields, root: str, switch: Switch) -> Thinking | None:
    given = fields.get(root)
    if not isinstance(given, dict) or _has_unknown_word(given):
        return None
    settings = _take_object(fields, root, switch)
    if not settings:
        return None
    if settings.get("type") in ("auto", "adaptive"):
        # Beside a budget, some hosts mean "on" by it (`Quirks.toggle_on`).
        settings["type"] = "enabled" if "budget_tokens" in settings else "adaptive"
    try:
        return (read_thinking(reasoning=settings) if switch is table.OBJECT else read_thinking(settings))[0]
    except (TypeError, ValueError):
        raise ConfigError(f"{root} is invalid.") from None


def _has_unknown_word(settings: Fields) -> bool:
    """Whether an object that asks for thinking has a word that is not known here. Then all of it stays as it is."""
    kind = settings.get("type")
    is_unknown = isinstance(kind, str) and kind not in _TYPES
    return is_unknown or not _is_known(settings.get("effort")) or not _is_summary(settings.get("summary"))


def _is_summary(word: object) -> bool:
    return not isinstance(word, str) or word in (*_SUMMARIES, "none", "brief")


def _read_budget(fields: Fields, path: str) -> Thinking | None:
    budget = _take(fields, path, int)
    # At one host a negative budget means that the model decides.
    return None if budget is None else Thinking(mode="auto") if budget < 0 else read_thinking(budget)[0]


def _merge(found: list[Thinking]) -> Thinking:
    show: Show = "none" if any(thinking.show == "none" for thinking in found) else "summary"
    summary: Summary | None = next((thinking.summary for thinking in found if thinking.summary is not None), None)
    modes: list[Mode] = [thinking.mode for thinking in found if thinking.mode is not None]
    if "off" in modes:
        return Thinking(mode="off", show=show, summary=summary)
    effort: Effort | None = next((thinking.effort for thinking in found if thinking.effort is not None), None)
    budget = next((thinking.budget for thinking in found if thinking.budget is not None), None)
    mode: Mode | None = modes[0] if modes else None
    if mode == "on" and (effort is not None or budget is not None):
        mode = None  # the amount implies it
    return Thinking(mode=mode, effort=effort, budget=budget, show=show, summary=summary)


# --- other dialects ---------------------------------------------------------------------------------------------------


def _read_responses(fields: Fields) -> Thinking:
    taken = _take_object(fields, "reasoning", table.RESPONSES)
    for name, is_known in (("effort", _is_known), ("summary", _is_summary)):
        if not is_known(taken.get(name)):
            table.put(fields, f"reasoning.{name}", taken.pop(name))
    effort, summary = taken.get("effort"), taken.get("summary")
    if summary is None and _is_summary(_peek(fields, table.OLDER_SUMMARY)):
        summary = _take(fields, table.OLDER_SUMMARY, object)
    if effort is None and summary is None:
        return Thinking(show="none")
    thinking, _ = read_thinking({"effort": effort, "summary": summary})
    return msgspec.structs.replace(thinking, show="summary" if summary is not None else "none")


def _read_messages(fields: Fields) -> Thinking:
    given = fields.get("thinking")
    is_unknown = isinstance(given, dict) and _has_unknown_word(given)
    settings = {} if is_unknown else _take_object(fields, "thinking", table.ENABLED)
    thinking = read_thinking(settings)[0] if settings else Thinking()
    word = _peek(fields, table.ENABLED.effort)
    effort = read_thinking(word)[0].effort if isinstance(word, str) and _is_known(word) else None
    if effort is None:
        return thinking
    _take_object(fields, "output_config", table.ENABLED)
    # An effort is sent with "adaptive", which adds nothing to it.
    mode = None if thinking.mode == "auto" else thinking.mode
    return msgspec.structs.replace(thinking, mode=mode, effort=effort)


def _take_effort(fields: Fields, path: str) -> str | None:
    """Take the word of an effort out; words that are not known here stay."""
    return None if _peek_unknown(fields, path) else _take_word(fields, path)


def _set_effort(thinking: Thinking, word: str) -> Thinking:
    return msgspec.structs.replace(thinking, effort=read_thinking(word)[0].effort)


def _read_converse(fields: Fields) -> Thinking:
    """Read the switch of any family of models, and the effort that they have in common."""
    thinking = _read_family(fields)
    effort = _take_effort(fields, table.COMMON_EFFORT)
    return thinking if effort is None else _set_effort(thinking, effort)


def _read_family(fields: Fields) -> Thinking:
    toggle, maximum = table.CONVERSE[0], table.CONVERSE_MAX
    thinking = Thinking()
    if _peek(fields, f"{toggle.inside}.thinking.type") in _TYPES:
        thinking = read_thinking(_take_object(fields, f"{toggle.inside}.thinking", toggle))[0]
    if (effort := _take_effort(fields, f"{toggle.inside}.{toggle.effort}")) is not None:
        thinking = _set_effort(thinking, effort)
    for switch in (table.CONVERSE_EFFORT, table.CONVERSE_CONFIG, table.CONVERSE_OBJECT):
        if (effort := _take_effort(fields, f"{switch.inside}.{switch.effort}")) is not None:
            return read_thinking(effort)[0]
    kind = _peek(fields, f"{maximum.inside}.reasoningConfig.type")
    effort = _peek(fields, f"{maximum.inside}.{maximum.effort}")
    if kind == "disabled" or (kind == "enabled" and isinstance(effort, str) and _is_known(effort)):
        _take_object(fields, f"{maximum.inside}.reasoningConfig", maximum)
        return Thinking(mode="off") if kind == "disabled" else read_thinking(effort)[0]
    return thinking


def _read_cohere(fields: Fields) -> Thinking:
    switch = table.COHERE
    given = fields.get("thinking")
    if isinstance(given, dict) and isinstance(given.get("type"), str) and given["type"] not in ("enabled", "disabled"):
        return Thinking()
    taken = {"thinking": _take_object(fields, "thinking", switch)}
    kind, budget = _take(taken, "thinking.type", str), _take(taken, switch.budget, int)
    if kind == "disabled":
        return Thinking(mode="off")
    if budget is not None:
        return read_thinking(budget)[0]
    return Thinking() if kind is None else Thinking(mode="on")


def _read_ollama(fields: Fields) -> Thinking:
    if _peek_unknown(fields, table.OLLAMA.effort):
        return Thinking()
    think: object = fields.pop(table.OLLAMA.effort, None)
    if think is None:
        return Thinking()
    if not isinstance(think, (bool, str)):
        raise ConfigError("think is true, false, or low, medium, high or max.")
    return read_thinking(think)[0]


_LEVELS: dict[str, Effort] = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}


def _read_gemini(fields: Fields) -> Thinking:
    config = _take_object(fields, table.LEVEL.inside, table.LEVEL, table.BUDGET)
    shown, level, budget = (
        config.get("includeThoughts"),
        config.get(table.LEVEL.effort),
        config.get(table.BUDGET.budget),
    )
    if level is not None and budget is not None:
        raise InvalidThinking(
            "thinkingConfig has both thinkingBudget and thinkingLevel; give one of them.", setting="thinking"
        )
    # The API shows thoughts only on request.
    show: Show = "summary" if shown is True else "none"
    if level is not None and level != table.ANY_LEVEL:
        effort = _LEVELS.get(str(level).upper())
        if effort is not None:
            return Thinking(effort=effort, show=show)
        table.put(fields, f"{table.LEVEL.inside}.{table.LEVEL.effort}", level)
    if budget is None:
        return Thinking(mode="on" if shown else None, show=show)
    if not isinstance(budget, int) or budget < -1:
        raise InvalidThinking(
            "thinkingBudget is a number of tokens, 0 for none or -1 for as many as the model decides.",
            setting="thinking",
        )
    match budget:
        case 0:
            return Thinking(mode="off", show=show)
        case -1:
            return Thinking(mode="auto", show=show)
        case _:
            return Thinking(budget=budget, show=show)


def _read_levels(fields: Fields, switch: Switch) -> Thinking:
    """Take a level out, and whether thoughts are shown: only on request, here too."""
    config = _take_object(fields, switch.inside, switch)
    path, word = switch.shown[0]
    level, shown = config.get(switch.effort), config.get(path)
    show: Show = "summary" if shown == word else "none"
    effort: Effort | None = next((effort for effort in EFFORTS if effort == level), None)
    if level is not None and effort is None:
        table.put(fields, f"{switch.inside}.{switch.effort}", level)
    if shown is not None and (path, shown) not in (*switch.shown, *switch.hidden):
        table.put(fields, f"{switch.inside}.{path}", shown)
    if effort is not None:
        return Thinking(effort=effort, show=show)
    return Thinking(mode="on" if show != "none" else None, show=show)


_READERS: dict[str, Callable[[Fields], Thinking]] = {
    "openai_chat": _read_chat,
    "openai_responses": _read_responses,
    "anthropic": _read_messages,
    "bedrock": _read_converse,
    "cohere": _read_cohere,
    "gemini": _read_gemini,
    "ollama": _read_ollama,
}

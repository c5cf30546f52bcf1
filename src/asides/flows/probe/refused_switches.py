"""Which switches a refusal names, and which efforts it lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from asides.providers.refusals import find_efforts
from asides.providers.switches.table import Switch, Wish
from asides.values.thinking import EFFORTS, Effort

UNKNOWN_EFFORT = "asides-probe"
"""An invalid effort: servers that check efforts refuse it, and most list the valid ones."""

_QUOTES = "'\"`‘’“”"
_EFFORT_WORD = re.compile(rf"(?<![\w-])(?:none|{'|'.join(EFFORTS)})(?![\w-])", re.IGNORECASE)


def is_named(name: str, said: str) -> bool:
    """Whether a refusal names a field: quoted, as a path, or as a word that is not prose."""
    written = re.escape(name)
    path = rf"[{_QUOTES}\\][^{_QUOTES}\s\\]*\b{written}\b[^{_QUOTES}\s\\]*[\\{_QUOTES}]"
    if re.search(path, said):
        return True
    if "_" in name or "." in name:
        return re.search(rf"(?<![\w]){written}(?![\w])", said, re.IGNORECASE) is not None
    bare = rf"(?<!\w){written}\.\w|\w\.{written}\b|\b(?:parameter|field|argument|param):?\s+{written}\b"
    return re.search(bare, said) is not None


def find_named(switches: Sequence[Switch], said: str, wish: Wish) -> list[Switch]:
    """The switches that a refusal names, by a field or by a value."""
    by_field = [switch for switch in switches if _is_switch_named(switch, switches, said, wish)]
    if by_field:
        return by_field
    by_value = [
        switch
        for switch in switches
        if any(re.search(rf"[{_QUOTES}]{re.escape(value)}[{_QUOTES}]", said) for value in _list_values(switch, wish))
    ]
    if by_value:
        return by_value
    # Finally as a bare word, if only one switch has it.
    loose = [
        switch
        for switch in switches
        if re.search(rf"\b{re.escape(_list_names(switch, wish)[0])}\b", said, re.IGNORECASE)
    ]
    return loose if len(loose) == 1 else []


def _is_switch_named(switch: Switch, others: Sequence[Switch], said: str, wish: Wish) -> bool:
    """Whether a refusal names a switch by its field, or by the name inside it where several share the field."""
    field, *inner = _list_names(switch, wish)
    if not is_named(field, said):
        return False
    if not inner:
        # The same name directly after another field refers to a member of that field.
        for names in (_list_names(other, wish) for other in others if other is not switch):
            if field in names[1:]:
                said = re.sub(rf"{re.escape(names[0])}\W{{1,6}}{re.escape(field)}\b", names[0], said)
        return is_named(field, said)
    siblings = [names[1:] for other in others if (names := _list_names(other, wish))[0] == field]
    anyone = any(is_named(name, said) for names in siblings for name in names)
    return not anyone or any(is_named(name, said) for name in inner)


def _list_names(switch: Switch, wish: Wish) -> list[str]:
    """The field of a switch, and the names inside it."""
    fields = switch.ask(wish)
    names = list(fields)
    for value in fields.values():
        if isinstance(value, dict):
            names += [name for name in value if name not in ("type", "enabled", "effort")]
    return names


def _list_values(switch: Switch, wish: Wish) -> list[str]:
    values: list[str] = []
    for value in switch.ask(wish).values():
        inner = value.values() if isinstance(value, dict) else [value]
        values += [text for text in inner if isinstance(text, str)]
    return values


def read_efforts(said: str) -> tuple[str, ...]:
    """The efforts that a refusal lists as known, "none" among them, in their usual order; () where it lists none."""
    listed = find_efforts(said)
    if len(listed) > 1:
        return listed
    # No list, or one that cannot be separated from its sentence: take every effort that is named.
    words = {word.lower() for word in _EFFORT_WORD.findall(said)}
    return tuple(effort for effort in ("none", *EFFORTS) if effort in words)


def keep_efforts(names: Iterable[str]) -> tuple[Effort, ...]:
    """The names that are also efforts of asides."""
    known = set(names)
    return tuple(effort for effort in EFFORTS if effort in known)

"""Finds the switch that turns thinking on or off: all at once first, then half of them, and so on.

A refusal that names a switch takes it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asides.dialects.http_body import merge_fields
from asides.flows.probe.knowledge import Knowledge
from asides.flows.probe.observe import Observation
from asides.flows.probe.refused_switches import find_named, read_efforts
from asides.flows.steps import Flow
from asides.providers.switches.table import (
    COMBINABLE,
    EFFORT,
    ENABLE,
    TEMPLATES,
    TOGGLE,
    Switch,
    Wish,
    list_switches,
)

if TYPE_CHECKING:
    from asides.flows.probe.trial_sender import TrialSender

_MANY_LEFT = 7
_STRICT = 2
_MAX_SINGLE = 4
# The fields most common at servers that refuse unknown fields.
_STRICT_ORDER = (EFFORT, TOGGLE, TEMPLATES[0], ENABLE)


def _rank_for_strict(switch: Switch) -> int:
    return _STRICT_ORDER.index(switch) if switch in _STRICT_ORDER else len(_STRICT_ORDER)


class SwitchSearch:
    """The search for one switch. Writes its findings into the knowledge."""

    def __init__(self, probe: TrialSender, known: Knowledge, wish: Wish) -> None:
        self._probe = probe
        self._known = known
        self._wish: Wish = wish
        self._dialect = probe.setup.dialect
        self._says_so = False
        """The server says that thinking cannot be turned off."""
        known.switch_wish = wish

    def run(self) -> Flow[None]:
        """Try the switches of the dialect until one is found, or all are tried."""
        left = list_switches(self._dialect, self._wish)
        if not left:
            return
        if self._dialect not in COMBINABLE:
            yield from self._try_each(left)
            return
        yield from self._search(left)
        others = list_switches(self._dialect, self._wish, rare=True)
        can_go_on = self._known.switch is None and not self._says_so
        if self._known.cannot_switch and can_go_on and self._probe.requests_left >= _MANY_LEFT:
            self._known.cannot_switch = False
            yield from self._search(others)

    def _search(self, left: list[Switch]) -> Flow[None]:
        """Search among switches that can be combined in one request."""
        single = 0
        alone: list[Switch] = []
        while left:
            seen = yield from self._try(left, "all switches at once")
            if seen.state != "refused":
                break
            named = find_named(left, seen.said, self._wish)
            if len(named) > 1 and seen.kind == "reasoning_params_conflict":
                # It knows them, but accepts only one of them.
                alone += named[1:]
                left = [switch for switch in left if switch not in alone]
                continue
            if not named:
                yield from self._try_each(sorted(left, key=_rank_for_strict))
                return
            left = [switch for switch in left if switch not in named]
            self._note_refusal(named, seen)
            single += len(named) == 1
            if single >= _STRICT and len(left) > _STRICT:
                # It names one unknown field at a time.
                yield from self._try_each(sorted(left, key=_rank_for_strict))
                return
        else:
            self._known.cannot_switch = True
            return
        if seen.state != "answered":
            return
        if not self._works(seen):
            for switch in left:
                self._known.tried[switch.name] = "accepted, and changes nothing"
            self._known.cannot_switch = True
            if alone:
                yield from self._try_each(alone)
            return
        yield from self._halve(left)

    def _halve(self, left: list[Switch]) -> Flow[None]:
        """Find one working switch among several that work together."""
        first = len(left) == 1
        while len(left) > 1:
            self._known.switch_text = f"one of {', '.join(switch.name for switch in left)} works"
            half = left[: (len(left) + 1) // 2]
            seen = yield from self._try(half, " and ".join(switch.name for switch in half))
            if seen.state == "answered" and self._works(seen):
                left, first = half, len(half) == 1
                continue
            if seen.state == "refused":
                self._note_refusal(find_named(half, seen.said, self._wish) or half, seen)
            elif seen.state == "answered":
                for switch in half:
                    self._known.tried[switch.name] = "accepted, and changes nothing"
            left, first = left[len(half) :], False
        self._keep(left[0], "seen when it was sent alone" if first else "the only one left of those that work together")

    def _try_each(self, switches: list[Switch]) -> Flow[None]:
        accepted = True
        sent: list[Any] = []
        for switch in switches:
            if switch.ask(self._wish) in sent:
                continue
            if len(sent) >= _MAX_SINGLE and self._probe.requests_left < _MANY_LEFT + _MAX_SINGLE:
                accepted = False  # the remaining requests are more useful elsewhere
                break
            sent.append(switch.ask(self._wish))
            seen = yield from self._try([switch], switch.name)
            if seen.state == "answered" and self._works(seen):
                self._keep(switch, "seen when it was sent alone")
                return
            if seen.state == "refused":
                self._note_refusal([switch], seen)
            elif seen.state == "answered":
                self._known.tried[switch.name] = "accepted, and changes nothing"
            else:
                accepted = False
        self._known.cannot_switch = self._known.cannot_switch or accepted

    def _try(self, switches: list[Switch], purpose: str) -> Flow[Observation]:
        fields: dict[str, Any] = {}
        for switch in switches:
            fields = merge_fields(fields, switch.ask(self._wish))
        room = max(switch.room for switch in switches) if self._wish == "on" else 0
        purpose = f"turn thinking {self._wish}: {purpose}"
        return (yield from self._probe.ask(purpose, self._wish, fields=fields, room=room))

    def _works(self, seen: Observation) -> bool:
        """Whether thinking appeared or disappeared. Text counts more than a count of tokens."""
        before = self._known.baseline
        shown, showed = bool(seen.thinking.strip()), before is not None and bool(before.thinking.strip())
        if self._wish == "on":
            return shown if before is not None and before.thinks else seen.thinks
        return bool(seen.answer.strip()) and (not shown if showed else not seen.thinks)

    def _keep(self, switch: Switch, how: str) -> None:
        self._known.switch, self._known.switch_text, self._known.cannot_switch = switch, how, False
        self._known.tried.pop(switch.name, None)

    def _note_refusal(self, switches: list[Switch], seen: Observation) -> None:
        for switch in switches:
            self._known.tried[switch.name] = f"refused: {seen.detail}"
            if switch.name == EFFORT.name or self._dialect == "openai_responses":
                efforts = read_efforts(seen.said)
                if efforts:
                    self._known.efforts, self._known.effort_counts = efforts, True
                    self._known.effort_text = f"a refusal lists {' '.join(efforts)} ({seen.detail})"
        if self._wish == "off" and seen.kind == "thinking_cannot_disable":
            self._known.cannot_switch = self._says_so = True

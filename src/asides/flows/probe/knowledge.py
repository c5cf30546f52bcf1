"""What a probe knows so far: `Knowledge`, which the flow fills, and the evidence that is used more than once."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from asides.flows.probe.observe import Observation
from asides.flows.probe.trials import Setup
from asides.providers.quirks import Tags
from asides.providers.switches.table import Switch, Wish

ProbeState: TypeAlias = Literal["answered", "locked", "unreachable", "nothing"]
"""An endpoint gave replies · it wants a key, or another one · incomplete reply · no endpoint found."""


class FoundEndpoint(msgspec.Struct, frozen=True):
    """An address of the server, and what answered there."""

    dialect: str
    url: str
    answers: bool | None
    """None: not known."""
    detail: str = ""


class Knowledge:
    """What a probe knows so far. The flow fills it; `infer_row` reads it at any time."""

    def __init__(self) -> None:
        self.setup: Setup | None = None
        self.models: tuple[str, ...] = ()
        self.list_detail = ""
        self.capabilities: tuple[str, ...] = ()
        """The model's capabilities according to the server."""
        self.endpoints: list[FoundEndpoint] = []
        self.replies: list[tuple[str, Observation]] = []
        """Every reply, with what was asked: "default", "on", "off", "effort", "tools", "replay"."""
        self.baseline: Observation | None = None
        self.streamed: Observation | None = None
        self.switch: Switch | None = None
        self.switch_wish: Wish = "off"
        self.switch_text = ""
        self.tried: dict[str, str] = {}
        """The outcome of each switch that was tried."""
        self.cannot_switch = False
        """Every switch was tried, and none changed anything."""
        self.efforts: tuple[str, ...] | None = None
        self.effort_text = ""
        self.effort_counts: bool | None = None
        """Whether `reasoning_effort` is read: checked, or seen to change the amount."""
        self.tools = ""
        self.tool_called: bool | None = None
        self.replay: dict[str, str] = {}
        """The outcome of a second turn with thinking "kept", "left_out" or "altered": a refusal, or "" if accepted."""
        self.adjusted: list[str] = []
        """What the server refused in an ordinary request, and what it accepted instead."""
        self.roles: dict[str, str] = {}
        self.structured: str | None = None
        self.state: ProbeState = "nothing"
        self.problem = ""
        """Why the probe had to stop."""

    @property
    def thinking(self) -> list[Observation]:
        """The replies that showed thinking; where none did, those in which it was counted or sealed."""
        shown = [seen for _, seen in self.replies if seen.thinking.strip()]
        return shown or [seen for _, seen in self.replies if seen.thinks]


def excludes_thinking(known: Knowledge) -> bool | None:
    """Whether the count of output tokens leaves thinking out; None where nothing shows it."""
    verdict: bool | None = None
    for seen in known.thinking:
        counts = dict(seen.usage)
        thought = seen.reply.usage.thinking if seen.reply is not None else None
        output = _get_first(counts, "completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens")
        if not thought or output is None:
            continue
        if thought > output:
            return True
        given = _get_first(counts, "prompt_tokens", "input_tokens", "promptTokenCount")
        total = _get_first(counts, "total_tokens", "totalTokenCount")
        if given is not None and total is not None:
            if total == given + output:
                verdict = False
            elif total == given + output + thought:
                return True
    return verdict


def _get_first(counts: dict[str, int], *names: str) -> int | None:
    return next((counts[name] for name in names if name in counts), None)


def list_fields(thinking: list[Observation]) -> tuple[str, ...]:
    """The fields that carried thinking, the most frequent first."""
    counts: dict[str, int] = {}
    for seen in thinking:
        for name, _ in seen.fields:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))


def list_tags(thinking: list[Observation]) -> Tags:
    """The tags that held thinking."""
    return tuple(dict.fromkeys(seen.tags.tag for seen in thinking if seen.tags is not None))

"""The findings of a probe, each with what was seen, as lines for people and as JSON. Pure.

They hold counts, names and the server's refusals; nothing that a model said or thought.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.flows.probe.knowledge import Knowledge, excludes_thinking, list_fields, list_tags
from asides.flows.probe.observe import Observation
from asides.values.notices import escape_controls

_MAX_SHOWN = 160
_INCLUDED = {
    True: "its output count excludes thinking",
    False: "its output count includes thinking",
    None: "whether output includes it is not known",
}


class ProbeFinding(msgspec.Struct, frozen=True):
    """One finding, or an open question."""

    topic: str
    text: str
    """The finding and its evidence in one line, without content of replies."""
    value: Any = None
    """The finding as JSON; None: not known."""


def list_findings(known: Knowledge) -> tuple[ProbeFinding, ...]:
    """Every finding, in reading order."""
    found = [_find_endpoints(known), _find_models(known)]
    if known.setup is None:
        return tuple(found)
    found += [
        _find_thinking(known),
        _find_places(known),
        _find_forms(known),
        _find_switch(known),
        _find_efforts(known),
        _find_usage(known),
        _find_tools(known),
        _find_replay(known),
        _find_settings(known),
    ]
    return tuple(found)


def _find_endpoints(known: Knowledge) -> ProbeFinding:
    parts: list[str] = []
    value: dict[str, Any] = {}
    for endpoint in known.endpoints:
        word = {True: "answers", False: "no", None: "not known"}[endpoint.answers]
        value[endpoint.url] = {"dialect": endpoint.dialect, "answers": endpoint.answers, "detail": endpoint.detail}
        parts.append(
            f"{endpoint.url} ({endpoint.dialect}): {word}{f' ({_cut(endpoint.detail)})' if endpoint.detail else ''}"
        )
    return ProbeFinding("endpoints", "; ".join(parts) or "not known", value or None)


def _find_models(known: Knowledge) -> ProbeFinding:
    model = known.setup.model if known.setup is not None else ""
    listed = f"{len(known.models)} listed" if known.models else known.list_detail or "no list was asked for"
    text = f"asked {model}; {listed}" if model else listed
    value: dict[str, Any] = {"asked": model or None, "listed": list(known.models[:100])}
    if known.capabilities:
        text += f"; the server says: {_cut(', '.join(known.capabilities))}"
        value["capabilities"] = list(known.capabilities)
    return ProbeFinding("model", text, value)


def _find_thinking(known: Knowledge) -> ProbeFinding:
    default = [seen for asked, seen in known.replies if asked == "default"]
    thought = sum(seen.thinks for seen in default)
    hidden = bool(known.thinking) and not any(seen.thinking.strip() for seen in known.thinking)
    if not default:
        return ProbeFinding("thinking", "not known: no reply with default settings")
    text = f"{thought} of {len(default)} replies with default settings had thinking"
    if hidden:
        text += "; its text is never shown, only counted or sealed"
    cut = sum(seen.is_cut for _, seen in known.replies)
    if cut:
        text += f"; {cut} of {len(known.replies)} replies ran out of tokens"
    return ProbeFinding("thinking", text, {"default": bool(thought), "replies": len(default), "hidden": hidden})


def _find_places(known: Knowledge) -> ProbeFinding:
    thinking = known.thinking
    elsewhere = tuple(dict.fromkeys(path for _, seen in known.replies for path in seen.elsewhere))
    beside = f"; text named like thinking is at {', '.join(elsewhere)}, which no row can name" if elsewhere else ""
    if not thinking:
        return ProbeFinding("where", f"not known: no reply had thinking{beside}")
    count = len(thinking)
    parts: list[str] = []
    value: dict[str, Any] = {"fields": [], "tags": [], "starts_inside": False, "blocks": False}
    for field in list_fields(thinking):
        carriers = [seen for seen in thinking if any(name == field for name, _ in seen.fields)]
        kinds = _describe_modes(carriers)
        shape = " as an object" if any(field in seen.objects for seen in carriers) else ""
        parts.append(f"field {field}{shape} ({len(carriers)} of {count} replies with thinking, {kinds})")
        value["fields"].append(field)
    if mirrored := _find_mirrors(thinking):
        parts.append(f"{' and '.join(mirrored)} carry the same text")
        value["mirrored"] = list(mirrored)
    for tag in list_tags(thinking):
        carriers = [seen for seen in thinking if seen.tags is not None and seen.tags.tag == tag]
        name = tag if isinstance(tag, str) else " … ".join(tag)
        inside = any(seen.tags is not None and seen.tags.starts_inside for seen in carriers)
        how = ", only the closing mark: the template opens it" if inside else ""
        parts.append(f"tags {name} in the text{how} ({len(carriers)} of {count}, {_describe_modes(carriers)})")
        value["tags"].append(tag if isinstance(tag, str) else list(tag))
        value["starts_inside"] = value["starts_inside"] or inside
    blocks = [seen for seen in thinking if not seen.fields and seen.tags is None and seen.thinking.strip()]
    if blocks:
        source = blocks[0].reply.thinking.source if blocks[0].reply and blocks[0].reply.thinking else "block"
        parts.append(f"blocks of its dialect, {source} ({len(blocks)} of {count}, {_describe_modes(blocks)})")
        value["blocks"] = True
    sealed = sum(bool(seen.reply and seen.reply.seals) for seen in thinking)
    if sealed:
        parts.append(f"sealed in {sealed} of {count}")
    value["sealed"] = bool(sealed)
    return ProbeFinding("where", ("; ".join(parts) or "only counted in the usage") + beside, value)


def _describe_modes(carriers: list[Observation]) -> str:
    modes = {seen.streamed for seen in carriers}
    return "whole and streamed" if len(modes) > 1 else "streamed" if modes == {True} else "whole"


def _find_forms(known: Knowledge) -> ProbeFinding:
    """How pieces arrive."""
    streamed = [seen for _, seen in known.replies if seen.streamed]
    if not streamed:
        text = known.streamed.detail if known.streamed is not None else ""
        return ProbeFinding("stream", f"not known: no streamed reply{f' ({_cut(text)})' if text else ''}")
    snapshots = any(seen.snapshots for seen in streamed)
    fragments = any(seen.tags is not None and seen.tags.fragmented for seen in known.thinking)
    counted = any(seen.usage or (seen.reply and seen.reply.usage.output is not None) for seen in streamed)
    words = ["pieces repeat all that came before" if snapshots else "each piece is new"]
    words += ["the tag is closed and opened again in each piece"] if fragments else []
    words.append("usage is reported" if counted else "no usage is reported")
    value = {"snapshots": snapshots, "fragmented_tags": fragments, "usage": counted}
    return ProbeFinding("stream", f"{'; '.join(words)} ({len(streamed)} streamed)", value)


def _find_switch(known: Knowledge) -> ProbeFinding:
    outcomes: dict[str, list[str]] = {}
    for name, text in known.tried.items():
        outcomes.setdefault(text, []).append(name)
    tried = "; ".join(f"{', '.join(names)}: {_cut(text)}" for text, names in outcomes.items())
    if known.switch is not None:
        thought = known.baseline is not None and known.baseline.thinks
        turned = "shown" if thought and known.switch_wish == "on" else f"turned {known.switch_wish}"
        wish = f"thinking is {turned} by {known.switch.name}"
        if not (
            known.switch.row_quirks or known.switch.rule or known.setup is None or known.setup.dialect != "openai_chat"
        ):
            fields = msgspec.json.encode(known.switch.ask(known.switch_wish)).decode()
            wish += f" (no row can say that; extra={fields} does)"
        return ProbeFinding(
            "switch",
            f"{wish}: {known.switch_text}{f'. Also tried: {tried}' if tried else ''}",
            {"field": known.switch.name, "turns": known.switch_wish, "tried": dict(known.tried)},
        )
    if known.cannot_switch:
        what = "cannot be turned off" if known.switch_wish == "off" else "was not turned on"
        text = f"thinking {what} by any switch that was tried: {tried}"
        return ProbeFinding("switch", text, {"field": None, "tried": dict(known.tried)})
    seen = f": {known.switch_text}" if known.switch_text else "" if tried else ": not asked"
    return ProbeFinding("switch", f"not known{seen}{f'. Tried: {tried}' if tried else ''}")


def _find_efforts(known: Knowledge) -> ProbeFinding:
    if not known.effort_text:
        return ProbeFinding("effort", "not known: not asked")
    efforts = None if known.efforts is None else list(known.efforts)
    value = None if known.effort_counts is None else {"read": known.effort_counts, "efforts": efforts}
    return ProbeFinding("effort", known.effort_text, value)


def _find_usage(known: Knowledge) -> ProbeFinding:
    thinking = known.thinking or [seen for _, seen in known.replies]
    counted = [seen for seen in thinking if seen.reply is not None and seen.reply.usage.thinking]
    if not counted:
        some = any(seen.usage for _, seen in known.replies)
        text = f"thinking is not counted separately (0 of {len(thinking)} replies)" if some else "no usage was reported"
        return ProbeFinding("usage", text, {"counts_thinking": False} if some else None)
    included = excludes_thinking(known)
    figures = "; ".join(f"{name} {count}" for name, count in counted[0].usage[:8])
    text = f"thinking is counted ({len(counted)} of {len(thinking)}); {_INCLUDED[included]} ({figures})"
    return ProbeFinding("usage", text, {"counts_thinking": True, "output_excludes_thinking": included})


def _find_tools(known: Knowledge) -> ProbeFinding:
    value = None if known.tool_called is None else {"called": known.tool_called}
    return ProbeFinding("tools", known.tools or "not known: not asked", value)


_REPLAYS = {"kept": "with its thinking", "left_out": "without its thinking", "altered": "with its thinking altered"}


def _find_replay(known: Knowledge) -> ProbeFinding:
    if not known.replay:
        return ProbeFinding("replay", "not known: no turn with thinking was sent back")
    parts = [
        f"a turn {_REPLAYS[way]}: {f'refused ({_cut(refusal)})' if refusal else 'accepted'}"
        for way, refusal in known.replay.items()
    ]
    value = {way: not refusal for way, refusal in known.replay.items()}
    needed = value.get("kept") is True and value.get("left_out") is False
    return ProbeFinding("replay", "; ".join(parts), {**value, "required": needed})


def _find_settings(known: Knowledge) -> ProbeFinding:
    setup = known.setup
    parts = [*known.adjusted]
    parts += [f"a {role} message: {text}" for role, text in known.roles.items()]
    if known.structured is not None:
        parts.append(f"a JSON schema: {known.structured}")
    text = "; ".join(parts) or "ordinary requests were accepted as they are"
    value = {"output_limit": setup.output_limit, "stream_options": setup.stream_usage} if setup else None
    return ProbeFinding("settings", text, value)


def _find_mirrors(thinking: list[Observation]) -> tuple[str, ...]:
    """The fields that carried the same text in one reply."""
    for seen in thinking:
        by_text: dict[str, list[str]] = {}
        for name, text in seen.fields:
            by_text.setdefault(text.strip(), []).append(name)
        if seen.tags is not None:
            by_text.setdefault(seen.tags.thinking.strip(), []).append("the tags")
        for names in by_text.values():
            if len(names) > 1:
                return tuple(names)
    return ()


def _cut(text: str) -> str:
    shown = escape_controls(text)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"

"""What follows from the observations of a probe: findings with their evidence, and the row. Pure.

`Knowledge` is filled by the flow (run_probe). Not here: how a row is written down (write_row).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from asides.dialects import plain_row
from asides.flows.probe.observe import Observation
from asides.flows.probe.spellings import Spelling, Wish, keep_efforts
from asides.flows.probe.trials import Setup
from asides.providers.provider import ModelRule, Provider, ReplayRule
from asides.providers.quirks import Quirks, Tags
from asides.values.notices import escape_controls

_SOURCE = "asides probe"
_GLOB_MARKS = re.compile(r"([*?\[])")
_MOST_SHOWN = 160
_DETAILS = "reasoning_details"


class EndpointSight(msgspec.Struct, frozen=True):
    """An address of the server, and what was there."""

    dialect: str
    url: str
    answers: bool | None
    """None: not known."""
    detail: str = ""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found out, or not."""

    topic: str
    text: str
    """The finding and what was seen, in a line; it holds no content of replies."""
    value: Any = None
    """The finding as JSON; None: not known."""


class Knowledge:
    """What a probe knows so far. The flow fills it; `conclude` reads it at any time."""

    def __init__(self) -> None:
        self.setup: Setup | None = None
        self.models: tuple[str, ...] = ()
        self.list_detail = ""
        self.endpoints: list[EndpointSight] = []
        self.replies: list[tuple[str, Observation]] = []
        """Every reply, with what was asked: "default", "on", "off", "effort", "tools", "replay"."""
        self.baseline: Observation | None = None
        self.streamed: Observation | None = None
        self.switch: Spelling | None = None
        self.switch_wish: Wish = "off"
        self.switch_text = ""
        self.spellings: dict[str, str] = {}
        """What became of each spelling that was tried."""
        self.cannot_switch = False
        """Every spelling was tried, and none changed anything."""
        self.efforts: tuple[str, ...] | None = None
        self.effort_text = ""
        self.effort_counts: bool | None = None
        """Whether `reasoning_effort` is read: checked, or seen to change the amount."""
        self.tools = ""
        self.tool_called: bool | None = None
        self.replay: dict[str, str] = {}
        """What became of a second turn with thinking "kept", "left_out" or "altered": "" is accepted, else a refusal."""
        self.adjusted: list[str] = []
        """What the server refused of an ordinary request, and what it took instead."""
        self.roles: dict[str, str] = {}
        self.structured: str | None = None
        self.needs_key = False
        self.problem = ""
        """Why nothing more can be found out."""

    @property
    def thinking(self) -> list[Observation]:
        """The replies that had thinking."""
        return [seen for _, seen in self.replies if seen.thinks]


# --- findings ---------------------------------------------------------------------------------------------------------


def list_findings(known: Knowledge) -> tuple[Finding, ...]:
    """Every finding, in the order in which a reader wants them."""
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


def _find_endpoints(known: Knowledge) -> Finding:
    parts: list[str] = []
    value: dict[str, Any] = {}
    for sight in known.endpoints:
        word = {True: "answers", False: "no", None: "not known"}[sight.answers]
        value[sight.url] = {"dialect": sight.dialect, "answers": sight.answers, "detail": sight.detail}
        parts.append(f"{sight.url} ({sight.dialect}): {word}{f' ({_cut(sight.detail)})' if sight.detail else ''}")
    return Finding("endpoints", "; ".join(parts) or "not known", value or None)


def _find_models(known: Knowledge) -> Finding:
    model = known.setup.model if known.setup is not None else ""
    listed = f"{len(known.models)} listed" if known.models else known.list_detail or "no list was asked for"
    text = f"asked {model}; {listed}" if model else listed
    return Finding("model", text, {"asked": model or None, "listed": list(known.models[:100])})


def _find_thinking(known: Knowledge) -> Finding:
    default = [seen for asked, seen in known.replies if asked == "default"]
    thought = sum(seen.thinks for seen in default)
    hidden = bool(known.thinking) and not any(seen.thinking.strip() for seen in known.thinking)
    if not default:
        return Finding("thinking", "not known: no reply with default settings")
    text = f"{thought} of {len(default)} replies with default settings had thinking"
    if hidden:
        text += "; its text is never shown, only counted or sealed"
    cut = sum(seen.is_cut for _, seen in known.replies)
    if cut:
        text += f"; {cut} of {len(known.replies)} replies ran out of tokens"
    return Finding("thinking", text, {"default": bool(thought), "replies": len(default), "hidden": hidden})


def _find_places(known: Knowledge) -> Finding:
    thinking = known.thinking
    if not thinking:
        return Finding("where", "not known: no reply had thinking")
    count = len(thinking)
    parts: list[str] = []
    value: dict[str, Any] = {"fields": [], "tags": [], "starts_inside": False, "blocks": False}
    for field in _list_fields(thinking):
        carriers = [seen for seen in thinking if any(name == field for name, _ in seen.fields)]
        kinds = _describe_modes(carriers)
        shape = " as an object" if any(field in seen.objects for seen in carriers) else ""
        parts.append(f"field {field}{shape} ({len(carriers)} of {count} replies with thinking, {kinds})")
        value["fields"].append(field)
    if mirrored := _find_mirrors(thinking):
        parts.append(f"{' and '.join(mirrored)} carry the same text")
        value["mirrored"] = list(mirrored)
    for tag in _list_tags(thinking):
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
    return Finding("where", "; ".join(parts) or "only counted in the usage", value)


def _describe_modes(carriers: list[Observation]) -> str:
    modes = {seen.streamed for seen in carriers}
    return "whole and streamed" if len(modes) > 1 else "streamed" if modes == {True} else "whole"


def _find_forms(known: Knowledge) -> Finding:
    """How pieces arrive."""
    streamed = [seen for _, seen in known.replies if seen.streamed]
    if not streamed:
        text = known.streamed.detail if known.streamed is not None else ""
        return Finding("stream", f"not known: no streamed reply{f' ({_cut(text)})' if text else ''}")
    snapshots = any(seen.snapshots for seen in streamed)
    fragments = any(seen.tags is not None and seen.tags.fragmented for seen in known.thinking)
    counted = any(seen.usage or (seen.reply and seen.reply.usage.output is not None) for seen in streamed)
    words = ["pieces repeat all that came before" if snapshots else "each piece is new"]
    words += ["the tag is closed and opened again in each piece"] if fragments else []
    words.append("usage is reported" if counted else "no usage is reported")
    value = {"snapshots": snapshots, "fragmented_tags": fragments, "usage": counted}
    return Finding("stream", f"{'; '.join(words)} ({len(streamed)} streamed)", value)


def _find_switch(known: Knowledge) -> Finding:
    tried = "; ".join(f"{name}: {_cut(text)}" for name, text in known.spellings.items())
    if known.switch is not None:
        wish = f"thinking is turned {known.switch_wish} by {known.switch.name}"
        return Finding(
            "switch",
            f"{wish}: {known.switch_text}{f'. Also tried: {tried}' if tried else ''}",
            {"spelling": known.switch.name, "turns": known.switch_wish, "tried": dict(known.spellings)},
        )
    if known.cannot_switch:
        what = "cannot be turned off" if known.switch_wish == "off" else "was not turned on"
        text = f"thinking {what} by any spelling that was tried: {tried}"
        return Finding("switch", text, {"spelling": None, "tried": dict(known.spellings)})
    return Finding("switch", f"not known{f'. Tried: {tried}' if tried else ': not asked'}")


def _find_efforts(known: Knowledge) -> Finding:
    if not known.effort_text:
        return Finding("effort", "not known: not asked")
    efforts = None if known.efforts is None else list(known.efforts)
    value = None if known.effort_counts is None else {"read": known.effort_counts, "efforts": efforts}
    return Finding("effort", known.effort_text, value)


def _find_usage(known: Knowledge) -> Finding:
    thinking = known.thinking or [seen for _, seen in known.replies]
    counted = [seen for seen in thinking if seen.reply is not None and seen.reply.usage.thinking]
    if not counted:
        some = any(seen.usage for _, seen in known.replies)
        text = f"thinking is not counted apart (0 of {len(thinking)} replies)" if some else "no usage was reported"
        return Finding("usage", text, {"counts_thinking": False} if some else None)
    included = excludes_thinking(known)
    figures = "; ".join(f"{name} {count}" for name, count in counted[0].usage[:8])
    words = {True: "its output count excludes thinking", False: "its output count includes thinking", None: "whether output includes it is not known"}
    text = f"thinking is counted ({len(counted)} of {len(thinking)}); {words[included]} ({figures})"
    return Finding("usage", text, {"counts_thinking": True, "output_excludes_thinking": included})


def excludes_thinking(known: Knowledge) -> bool | None:
    """Whether the count of output tokens leaves thinking out; None where nothing shows it."""
    verdict: bool | None = None
    for seen in known.thinking:
        counts = dict(seen.usage)
        thought = seen.reply.usage.thinking if seen.reply is not None else None
        names = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens")
        output = next((counts[name] for name in names if name in counts), None)
        if not thought or output is None:
            continue
        if thought > output:
            return True
        given = next((counts[name] for name in ("prompt_tokens", "input_tokens", "promptTokenCount") if name in counts), None)
        total = next((counts[name] for name in ("total_tokens", "totalTokenCount") if name in counts), None)
        if given is not None and total is not None:
            if total == given + output:
                verdict = False
            elif total == given + output + thought:
                return True
    return verdict


def _find_tools(known: Knowledge) -> Finding:
    value = None if known.tool_called is None else {"called": known.tool_called}
    return Finding("tools", known.tools or "not known: not asked", value)


_REPLAYS = {"kept": "with its thinking", "left_out": "without its thinking", "altered": "with its thinking altered"}


def _find_replay(known: Knowledge) -> Finding:
    if not known.replay:
        return Finding("replay", "not known: no turn with thinking was sent back")
    parts = [
        f"a turn {_REPLAYS[way]}: {f'refused ({_cut(refusal)})' if refusal else 'accepted'}"
        for way, refusal in known.replay.items()
    ]
    value = {way: not refusal for way, refusal in known.replay.items()}
    needed = value.get("kept") is True and value.get("left_out") is False
    return Finding("replay", "; ".join(parts), {**value, "required": needed})


def _find_settings(known: Knowledge) -> Finding:
    setup = known.setup
    parts = [*known.adjusted]
    parts += [f"a {role} message: {text}" for role, text in known.roles.items()]
    if known.structured is not None:
        parts.append(f"a JSON schema: {known.structured}")
    text = "; ".join(parts) or "ordinary requests were accepted as they are"
    value = {"output_limit": setup.output_limit, "stream_options": setup.stream_usage} if setup else None
    return Finding("settings", text, value)


# --- the row ----------------------------------------------------------------------------------------------------------


def build_row(known: Knowledge, name: str, key_env: tuple[str, ...], *, base_url: str | None = None) -> Provider | None:
    """The row that says what was found; None while no endpoint has answered."""
    setup = known.setup
    if setup is None or known.baseline is None:
        return None
    plain = plain_row(setup.dialect)
    since = _format_date(known)
    rule = _build_rule(known, since)
    rules = (rule,)
    if rule.models != "*" and rule.starts_inside:
        # Its other models may have such a template too.
        rules = (rule, ModelRule(starts_inside="auto", since=since, source=_SOURCE))
    return Provider(
        name=name,
        dialect=setup.dialect,
        base_url=base_url or setup.base_url,
        key_env=key_env,
        key="required" if key_env else "optional",
        headers=plain.headers,
        query=setup.query,
        quirks=_build_quirks(known, setup, plain.quirks),
        models=rules,
        replay=_build_replay(known, plain, since),
        tier="yours",
        since=since,
    )


def _format_date(known: Knowledge) -> str:
    times = [seen.received for _, seen in known.replies if seen.received]
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%d") if times else ""


def _build_quirks(known: Knowledge, setup: Setup, plain: Quirks) -> Quirks:
    thinking = known.thinking
    changes: dict[str, Any] = {
        "output_limit": setup.output_limit,
        "stream_usage": setup.stream_usage,
        "auth": setup.auth or plain.auth,
        "tags": tuple(_list_tags(thinking)) or None,
    }
    fields = _list_fields(thinking)
    # The decoder reads that one by itself.
    if named := tuple(name for name in fields if name != _DETAILS):
        changes["thinking_in"] = named
    if any(seen.tags is not None and seen.tags.position == "anywhere" for seen in thinking):
        changes["tag_position"] = "anywhere"
    if any(seen.tags is not None and seen.tags.fragmented for seen in thinking):
        changes["fragmented_tags"] = True
    if any(seen.snapshots for _, seen in known.replies):
        changes["snapshots"] = True
    if excludes_thinking(known):
        changes["output_excludes_thinking"] = True
    changes |= _choose_asking(known, setup.dialect)
    if known.replay.get("left_out") and not known.replay.get("kept", "-") and not fields and changes["tags"]:
        changes["replay_as"] = "tags"
    elif _DETAILS in fields:
        changes["replay_as"] = "details"
    elif _uses_content_list(known, setup.dialect):
        changes["replay_as"] = "content_list"
    if known.roles.get("system", "accepted") != "accepted" and known.roles.get("developer") == "accepted":
        changes["system_role"] = "developer"
    if known.structured is not None and known.structured.startswith("refused"):
        changes["structured_output"] = "nothing"
    return msgspec.structs.replace(plain, **changes)


def _uses_content_list(known: Knowledge, dialect: str) -> bool:
    blocks = [seen for seen in known.thinking if not seen.fields and seen.tags is None and seen.thinking.strip()]
    return dialect == "openai_chat" and bool(blocks)


def _choose_asking(known: Knowledge, dialect: str) -> dict[str, Any]:
    """The quirks that say how to ask for thinking."""
    switch = known.switch
    if switch is not None:
        quirks = dict(switch.quirks)
        if known.switch_wish == "off" and "fields" in quirks:
            del quirks["fields"]  # no row can say how to turn it off like this
        if known.effort_counts and switch.with_effort is not None:
            quirks["ask_by"] = switch.with_effort
        return quirks
    if dialect == "openai_chat" and known.cannot_switch and known.switch_wish == "off" and not known.effort_counts:
        return {"ask_by": "nothing"} if known.effort_counts is False else {}
    return {}


def _build_rule(known: Knowledge, since: str) -> ModelRule:
    facts: dict[str, Any] = {"since": since, "source": _SOURCE}
    setup, switch = known.setup, known.switch
    if setup is not None and len(known.models) > 1:
        facts["models"] = _GLOB_MARKS.sub(r"[\1]", setup.model.lower())
    thinks = known.baseline is not None and known.baseline.thinks
    if switch is not None:
        facts |= {**switch.rule, **(switch.on_rule if known.switch_wish == "on" else {})}
        facts |= {"thinking": "optional", "default": "off" if known.switch_wish == "on" else "on"}
    elif thinks and known.cannot_switch:
        facts |= {"thinking": "always", "default": "on"}
    elif thinks:
        facts["default"] = "on"
    if known.efforts is not None and (efforts := keep_efforts(known.efforts)):
        facts["efforts"] = efforts
    asks_by_effort = switch is not None and switch.name == "reasoning_effort"
    if known.efforts is not None and "none" not in known.efforts and not (asks_by_effort and known.switch_wish == "off"):
        facts["off_as_effort"] = False
    if inside := choose_starts_inside(known):
        facts["starts_inside"] = inside
    kinds = {seen.reply.thinking.kind for seen in known.thinking if seen.reply and seen.reply.thinking}
    if kinds == {"summary"}:
        facts["kind"] = "summary"
    return ModelRule(**facts)


def choose_starts_inside(known: Knowledge) -> bool | Literal["auto"]:
    """Whether replies begin in their thinking. True only where every reply with default settings did, and several."""
    orphans = [seen for seen in known.thinking if seen.tags is not None and seen.tags.starts_inside]
    if not orphans:
        return False
    default = [seen for asked, seen in known.replies if asked == "default" and not (seen.reply and seen.reply.tool_calls)]
    always = len(default) > 1 and all(seen.tags is not None and seen.tags.starts_inside for seen in default)
    return True if always else "auto"


def _build_replay(known: Knowledge, plain: Provider, since: str) -> tuple[ReplayRule, ...]:
    kept, left_out = known.replay.get("kept"), known.replay.get("left_out")
    setup = known.setup
    usual = plain.replay_rule(setup.model if setup is not None else "")
    when = usual.when
    if kept:
        when = "never"
    elif kept == "" and when == "never":
        when = "tool_turns"
    elif kept is None and left_out == "":
        when = "never" if setup is not None and setup.dialect == "openai_chat" else when
    return (ReplayRule(when=when, since=since, source=_SOURCE),) if known.replay else (
        ReplayRule(when=when, since=usual.since, source=usual.source),
    )


def _list_fields(thinking: list[Observation]) -> tuple[str, ...]:
    """The fields that carried thinking, the most frequent first."""
    counts: dict[str, int] = {}
    for seen in thinking:
        for name, _ in seen.fields:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted(counts, key=lambda name: -counts[name]))


def _list_tags(thinking: list[Observation]) -> Tags:
    return tuple(dict.fromkeys(seen.tags.tag for seen in thinking if seen.tags is not None))


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
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"

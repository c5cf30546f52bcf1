"""Infers a provider row from the findings of a probe. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from asides.dialects import plain_row
from asides.flows.probe.knowledge import Knowledge, excludes_thinking, list_fields, list_tags
from asides.flows.probe.refused_switches import keep_efforts
from asides.flows.probe.trials import Setup
from asides.providers.provider import ModelRule, Provider, ReplayRule
from asides.providers.quirks import Quirks
from asides.providers.switches.table import EFFORT

_SOURCE = "asides probe"
_GLOB_MARKS = re.compile(r"([*?\[])")
_DETAILS = "reasoning_details"


def infer_row(
    known: Knowledge,
    name: str,
    key_env: tuple[str, ...],
    *,
    base_url: str | None = None,
    query: tuple[tuple[str, str], ...] = (),
) -> Provider | None:
    """The row for the findings; None while no endpoint has answered."""
    setup = known.setup
    if setup is None or known.baseline is None:
        return None
    plain = plain_row(setup.dialect)
    since = _format_date(known)
    rule = _build_rule(known, since)
    rules: tuple[ModelRule, ...] = (rule,)
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
        query=query,
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
        "tags": tuple(list_tags(thinking)) or None,
    }
    fields = list_fields(thinking)
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
    """The quirks for requesting thinking."""
    switch = known.switch
    if switch is not None:
        quirks = switch.row_quirks
        if not quirks and dialect == "openai_chat":
            return {"ask_by": "nothing"}  # only `extra=` can
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
        facts |= {"thinking": "optional", "default": "on" if thinks else "off"}
    elif thinks and known.cannot_switch:
        facts |= {"thinking": "always", "default": "on"}
    elif thinks:
        facts["default"] = "on"
    if known.efforts is not None and (efforts := keep_efforts(known.efforts)):
        facts["efforts"] = efforts
    stops_by_effort = switch is not None and switch is EFFORT and known.switch_wish == "off"
    if known.efforts is not None and "none" not in known.efforts and not stops_by_effort:
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
    default = [seen for asked, seen in known.replies if asked == "default"]
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
    return (
        (ReplayRule(when=when, since=since, source=_SOURCE),)
        if known.replay
        else (ReplayRule(when=when, since=usual.since, source=usual.source),)
    )

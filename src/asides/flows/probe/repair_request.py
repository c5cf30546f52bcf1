"""After a refusal of an ordinary request: the smallest change to how requests are written. Pure."""

from __future__ import annotations

from typing import get_args

import msgspec

from asides.dialects import plain_row
from asides.flows.probe.observe import Observation
from asides.flows.probe.refused_switches import is_named
from asides.flows.probe.trials import Auth, Setup

_OTHER_LIMIT = "max_completion_tokens"


def repair_setup(setup: Setup, seen: Observation, *, has_key: bool) -> tuple[Setup, str] | None:
    """The setup for another attempt, and a note of what was refused; None when no repair fits."""
    if seen.state == "locked" and has_key:
        return _change_key_header(setup, seen)
    if seen.state != "refused":
        return None
    said = seen.said
    replace = msgspec.structs.replace
    if setup.dialect == "openai_chat":
        if setup.output_limit == "max_tokens" and (is_named(_OTHER_LIMIT, said) or is_named("max_tokens", said)):
            changed = replace(setup, output_limit=_OTHER_LIMIT)
            return changed, f"max_tokens is refused, {_OTHER_LIMIT} was sent instead ({_shorten(seen.detail)})"
        if setup.stream_usage and is_named("stream_options", said):
            return replace(setup, stream_usage=False), f"stream_options is refused ({_shorten(seen.detail)})"
    if not setup.only_streams and seen.kind == "stream_required":
        return replace(setup, only_streams=True), f"only streams are answered ({_shorten(seen.detail)})"
    return None


def _change_key_header(setup: Setup, seen: Observation) -> tuple[Setup, str] | None:
    """Send the key in the next header that servers take it in."""
    usual: Auth = plain_row(setup.dialect).quirks.auth
    order: list[Auth] = [usual, *(auth for auth in get_args(Auth) if auth not in (usual, "nothing"))]
    place = order.index(setup.auth or usual)
    if place + 1 >= min(len(order), 3):
        return None
    changed = msgspec.structs.replace(setup, auth=order[place + 1])
    return changed, f"the key is not accepted as {order[place]} ({_shorten(seen.detail)})"


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"

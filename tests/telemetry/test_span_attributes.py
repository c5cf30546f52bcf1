"""The names and the forms of what spans say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import asides
from asides.providers.find import find_target
from asides.telemetry import span_attributes
from asides.telemetry.span_attributes import (
    ReplyClock,
    describe_error,
    describe_reply,
    describe_target,
    describe_usage,
    name_error,
    shorten,
)
from asides.values.reply import CallContext
from asides.values.usage import Timing, Usage

# They moved to a package of their own in 2026, and are marked as deprecated where they are installed.
gen_ai_attributes: Any = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
_NAMES = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")}


def test_every_name_of_the_conventions_that_is_used_exists() -> None:
    usage = describe_usage(Usage(1, 2, 3, 4, 5, cache_written=6))
    reply = describe_reply(asides.Reply(model="m", id="i"))
    own = {value for value in vars(span_attributes).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    used = {*usage, *reply, *own}
    assert len(used) > 10
    assert {name for name in used if name.startswith("gen_ai.")} <= _NAMES


def test_the_address_is_a_host_and_a_port_and_nothing_else() -> None:
    target = find_target("openai-compatible:m", base_url="https://host.example/v1?key=secret")
    known = describe_target(target, "chat")
    assert (known["server.address"], known["server.port"]) == ("host.example", 443)
    assert "secret" not in str(known)


def test_names_of_others_are_short_and_forge_no_line() -> None:
    assert len(shorten("x" * 10_000)) == 200
    assert "\n" not in shorten("m\nforged")
    key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    assert "abcdefghij" not in shorten(f"/v1/{key}/models") + shorten("x" * 180 + key)


def test_an_error_is_its_type_and_its_status() -> None:
    class Strange(Exception):
        pass

    assert name_error(ValueError("words")) == "ValueError"
    assert name_error(Strange()).endswith("Strange")
    error = asides.RateLimited("words", status=429)
    assert describe_error(error) == {"error.type": "RateLimited", "http.response.status_code": 429}


def test_tokens_that_are_not_known_are_left_out() -> None:
    assert describe_usage(Usage()) == {}
    assert describe_usage(Usage(input=0)) == {"gen_ai.usage.input_tokens": 0}
    assert describe_usage(Usage(cache_written_hour=1, tool_requests=2, tier="flex")) == {
        "asides.usage.cache_creation.hour.input_tokens": 1,
        "asides.usage.tool_requests": 2,
        "asides.usage.tier": "flex",
    }


def test_the_times_of_a_fallback_count_from_its_own_start() -> None:
    moments = iter([100.0, 101.0])
    clock = ReplyClock(lambda: next(moments))
    clock.stamp()
    # The whole call began five seconds before.
    timing = Timing(first_event=6.0, first_thought=6.5, first_word=8.0)
    known = clock.describe(asides.Reply(call=CallContext(streamed=True, timing=timing)))
    assert list(known.values()) == [1.0, 1.5, 3.0]
    assert clock.describe(asides.Reply(call=CallContext(streamed=False, timing=timing))) == {}

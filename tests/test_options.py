"""Options: their layers, names that do not exist, and that each option is read and documented."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.flows import build_call
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.options import OPTIONS, CallOptions, Options, Timeout
from asides.settings import Settings, Timeouts
from asides.values.messages import Sampling

HERE = "http://127.0.0.1:9/v1"
_PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"


def layered(settings: Settings, client: dict[str, Any], **call: Any) -> Call:
    made = CallBuilder(Options(**client), settings=settings)  # type: ignore[typeddict-item]
    return made.build("openai-compatible:m", "?", Options(**{"base_url": HERE, **call}), stream=False)  # type: ignore[typeddict-item]


def test_I7_the_call_beats_the_client_beats_the_settings_beat_the_default() -> None:
    settings = Settings(
        thinking=asides.Thinking(effort="low"), max_tokens=1, retries=5, timeouts=Timeouts(idle=1), on_conflict="adjust"
    )
    alone = layered(settings, {})
    assert (alone.prompt.thinking.effort, alone.prompt.max_tokens, alone.policy.retries) == ("low", 1, 5)
    assert (alone.policy.timeout, alone.policy.on_conflict) == (Timeout(10, 600, 1), "adjust")
    client = layered(settings, {"thinking": "medium", "max_tokens": 2, "retries": 6})
    assert (client.prompt.thinking.effort, client.prompt.max_tokens, client.policy.retries) == ("medium", 2, 6)
    said = layered(settings, {"thinking": "medium", "max_tokens": 2}, thinking="high", max_tokens=3, retries=0)
    assert (said.prompt.thinking.effort, said.prompt.max_tokens, said.policy.retries) == ("high", 3, 0)
    assert layered(Settings(), {}).prompt == asides.Prompt((asides.user("?"),), stream=False)


def test_I7_none_leaves_the_choice_to_the_next_layer() -> None:
    assert layered(Settings(), {"temperature": 0.5}, temperature=None).prompt.sampling.temperature == 0.5


def test_I7_one_form_of_thinking_replaces_another_of_a_lower_layer() -> None:
    assert layered(Settings(), {"reasoning_effort": "low"}, thinking="high").prompt.thinking.effort == "high"
    assert layered(Settings(thinking=asides.Thinking(budget=9)), {}, reasoning_effort="low").prompt.thinking == (
        asides.Thinking(effort="low")
    )


def test_I7_extra_fields_of_layers_stand_side_by_side() -> None:
    made = layered(Settings(), {"extra": {"a": 1, "b": 1}}, extra={"b": 2}).prompt.extra
    assert made == {"a": 1, "b": 2}


def test_I7_a_call_wins_over_the_settings_about_reading() -> None:
    settings = Settings(thinking_field="from_settings")
    assert layered(settings, {}).target.facts.thinking_in == ("from_settings",)
    assert layered(settings, {}, thinking_field="from_call").target.facts.thinking_in == ("from_call",)


def test_an_option_that_does_not_exist_is_named_with_its_nearest() -> None:
    with pytest.raises(TypeError, match=r"temprature is no option.*did you mean temperature"):
        layered(Settings(), {}, temprature=1)
    with pytest.raises(TypeError, match="did you mean max_tokens"):
        asides.Client(max_token=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_the_fields_of_a_call_are_the_options() -> None:
    assert set(CallOptions.__struct_fields__) == OPTIONS


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_is_read(name: str) -> None:
    source = inspect.getsource(build_call)
    assert name in Sampling.__struct_fields__ or f'"{name}"' in source or f"given.{name}" in source


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_is_documented(name: str) -> None:
    assert f"`{name}`" in _PAGE.read_text(encoding="utf-8")


def test_a_word_that_is_no_choice_names_the_choices() -> None:
    with pytest.raises(asides.ConfigError, match=r"tag_position .*'auto', 'leading', 'anywhere'"):
        layered(Settings(), {}, tag_position="middle")

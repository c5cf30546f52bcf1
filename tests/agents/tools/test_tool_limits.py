"""How many tools, and how large: counted and weighed before a byte is sent."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import asides
from asides.settings import load_settings
from asides.values.errors import ConfigError, TooManyTools
from asides.values.tools import Tool, check_tools

MODEL = "openai:gpt-4o"


def tools(count: int, size: int = 0) -> list[Tool]:
    return [Tool(f"tool_{number}", "x" * size) for number in range(count)]


@pytest.mark.requirement("S4-REQ-006.1", "S4-REQ-006.2", "FT-25", "S4-S2", "S4-EC4")
def test_N1_one_tool_too_many_names_both_numbers() -> None:
    with pytest.raises(TooManyTools, match=r"17 tools .* 16 are allowed.*tools_max_count"):
        asides.explain(MODEL, "?", tools=tools(17), tools_max_count=16)
    with pytest.raises(TooManyTools, match=r"17 tools .* 16 are allowed.*tools_max_count"):
        asides.explain(MODEL, "?", tools=tools(17), settings=load_settings({"ASIDES_TOOLS_MAX_COUNT": "16"}))
    assert len(asides.explain(MODEL, "?", tools=tools(16), tools_max_count=16).body["tools"]) == 16


@pytest.mark.parametrize("model", [MODEL, "openai-responses:gpt-5", "openai-chat:gpt-4o"])
@pytest.mark.parametrize(
    ("count", "size", "told"), [(16, 0, False), (17, 0, True), (128, 0, True), (1, 33 * 1024, True)]
)
def test_N1_N2_the_defaults_are_advice(model: str, count: int, size: int, told: bool) -> None:
    """Contract §15.4: a conversation with twenty tools can be sent to OpenAI."""
    explained = asides.explain(model, "?", tools=tools(count, size))
    assert len(explained.body["tools"]) == count
    assert ("many_tools" in {notice.code for notice in explained.notices}) is told


@pytest.mark.parametrize("model", [MODEL, "openai-responses:gpt-5"])
def test_more_tools_than_the_provider_documents_are_refused_before_a_byte_is_sent(model: str) -> None:
    with pytest.raises(TooManyTools, match=r"129 tools were given, and OpenAI.* accepts at most 128"):
        asides.explain(model, "?", tools=tools(129))


@pytest.mark.requirement("S4-REQ-006.2", "S4-ES3")
def test_N2_a_kilobyte_too_many_names_both_sizes() -> None:
    with pytest.raises(TooManyTools, match=r"33\.\d KB of JSON \(\d+ bytes\) and 32 KB are allowed.*tools_max_json_kb"):
        asides.explain(MODEL, "?", tools=tools(1, 33 * 1024), tools_max_json_kb=32)


@pytest.mark.requirement("S4-REQ-006.1", "S4-S2", "FT-25")
def test_N1_N2_the_limits_can_be_raised() -> None:
    raised = load_settings({"ASIDES_TOOLS_MAX_COUNT": "20", "ASIDES_TOOLS_MAX_JSON_KB": "64"})
    assert len(asides.explain(MODEL, "?", tools=tools(20, 2000), settings=raised).body["tools"]) == 20
    assert len(asides.explain(MODEL, "?", tools=tools(18), tools_max_count=18).body["tools"]) == 18


@pytest.mark.parametrize(("count", "size"), [(13, 0), (1, 27 * 1024)])
@pytest.mark.requirement("S4-REQ-010.1", "S4-REQ-006.2", "FT-25")
def test_N3_near_a_limit_is_a_line_at_debug_and_nothing_else(
    count: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "asides"):
        check_tools(tools(count, size), most=16, most_kb=32)
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "xxx" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "asides"):
        check_tools(tools(12), most=16, most_kb=32)
    assert not caplog.records


def test_N4_a_schema_that_is_no_json_is_named() -> None:
    broken: dict[str, Any] = {"type": "object", "default": object()}
    with pytest.raises(ConfigError, match=r"invalid tool schema.*'broken'"):
        asides.explain(MODEL, "?", tools=[Tool("broken", parameters=broken)])


def test_other_providers_have_the_limits_only_when_somebody_sets_them() -> None:
    assert asides.explain("groq:any", "?", tools=tools(17)).body["tools"]
    with pytest.raises(TooManyTools):
        asides.explain("groq:any", "?", tools=tools(17), tools_max_count=16)


@pytest.mark.parametrize("model", [MODEL, "groq:any"])
@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"tools_max_json_kb": 1}, r"20 tools are \d+\.\d KB of JSON \(\d+ bytes\) and 1 KB are allowed"),
        ({"tools_max_json_kb": 64}, None),
        ({"tools_max_count": 30}, None),
        ({"tools_max_count": 19}, r"20 tools \(\d+\.\d KB of JSON\) were given and 19 are allowed"),
        ({"tools_max_count": 19, "tools_max_json_kb": 64}, r"20 tools .* 19 are allowed"),
        ({"tools_max_count": 30, "tools_max_json_kb": 1}, r"1 KB are allowed"),
    ],
)
@pytest.mark.parametrize("place", ["options", "settings"])
def test_one_limit_alone_does_not_make_the_other_default_a_limit(
    model: str, limits: dict[str, Any], error: str | None, place: str
) -> None:
    many, settings = tools(20, 1800 if "tools_max_count" in limits else 100), None
    options: Any = limits
    if place == "settings":
        settings = load_settings({f"ASIDES_{name.upper()}": str(value) for name, value in limits.items()})
        options = {}
    if error is not None:
        with pytest.raises(TooManyTools, match=error):
            asides.explain(model, "?", tools=many, settings=settings, **options)
        return
    explained = asides.explain(model, "?", tools=many, settings=settings, **options)
    advice = [notice.detail for notice in explained.notices if notice.code == "many_tools"]
    assert len(advice) == (model == MODEL), "the default that is not set is still advice"
    if advice:
        assert ("16 tools" in advice[0], "32 KB" in advice[0]) == (
            "tools_max_count" not in limits,
            "tools_max_json_kb" not in limits,
        )


def test_the_cap_of_the_provider_holds_beside_a_limit_on_the_size() -> None:
    with pytest.raises(TooManyTools, match=r"accepts at most 128"):
        asides.explain(MODEL, "?", tools=tools(129), tools_max_json_kb=500)

"""`asides models`: the rules; with `--refresh`, the models that a provider lists, compared with the rules."""

from __future__ import annotations

import json

import pytest

from asides.cli.app import main
from asides.cli.models import find_differences
from asides.providers.find import list_providers
from asides.providers.provider import ModelRule
from asides.values.model_info import ModelInfo, ThinkingInfo
from asides_stage.stage import OpenStage
from tests.cli.children import here, show_at_terminal


def test_rules_for_models_and_capabilities_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "-m", "deepseek"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("deepseek\n")
    assert "deepseek-reasoner*" in out
    assert main(["models", "-m", "deepseek:deepseek-reasoner", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["thinking"], fields["can_stop"]) == ("always", False)
    assert main(["models", "-m", "groq:nobody-knows-it"]) == 0
    assert "efforts:       not known" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {row.name for row in list_providers()}


def test_what_to_write_after_m_fits_on_one_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("GROQ_API_KEY", "key")
    monkeypatch.setenv("VENICE_API_KEY", "key")
    done = here(capsys, "models")
    assert done.code == 0
    groups = dict(line.split("  ", 1) for line in done.out.splitlines())
    models = groups["openai"].split()
    assert len(models) == 4
    assert all(model.startswith("openai:") for model in models)
    assert groups["groq"].split() == ["groq:openai/gpt-oss-120b", "groq:openai/gpt-oss-20b"]
    assert groups["venice"].split() == ["venice:MODEL"]
    assert "anthropic" not in groups
    assert "--all" in done.err
    shown = show_at_terminal("models", env={"ASIDES_STAGE": "1", "COLUMNS": "80"})
    assert shown.code == 0
    assert len(shown.screen) <= 24
    assert here(capsys, "models", "--all").out.startswith("openai\n")


def test_a_provider_or_model_may_be_named_without_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for arguments in (["models", "deepseek"], ["models", "-m", "deepseek"]):
        assert main(arguments) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("deepseek\n")


_THINKS = ThinkingInfo(True, None, ("adaptive", "enabled"), ("low", "medium", "high", "max"))


_AS_KNOWN = ModelInfo("claude-opus-4-6", context=1_000_000, max_output=128_000, thinking=_THINKS)


_OTHERWISE = ModelInfo("claude-3-5-haiku-20241022", max_output=8_192, thinking=ThinkingInfo(True, efforts=()))


_CAPSYS = pytest.CaptureFixture[str]


def test_the_list_shows_rules_and_reports_and_where_they_differ(stage: OpenStage, capsys: _CAPSYS) -> None:
    at = ["-m", "anthropic", "--refresh", "--base-url", stage(models=[_AS_KNOWN, _OTHERWISE]).url]
    done = here(capsys, "models", *at)
    assert done.code == 0
    head, same, other = done.out.splitlines()
    assert head.split("  ")[0] == "MODEL"
    efforts = ["low", "medium", "high", "max"]
    reported = ["thinks", "adaptive", "enabled:", *efforts]
    assert same.split() == ["claude-opus-4-6", "optional", *efforts, *reported, "1000000", "128000"]
    assert other.endswith("8192    thinking: the rule says never")
    assert "anthropic lists 2 models; 1 of them differ from the rules." in done.err


def test_json_has_rules_and_reports_in_separate_fields(stage: OpenStage, capsys: _CAPSYS) -> None:
    url = stage(models=[_AS_KNOWN, _OTHERWISE]).url
    done = here(capsys, "models", "anthropic", "--refresh", "--json", "--base-url", url)
    assert done.code == 0
    same, other = json.loads(done.out)
    assert same["id"] == "claude-opus-4-6"
    assert same["thinking"] == {
        "supported": True,
        "always": None,
        "types": list(_THINKS.types),
        "efforts": list(_THINKS.efforts or ()),
    }
    assert (same["known"]["thinking"], same["differs"]) == ("optional", [])
    assert (other["known"]["thinking"], other["differs"]) == ("never", ["thinking: the rule says never"])


def test_one_model_of_the_list_or_none(stage: OpenStage, capsys: _CAPSYS) -> None:
    url = stage(models=["qwen/qwen3-32b", "other"]).url
    done = here(capsys, "models", "-m", "groq:qwen/qwen3-32b", "--refresh", "--base-url", url)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert "groq lists 1 model." in done.err
    done = here(capsys, "models", "-m", "groq:gone", "--refresh", "--base-url", url)
    assert (done.code, done.out) == (6, "")
    assert "groq does not list gone" in done.err


def test_each_failure_of_a_refresh_has_its_exit_code(
    stage: OpenStage, capsys: _CAPSYS, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "-m PROVIDER" in here(capsys, "models", "--refresh").err
    assert here(capsys, "models", "--refresh").code == 2
    assert "for --refresh" in here(capsys, "models", "-m", "groq", "--base-url", "http://127.0.0.1:9").err
    assert here(capsys, "models", "-m", "groq", "--refresh").code == 3
    monkeypatch.setenv("GROQ_API_KEY", "gsk_wrong-key-of-mine")
    refused = here(capsys, "models", "-m", "groq", "--refresh", "--base-url", stage(key="right").url)
    assert refused.code == 3
    assert "gsk_wrong-key-of-mine" not in refused.err


@pytest.mark.parametrize(
    ("rule", "reported", "found"),
    [
        (ModelRule(), ThinkingInfo(True, True, ("enabled",), ("low",)), []),
        (ModelRule(thinking="optional", efforts=("low", "high")), None, []),
        (ModelRule(thinking="optional", efforts=("low", "high")), ThinkingInfo(True, efforts=("high", "low")), []),
        (
            ModelRule(thinking="optional", efforts=("low",)),
            ThinkingInfo(True, efforts=("low", "max")),
            ["efforts: the rule says low"],
        ),
        (ModelRule(thinking="always"), ThinkingInfo(False), ["thinking: the rule says always"]),
        (ModelRule(thinking="never"), ThinkingInfo(True), ["thinking: the rule says never"]),
        (ModelRule(thinking="never", efforts=()), ThinkingInfo(False, efforts=("low",)), []),
        (ModelRule(thinking="optional"), ThinkingInfo(True, True), ["thinking: the rule says optional"]),
        (ModelRule(thinking="always"), ThinkingInfo(True, False), ["thinking: the rule says always"]),
        (
            ModelRule(thinking="optional", forms=("enabled", "disabled")),
            ThinkingInfo(True, types=("adaptive", "enabled")),
            ["types: the rule says enabled"],
        ),
        (ModelRule(thinking="optional", forms=("adaptive", "disabled")), ThinkingInfo(True, types=("adaptive",)), []),
    ],
)
def test_only_facts_that_both_have_can_differ(rule: ModelRule, reported: ThinkingInfo | None, found: list[str]) -> None:
    assert find_differences(rule, ModelInfo("m", thinking=reported)) == found


def test_the_most_tokens_of_output_and_of_all_may_differ_too() -> None:
    assert find_differences(ModelRule(max_output=8), ModelInfo("m", max_output=9)) == ["output: the rule says 8"]
    assert find_differences(ModelRule(context=8), ModelInfo("m", context=9)) == ["context: the rule says 8"]
    assert find_differences(ModelRule(context=8), ModelInfo("m")) == []

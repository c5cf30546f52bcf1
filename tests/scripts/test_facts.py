"""The comparison of the rows with public catalogues, on small catalogues made up here; nothing is downloaded."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from asides.providers.provider import ModelRule, Provider, Quirks

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = _ROOT / "scripts" / "facts.py"
FACTS: dict[str, Any] = runpy.run_path(str(_SCRIPT))
TODAY = "2026-11-15"

ROW = Provider(
    name="anthropic",
    quirks=Quirks(pictures=True),
    models=(
        ModelRule(
            models="sage*",
            thinking="always",
            efforts=("low", "high"),
            max_output=64_000,
            context=200_000,
            forced_tools=False,
        ),
        ModelRule(models="muse*", thinking="optional", efforts=("low", "medium", "high"), pictures=False),
        ModelRule(models="clerk*", thinking="never", efforts=(), tools=False),
        ModelRule(models="open*", thinking="optional"),
    ),
)


def entry(**facts: Any) -> dict[str, Any]:
    return {"litellm_provider": "anthropic", "mode": "chat", **facts}


def differences(catalogue: dict[str, dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    found = FACTS["compare"](FACTS["read_litellm"](catalogue, TODAY), lambda name: ROW)
    return [(one.model, one.fact, one.ours, one.theirs) for one in found]


@pytest.mark.parametrize(
    ("model", "facts", "fact", "ours", "theirs"),
    [
        ("clerk-1", {"supports_reasoning": True}, "thinking", "never", "thinks"),
        ("sage-1", {"supports_reasoning": False}, "thinking", "always", "never"),
        ("unheard-of", {"supports_reasoning": True}, "thinking", "unknown", "thinks"),
        ("sage-1", {"thinking_always_on": False}, "off", "no", "yes"),
        ("muse-1", {"thinking_always_on": True}, "off", "yes", "no"),
        ("muse-1", {"supports_none_reasoning_effort": False}, "off", "yes", "no"),
        ("sage-1", {"supports_max_reasoning_effort": True}, "efforts", "low high", "max"),
        ("muse-1", {"supports_low_reasoning_effort": False}, "efforts", "low medium high", "not low"),
        ("sage-1", {"reasoning_effort_levels": ["low", "medium"]}, "efforts", "low high", "medium, not high"),
        ("sage-1", {"max_output_tokens": 128_000}, "output", "64000", "128000"),
        ("sage-1", {"max_input_tokens": 1_000_000}, "context", "200000", "1000000"),
        ("muse-1", {"supports_vision": True}, "pictures", "no", "yes"),
        ("sage-1", {"supports_vision": False}, "pictures", "yes", "no"),
        ("clerk-1", {"supports_function_calling": True}, "tools", "no", "yes"),
        ("sage-1", {"supports_forced_tool_use": True}, "forced tools", "no", "yes"),
    ],
)
def test_each_fact_that_contradicts_is_one_difference(
    model: str, facts: dict[str, Any], fact: str, ours: str, theirs: str
) -> None:
    assert differences({model: entry(**facts)}) == [(model, fact, ours, theirs)]


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("sage-1", {}),
        ("sage-1", {"supports_reasoning": True, "supports_vision": True, "supports_function_calling": True}),
        ("sage-1", {"max_output_tokens": 64_000, "max_input_tokens": 200_000}),
        # Some catalogues round, and some count only the input.
        ("sage-1", {"max_input_tokens": 204_800}),
        ("sage-1", {"max_input_tokens": 136_000}),
        # A fact that one side lacks.
        ("muse-1", {"max_output_tokens": 1, "max_input_tokens": 1}),
        ("open-1", {"reasoning_effort_levels": ["none", "max"]}),
        ("unheard-of", {"supports_reasoning": False, "supports_vision": False, "supports_function_calling": False}),
        # Not a model to talk to, another host, and a model that has ended.
        ("clerk-1", {"supports_reasoning": True, "mode": "embedding"}),
        ("clerk-1", {"supports_reasoning": True, "litellm_provider": "nobody"}),
        ("clerk-1", {"supports_reasoning": True, "deprecation_date": "2026-11-14"}),
    ],
)
def test_what_agrees_or_is_not_said_is_no_difference(model: str, facts: dict[str, Any]) -> None:
    assert differences({model: entry(**facts)}) == []


@pytest.mark.parametrize(
    ("key", "provider", "row", "model"),
    [
        ("gemini/gemini-4", "gemini", "google", "gemini-4"),
        ("vertex_ai/gemini-4", "vertex_ai-language-models", "vertex", "gemini-4"),
        ("azure/eu/gpt-6", "azure", "azure", "gpt-6"),
        ("bedrock/us-east-1/zai.glm-5", "bedrock", "bedrock", "zai.glm-5"),
        ("us.zai.glm-5", "bedrock_converse", "bedrock", "us.zai.glm-5"),
        ("together_ai/Qwen/Qwen4", "together_ai", "together", "Qwen/Qwen4"),
        ("fireworks_ai/accounts/fireworks/models/k4", "fireworks_ai", "fireworks", "accounts/fireworks/models/k4"),
    ],
)
def test_a_model_has_the_name_that_its_host_knows(key: str, provider: str, row: str, model: str) -> None:
    (claim,) = FACTS["read_litellm"]({key: entry(litellm_provider=provider)}, TODAY)
    assert (claim.row, claim.model) == (row, model)


PRICES = """
raise SystemExit("this file is read and never run")
providers = [
    Provider(id='anthropic', models=[
        ModelInfo(id='sage-1', context_window=1000000),
        ModelInfo(id='sage-2', context_window=1000000, deprecated=True),
        ModelInfo(id='sage-3'),
    ]),
    Provider(id='nobody', models=[ModelInfo(id='sage-1', context_window=1)]),
]
"""


def test_the_catalogue_of_prices_is_parsed_and_never_run() -> None:
    found = FACTS["compare"](FACTS["read_prices"](PRICES), lambda name: ROW)
    assert [str(one) for one in found] == ["anthropic:sage-1  context: ours 200000, genai-prices 1000000"]


JUDGED = """
[[judged]]
rows = ["anthropic"]
models = ["sage-*"]
fact = "output"
theirs = "128000"
reason = "a beta"
date = "2026-11-15"
"""


def judge(catalogue: dict[str, dict[str, Any]], text: str = JUDGED) -> Any:
    found = FACTS["compare"](FACTS["read_litellm"](catalogue, TODAY), lambda name: ROW)
    return FACTS["judge"](found, FACTS["read_judgements"](text))


def test_a_judgement_covers_the_models_that_it_names_while_the_catalogue_says_the_same() -> None:
    same = judge({"sage-1": entry(max_output_tokens=128_000), "sage-2": entry(max_output_tokens=128_000)})
    assert (len(same.judged), same.unexplained, same.unused) == (2, [], [])
    changed = judge({"sage-1": entry(max_output_tokens=256_000)})
    assert (len(changed.unexplained), len(changed.unused)) == (1, 1)
    other = judge({"sage-1": entry(max_output_tokens=128_000, supports_max_reasoning_effort=True)})
    assert [one.fact for one in other.unexplained] == ["efforts"]


def test_a_judgement_that_nobody_needs_is_reported() -> None:
    assert [one.models for one in judge({}).unused] == [("sage-*",)]


@pytest.mark.parametrize(
    "text",
    [JUDGED.replace('"sage-*"', '"*"'), JUDGED.replace('"sage-*"', '"sage-*", "**"'), JUDGED.replace("a beta", " ")],
)
def test_a_judgement_without_a_reason_or_about_every_model_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names its models and its reason"):
        FACTS["read_judgements"](text)


def test_our_judgements_are_read_and_each_says_why_and_when() -> None:
    judgements = FACTS["read_judgements"](FACTS["JUDGED"].read_text("utf-8"))
    assert len(judgements) > 20
    for one in judgements:
        assert len(one.reason) > 20, one
        assert len(one.date) == len("2026-11-15"), one
        assert all(FACTS["find_provider"](row).name == row for row in one.rows), one


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_SCRIPT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("facts", "code", "line"),
    [
        ({"max_output_tokens": 1}, 1, "differs   anthropic:claude-opus-5-5  output: ours 128000, litellm 1"),
        ({"max_output_tokens": 128_000}, 0, "0 differences are not judged, 0 are; 0 judgements are not needed."),
    ],
)
def test_the_command_reads_wheels_as_data(tmp_path: Path, facts: dict[str, Any], code: int, line: str) -> None:
    wheel, judged = tmp_path / "litellm-9.9-py3-none-any.whl", tmp_path / "judged.toml"
    judged.write_text("", "utf-8")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("litellm/__init__.py", "raise SystemExit(9)")
        catalogue = json.dumps({"claude-opus-5-5": entry(**facts)})
        archive.writestr("litellm/model_prices_and_context_window_backup.json", catalogue)
    done = _run(str(wheel), "--judged", str(judged))
    assert done.returncode == code, done.stderr
    assert line in done.stdout
    assert "litellm-9.9: 1 models compared" in done.stdout

"""The plan of a batch: what it keeps, and what makes two requests the same."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

import asides
from asides.batch_rows import read_row
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.settings import Settings
from asides_batch.batch_plan import (
    BatchPlan,
    RunSettings,
    decode_plan,
    decode_request,
    encode_plan,
    encode_request,
    read_plan,
)


def plan(model: Any = "groq:m", settings: Settings | None = None, **options: Any) -> BatchPlan:
    return read_plan(model, cast("Options", options), CallBuilder(settings=settings or Settings()))[0]


def compute_hash(row: Any, model: Any = "groq:m", **options: Any) -> str:
    return plan(model, **options).compute_hash(read_row(row, 0, "here"))


def test_equal_requests_have_one_hash_and_others_another() -> None:
    same = compute_hash("a")
    assert same == compute_hash({"prompt": "a", "id": 7, "other": 1})
    assert same == compute_hash({"question": "a", "id": 7})
    others = [
        compute_hash("b"),
        compute_hash("a", "groq:n"),
        compute_hash("a", ["groq:m", "groq:n"]),
        compute_hash("a", system="S"),
        compute_hash({"prompt": "a", "seed": 1}),
        compute_hash("a", output={"type": "object"}),
        compute_hash("a", settings=Settings(max_tokens=9)),
        compute_hash("a", base_url="http://localhost:1/v1"),
    ]
    assert len({same, *others}) == 9


def test_keys_and_timeouts_are_neither_kept_nor_compared() -> None:
    kept, own = read_plan("groq:m", Options(api_key="secret", timeout=3, system="S"), CallBuilder(settings=Settings()))
    assert own == {"api_key": "secret", "timeout": 3}
    assert b"secret" not in encode_plan(kept, RunSettings())
    assert kept.digest == plan(system="S").digest


def test_a_plan_is_kept_with_its_settings() -> None:
    run = RunSettings(rpm=5, max_cost=Decimal("1.50"))
    kept = decode_plan(encode_plan(plan(thinking=asides.Thinking(effort="low"), stop=["x"]), run))
    assert kept.run == run
    assert kept.plan.digest == plan(thinking=asides.Thinking(effort="low"), stop=["x"]).digest
    assert run.merge(RunSettings(rpm=6, tpm=7)) == RunSettings(rpm=6, tpm=7, max_cost=Decimal("1.50"))
    question = read_row({"prompt": "a\ud83d", "seed": 3}, 4, "here")
    assert decode_request(encode_request(question), 4).content == question.content


def test_options_of_a_row_win_and_those_of_one_provider_stay_with_it() -> None:
    builder = CallBuilder(settings=Settings())
    made = plan(base_url="http://localhost:1/v1", max_tokens=5)
    call = made.build(builder, read_row({"prompt": "a", "max_tokens": 7}, 0, "here"), Options(api_key="k"))
    assert (call.prompt.max_tokens, call.target.base_url) == (7, "http://localhost:1/v1")
    other = read_row({"prompt": "a", "model": "ollama:m"}, 0, "here")
    call = made.build(builder, other, Options(api_key="k"))
    assert (call.target.provider.name, call.key) == ("ollama", None)
    assert call.target.base_url != "http://localhost:1/v1"


def test_without_a_model_each_row_needs_its_own() -> None:
    with pytest.raises(asides.UnknownModel, match="no model is named"):
        compute_hash("a", None)
    assert plan(None).find_models(read_row({"prompt": "a", "model": "groq:m"}, 0, "here")) == ("groq:m",)
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}]}
    vendor = read_row({"custom_id": "x", "body": body}, 0, "here")
    assert plan(None).find_models(vendor) == ("openai:gpt-5",)
    assert plan("groq:m").find_models(vendor) == ("groq:m",)
    assert plan(None, settings=Settings(model="groq:m")).find_models(vendor) == ("openai:gpt-5",)


def test_a_value_that_is_no_json_is_told() -> None:
    with pytest.raises(asides.ConfigError, match="cannot keep the option tools"):
        plan(tools=[len])
    with pytest.raises(TypeError, match="nonsense"):
        plan(nonsense=1)

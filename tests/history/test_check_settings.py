"""Settings fitted to a model's rule: the amount of thinking in a form the model takes, and the sampling it accepts."""

from __future__ import annotations

import pytest

from asides.history.check import Advised, fit_sampling, fit_thinking
from asides.providers.provider import ModelRule
from asides.values.messages import Sampling
from asides.values.notices import Notice
from asides.values.thinking import Thinking

BUDGET = ModelRule(thinking="optional", forms=("enabled", "disabled"), budget=(1024, None), max_output=64_000)
ADAPTIVE = ModelRule(thinking="optional", forms=("adaptive", "disabled"), efforts=("low", "medium", "high"))
BOTH = ModelRule(thinking="optional", forms=("adaptive", "enabled"), efforts=("low",), budget=(1024, None))


def chosen(asked: str, tokens: int) -> Advised:
    code = "budget_chosen" if asked == "on" else "effort_mapped"
    return Notice(code, "this model thinks with a budget", "thinking", asked, str(tokens)), ""


def mapped(asked: int, sent: str, nearest: str) -> Advised:
    message = "this model takes an effort, not a budget"
    return Notice("budget_mapped", message, "thinking", str(asked), sent), f"use thinking={nearest!r}"


@pytest.mark.parametrize(
    ("rule", "asked", "limit", "sent", "found"),
    [
        # Nothing to fit: no form is known, nothing is asked, or the form fits.
        (ModelRule(), Thinking(effort="high"), None, Thinking(effort="high"), []),
        (BUDGET, Thinking(), None, Thinking(), []),
        (BUDGET, Thinking(mode="off"), None, Thinking(mode="off"), []),
        (BUDGET, Thinking(budget=5000), None, Thinking(budget=5000), []),
        (BOTH, Thinking(effort="low"), None, Thinking(effort="low"), []),
        (BOTH, Thinking(budget=5000), None, Thinking(budget=5000), []),
        # An effort becomes a budget, which leaves room for the answer and is never below the model's minimum.
        (BUDGET, Thinking(mode="on"), None, Thinking(budget=8192), [chosen("on", 8192)]),
        (BUDGET, Thinking(effort="high"), None, Thinking(budget=16_384), [chosen("high", 16_384)]),
        (BUDGET, Thinking(effort="high"), 10_000, Thinking(budget=5904), [chosen("high", 5904)]),
        (BUDGET, Thinking(effort="high"), 6000, Thinking(budget=3000), [chosen("high", 3000)]),
        (BUDGET, Thinking(effort="high"), 1000, Thinking(budget=1024), [chosen("high", 1024)]),
        # A budget becomes the lowest effort that stands for at least as many tokens.
        (ADAPTIVE, Thinking(budget=2048), None, Thinking(effort="low"), [mapped(2048, "low", "low")]),
        (ADAPTIVE, Thinking(budget=2049), None, Thinking(effort="medium"), [mapped(2049, "medium", "medium")]),
        (ADAPTIVE, Thinking(budget=99_999), None, Thinking(effort="high"), [mapped(99_999, "high", "high")]),
        (
            ADAPTIVE,
            Thinking(budget=99_999, effort="low"),
            None,
            Thinking(effort="low"),
            [mapped(99_999, "low", "high")],
        ),
        (
            ADAPTIVE,
            Thinking(mode="between_tools"),
            None,
            Thinking(mode="auto"),
            [
                (
                    Notice(
                        "form_adjusted",
                        "this model cannot be asked to think only between calls of tools",
                        "thinking",
                        "between_tools",
                        "auto",
                    ),
                    "use thinking='auto'",
                )
            ],
        ),
    ],
)
def test_the_amount_is_put_in_a_form_that_the_model_takes(
    rule: ModelRule, asked: Thinking, limit: int | None, sent: Thinking, found: list[Advised]
) -> None:
    assert fit_thinking(asked, rule, limit) == (sent, found)


def test_an_effort_that_the_model_also_takes_stays_beside_its_budget() -> None:
    rule = ModelRule(forms=("enabled",), budget=(1024, None), efforts=("low", "high"))
    assert fit_thinking(Thinking(effort="low"), rule, None)[0] == Thinking(effort="low", budget=2048)
    assert fit_thinking(Thinking(effort="max"), rule, None)[0] == Thinking(budget=32_768)


def dropped(name: str, when: str, advice: str) -> Advised:
    return Notice("setting_dropped", f"{name} is not accepted {when}", name, "set", "nothing"), advice


PICKY = ModelRule(forbids=("temperature", "stop"), refuses=("top_k",), temperature=1.0, top_p=(0.95, 1.0))
NO_TOP_K = dropped("top_k", "by this model", "leave top_k out")
NO_TEMPERATURE = dropped("temperature", "while this model thinks", "leave temperature or thinking out")


@pytest.mark.parametrize(
    ("asked", "thinks", "sent", "found"),
    [
        (Sampling(seed=7, top_p=0.95), True, Sampling(seed=7, top_p=0.95), []),
        (Sampling(top_k=5, seed=7), False, Sampling(seed=7), [NO_TOP_K]),
        (Sampling(temperature=0.5), False, Sampling(temperature=0.5), []),
        (Sampling(temperature=0.5, top_k=5), True, Sampling(), [NO_TOP_K, NO_TEMPERATURE]),
        (Sampling(temperature=1.0), True, Sampling(temperature=1.0), []),
        (Sampling(top_p=0.5), False, Sampling(top_p=0.5), []),
        (
            Sampling(top_p=0.5),
            True,
            Sampling(top_p=0.95),
            [
                (
                    Notice("setting_adjusted", "top_p is 0.95 to 1 while this model thinks", "top_p", "0.5", "0.95"),
                    "change it or leave it out",
                )
            ],
        ),
    ],
)
def test_sampling_is_what_the_model_accepts(
    asked: Sampling, thinks: bool, sent: Sampling, found: list[Advised]
) -> None:
    assert fit_sampling(asked, PICKY, thinks=thinks) == (sent, found)

"""The lists of providers: under which key they are kept, when they are old, and what they hide."""

from __future__ import annotations

from typing import Any

import pytest

from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.providers.find import list_providers
from asides.providers.provider import ModelRule, Provider
from asides.relay.known_models import find_keyed_providers
from asides.relay.listed_models import FRESH_SECONDS, RETRY_SECONDS, ListedModels
from asides.values.model_info import ModelInfo
from tests.relay.relaying import load

_ROW = Provider(
    name="acme",
    base_url="https://api.acme.example/v1",
    key_env=("ACME_KEY",),
    models=(ModelRule(models="known", thinking="always"),),
)


@pytest.fixture(autouse=True)
def _one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in list_providers():
        for name in row.key_env:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACME_KEY", "sk-first")


def build() -> CallBuilder:
    return CallBuilder(Options(), settings=load(providers=(_ROW,)))


def count_due(listed: ListedModels, now: float) -> int:
    builder = build()
    return len([*listed.list_due(find_keyed_providers(builder), builder, now)])


def keep(listed: ListedModels, models: tuple[ModelInfo, ...] | None, now: float = 0.0) -> None:
    builder = build()
    (call,) = listed.list_due(find_keyed_providers(builder), builder, now)
    listed.keep(call, models, now)


def find(listed: ListedModels) -> list[str] | None:
    models = listed.find(_ROW, build())
    return None if models is None else [model.id for model in models]


def test_a_list_belongs_to_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ListedModels()
    assert find(listed) is None
    keep(listed, (ModelInfo("one"),))
    assert find(listed) == ["one"]
    monkeypatch.setenv("ACME_KEY", "sk-second")
    assert (find(listed), count_due(listed, 0.0)) == (None, 1)
    keep(listed, (ModelInfo("two"),))
    assert find(listed) == ["two"]
    monkeypatch.setenv("ACME_KEY", "sk-first")
    assert find(listed) == ["one"]
    assert "sk-" not in repr(vars(listed))


def test_an_old_list_is_asked_for_again_and_a_failure_keeps_it() -> None:
    listed = ListedModels()
    keep(listed, (ModelInfo("one"),))
    assert (count_due(listed, FRESH_SECONDS - 1), count_due(listed, FRESH_SECONDS)) == (0, 1)
    keep(listed, None, FRESH_SECONDS)
    assert find(listed) == ["one"]
    later = FRESH_SECONDS + RETRY_SECONDS
    assert (count_due(listed, later - 1), count_due(listed, later)) == (0, 1)


def test_the_stage_is_not_asked_for_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", "1")
    assert count_due(ListedModels(), 0.0) == 0


@pytest.mark.parametrize(
    ("name", "raw", "shown"),
    [
        ("gpt-5.6", {}, True),
        ("openai/gpt-oss-120b", {}, True),
        ("gemini-3-pro", {"supportedGenerationMethods": ["generateContent", "countTokens"]}, True),
        ("gemini-embedding-001", {"supportedGenerationMethods": ["embedContent"]}, False),
        ("imagen-5", {"supportedGenerationMethods": ["generateContent"]}, False),
        ("text-embedding-3-small", {}, False),
        ("whisper-large-v3", {}, False),
        ("gpt-4o-mini-tts", {}, False),
        ("gpt-image-2", {}, False),
        ("omni-moderation-latest", {"capabilities": {"completion_chat": False}}, False),
        ("mistral-large", {"capabilities": {"completion_chat": True}}, True),
        ("painter", {"architecture": {"output_modalities": ["image"]}}, False),
        ("painter-that-talks-image", {"architecture": {"output_modalities": ["image", "text"]}}, True),
        ("bge-large", {"type": "embedding"}, False),
        ("flux-writer", {"type": "chat"}, True),
        ("odd", {"architecture": "x", "capabilities": [], "type": 3}, True),
        ("", {}, False),
        ("two words", {}, False),
        ("\u202eevil", {}, False),
        ("x" * 201, {}, False),
    ],
)
def test_what_answers_no_question_is_left_out(name: str, raw: dict[str, Any], shown: bool) -> None:
    listed = ListedModels()
    keep(listed, (ModelInfo(name, raw=raw),))
    assert find(listed) == ([name] if shown else [])

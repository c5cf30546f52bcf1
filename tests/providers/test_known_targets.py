"""Equal arguments and variables give the same target; whatever differs gives what `find_target` finds."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.providers import known_targets
from asides.providers.endpoint import Choice
from asides.providers.find import find_target
from asides.providers.known_targets import KnownTargets
from asides.providers.provider import Provider, Target
from asides.values.errors import AsidesError, ConfigError, UnknownModel, UnknownProvider

HERE = "http://127.0.0.1:9/v1"


def find(known: KnownTargets, model: Any, base_url: str | None = None, family: str | None = None) -> Target:
    return known.find(model, base_url, family).found


@pytest.mark.parametrize(
    ("model", "base_url", "family"),
    [
        ("openai:gpt-6", None, None),
        ("openai-compatible:m", HERE, None),
        ("openai-compatible:deployment", HERE, "qwen3-8b"),
        ("ANTHROPIC/claude-opus-5", None, None),
        ("deepseek:deepseek-reasoner", "https://elsewhere.example/v1", None),
    ],
)
def test_equal_arguments_give_the_same_object_equal_to_what_is_found(
    model: str, base_url: str | None, family: str | None
) -> None:
    known = KnownTargets()
    first = find(known, model, base_url, family)
    assert find(known, model, base_url, family) is first
    assert first == find_target(model, base_url=base_url, family=family)


_MODELS = st.sampled_from(["openai:gpt-6", "azure:gpt-6", "ollama:qwen3:8b", "qwen3"])
_URLS = st.sampled_from([None, "", HERE, HERE + "?api-version=1", HERE + "?key=s", "https://u:p@x", "no address"])
_VALUES = st.sampled_from([None, "", "https://one.example/v1", "https://two.example/v1?token=s", "https://u:p@x"])
_NAMES = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "OLLAMA_HOST")


def describe(action: Any) -> object:
    try:
        return action()
    except AsidesError as problem:
        return type(problem), str(problem)


@given(
    st.lists(
        st.tuples(_MODELS, _URLS, st.sampled_from([None, "", "gpt-6"]), st.tuples(*[_VALUES] * len(_NAMES))),
        max_size=12,
    )
)
def test_any_row_of_calls_gives_what_each_alone_would(calls: list[tuple[Any, ...]]) -> None:
    known = KnownTargets()
    for model, base_url, family, values in calls:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in zip(_NAMES, values, strict=True):
                patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
            kept = describe(lambda: find(known, model, base_url, family))  # noqa: B023
            alone = describe(lambda: find_target(model, base_url=base_url, family=family))  # noqa: B023
        assert kept == alone


def test_a_variable_that_changes_counts_with_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownTargets()
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    own = find(known, "openai:gpt-6")
    monkeypatch.setenv("OPENAI_BASE_URL", HERE)
    moved = find(known, "openai:gpt-6")
    assert (own.base_url, moved.base_url) == ("https://api.openai.com/v1", HERE)
    assert find(known, "openai:gpt-6") is moved
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:word@elsewhere.example")
    with pytest.raises(ConfigError):
        find(known, "openai:gpt-6")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert find(known, "openai:gpt-6") == own


@pytest.mark.parametrize("model", [["openai:gpt-6"], None, 7, b"openai:gpt-6", {}])
def test_what_is_no_text_is_the_same_error_as_without_a_memory(model: Any) -> None:
    with pytest.raises(UnknownModel, match="a model is text"):
        find(KnownTargets(), model)


def test_a_mistake_is_not_remembered() -> None:
    known = KnownTargets()
    for _ in range(2):
        with pytest.raises(UnknownProvider):
            find(known, "opnai:gpt-6")


def list_held_texts(root: object) -> set[str]:
    seen: set[int] = set()
    texts: set[str] = set()
    queue = [root]
    while queue:
        item = queue.pop()
        if isinstance(item, str):
            texts.add(item)
        elif id(item) not in seen and not isinstance(item, type):
            seen.add(id(item))
            queue += gc.get_referents(item)
            if isinstance(item, msgspec.Struct):
                queue += [getattr(item, name) for name in item.__struct_fields__]
    return texts


def test_a_secret_of_one_call_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownTargets()
    for base_url in (f"{HERE}?key=made-up-secret", f"{HERE}?api-version=1&sig=made-up-secret"):
        assert ("made-up-secret") in str(find(known, "openai-compatible:m", base_url).provider.query)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{HERE}?token=made-up-secret")
    find(known, "openai:gpt-6")
    find(known, "openai-compatible:m", HERE)
    held = list_held_texts(vars(known))
    assert HERE in held
    assert not [text for text in held if "made-up-secret" in text]


def test_rows_of_the_caller_are_found_and_their_own_secrets_are_no_obstacle() -> None:
    row = Provider(name="mine", base_url=HERE, headers=(("x-api-key", "made-up"),), query=(("key", "made-up"),))
    known = KnownTargets((row,))
    assert find(known, "mine:m").provider is row
    assert find(known, "mine:m") is find(known, "mine:m")
    other = f"{HERE}?sig=of-this-call"
    assert find(known, "mine:m", other) is not find(known, "mine:m", other)


def test_the_memory_is_limited_and_full_it_still_finds() -> None:
    known = KnownTargets()
    for number in range(3 * known_targets._MOST_TARGETS):
        assert find(known, f"openai-compatible:m{number}", HERE).model == f"m{number}"
        assert len(known._known) <= known_targets._MOST_TARGETS
    entry = known.find("openai-compatible:m", HERE, None)
    for number in range(3 * known_targets._MOST_CHOICES):
        choice = Choice("openai_chat", str(number))
        assert entry.keep_choice(number, choice, entry.found) == (choice, entry.found)
        assert len(entry.choices) <= known_targets._MOST_CHOICES


def test_threads_that_ask_at_once_get_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Barrier(2)

    def find_slowly(*given: Any, **options: Any) -> Target:
        started.wait(10)
        return find_target(*given, **options)

    monkeypatch.setattr(known_targets, "find_target", find_slowly)
    known = KnownTargets()
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: find(known, "openai-compatible:m", HERE), range(2))
    assert one is other

"""A provider's row at an address that is not its own: nobody knows who answers, so no thinking may reach the answer."""

from __future__ import annotations

import pytest

import asides
from asides.providers.find import is_own_address
from asides.providers.table import PROVIDERS
from asides_stage import Say, Stage

# Bedrock and Vertex put the model of Messages into the path, which the stage does not serve.
ROWS = [row for row in PROVIDERS if not row.launcher and row.quirks.transport == "direct"]
NAMES = [row.name for row in ROWS]
AWAY = [row.name for row in ROWS if row.dialect == "openai_chat" and not is_own_address(row, "http://127.0.0.1:9/v1")]
SECRET = "the plan nobody may read"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize("name", NAMES)
def test_tags_in_the_content_never_reach_the_answer_at_another_address(name: str) -> None:
    with Stage([Say(text=f"<think>{SECRET}</think>A")], dialect=_find_dialect(name)) as stage:
        for model in ("qwen3-8b", "deepseek-r1", "gpt-4o", "made-up"):
            for stream in (True, False):
                reply = asides.ask(f"{name}:{model}", "?", base_url=stage.url, api_key="k", stream=stream)
                assert (reply.text, reply.thinking and reply.thinking.text) == ("A", SECRET), model


@pytest.mark.parametrize("model", ["qwen3-8b", "deepseek-r1"])
@pytest.mark.parametrize("name", AWAY)
def test_a_template_that_opened_the_tag_leaks_nothing_at_another_address(name: str, model: str) -> None:
    with Stage([Say(text=f"{SECRET}</think>A")], dialect="openai_chat") as stage:
        reply = asides.ask(f"{name}:{model}", "?", base_url=stage.url, api_key="k")
    assert (reply.text, reply.thinking and reply.thinking.text) == ("A", SECRET)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking", "thoughts"])
@pytest.mark.parametrize("name", ["openai", "deepseek", "mistral", "anthropic-openai", "writer"])
def test_every_field_is_read_at_another_address(name: str, field: str) -> None:
    with Stage([Say(text="A", thinking=SECRET, thinking_field=field)], dialect="openai_chat") as stage:
        reply = asides.ask(f"{name}:any", "?", base_url=stage.url, api_key="k")
    assert (reply.text, reply.thinking and reply.thinking.text) == ("A", SECRET)


def test_the_variable_of_the_address_counts_like_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage([Say(text=f"<think>{SECRET}</think>A")]) as stage:
        monkeypatch.setenv("OPENAI_BASE_URL", stage.url)
        reply = asides.ask("openai:my-model", "?", api_key="k")
    assert reply.text == "A"
    assert [notice.code for notice in reply.warnings] == ["foreign_address"]


def test_a_row_of_the_user_that_says_nothing_about_tags_reads_all_of_them() -> None:
    with Stage([Say(text=f"<think>{SECRET}</think>A")]) as stage:
        row = asides.Provider(name="mine", base_url=stage.url, key="optional")
        reply = asides.Client(providers=[row]).ask("mine:any", "?")
    assert (reply.text, reply.warnings) == ("A", ())


def test_a_row_of_the_user_that_never_inlines_stays_as_it_is_written() -> None:
    with Stage([Say(text="<think> is a tag")]) as stage:
        row = asides.Provider(name="mine", base_url=stage.url, key="optional", quirks=asides.Quirks(tags=()))
        reply = asides.Client(providers=[row]).ask("mine:any", "?")
    assert reply.text == "<think> is a tag"


def _find_dialect(name: str) -> str:
    return next(row.dialect for row in PROVIDERS if row.name == name)

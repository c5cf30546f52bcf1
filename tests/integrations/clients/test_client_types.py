"""The static types of the clients: those of the official classes, and our own arguments."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import anthropic
import openai
import pytest

import asides
import asides.anthropic
import asides.openai

# Private arguments are for copies of a client; asides= is ours.
CLIENTS: list[tuple[Any, Any]] = [
    (openai.OpenAI, asides.openai.OpenAIArguments),
    (openai.AsyncOpenAI, asides.openai.AsyncOpenAIArguments),
    (anthropic.Anthropic, asides.anthropic.AnthropicArguments),
    (anthropic.AsyncAnthropic, asides.anthropic.AsyncAnthropicArguments),
]


@pytest.mark.parametrize(("official", "ours"), CLIENTS)
def test_every_argument_of_the_official_class_is_known(official: Any, ours: Any) -> None:
    names = {name for name in inspect.signature(official.__init__).parameters if not name.startswith("_")} - {"self"}
    assert set(ours.__annotations__) == names | {"asides"}


def test_names_of_the_packages_can_be_imported_from_ours() -> None:
    for ours, package in ((asides.openai, openai), (asides.anthropic, anthropic)):
        others = set(package.__all__) - set(dir(ours)) - {"BedrockOpenAI", "AsyncBedrockOpenAI"}
        assert [name for name in others if getattr(ours, name) is not getattr(package, name)] == []
    for name in ("AzureOpenAI", "AsyncBedrockOpenAI"):
        with pytest.raises(AttributeError, match=r"[Nn]ame the provider in the model"):
            getattr(asides.openai, name)
    with pytest.raises(AttributeError, match=r"[Nn]ame the provider in the model"):
        getattr(asides.anthropic, "AnthropicBedrock")  # noqa: B009 - the type checker knows that it is not there
    assert asides.openai.Client is asides.openai.OpenAI
    assert get_type_hints(asides.openai.OpenAI.__init__)["return"] is type(None)


PROGRAM = """
from asides.anthropic import Anthropic
from asides.openai import AsyncOpenAI, OpenAI, RateLimitError

client = OpenAI(api_key="k", timeout=5, asides={"thinking": "high", "vault": "off"})
completion = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
reveal_type(completion)
reveal_type(client.responses.create(model="m", input="?"))
reveal_type(client.with_options(timeout=3))
message = Anthropic().messages.create(model="m", max_tokens=5, messages=[])
reveal_type(message)
reveal_type(AsyncOpenAI().chat.completions.create)
try:
    OpenAI(tiemout=3)
except RateLimitError as error:
    reveal_type(error.status_code)
"""


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_a_type_checker_sees_the_official_types(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    source = str(Path(asides.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)],
        cwd=tmp_path, env={"MYPYPATH": source, "PATH": ""}, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    lines = [line.partition("program.py:")[2] for line in done.stdout.splitlines() if "program.py" in line]
    revealed = [line.partition('"')[2].rstrip('"').rpartition(".")[2] for line in lines if "Revealed" in line]
    assert revealed[:4] == ["ChatCompletion", "Response", "OpenAI", "Message"]
    assert "AsyncCompletions" in done.stdout or "Coroutine[Any, Any, openai.types.chat" in done.stdout
    errors = [line for line in lines if "error" in line]
    assert [("tiemout" in line) for line in errors] == [True]

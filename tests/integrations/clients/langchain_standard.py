"""LangChain's own suite for chat models, over the strict stage: one class for each dialect.

`test_langchain_standard` runs this file in a pytest of its own: langchain-tests needs plugins that other tests do
without.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests, chat_models
from langchain_tests.unit_tests import ChatModelUnitTests

from asides.dialects.dialect import ServedRequest
from asides.langchain import ChatAsides
from asides.values.messages import OutputSchema
from asides.values.usage import Usage
from asides_stage import Say, Stage
from asides_stage.stage import improvise

_JOKE = {"setup": "Why did the cat sit on the log?", "punchline": "It was out of trees."}
_CACHE = "the cache"
_stages: list[Stage] = []


def answer(request: ServedRequest) -> Say:
    """What the stage's actor says, as the model that was asked; a joke in JSON, and figures of a cache, on demand."""
    asked = " ".join([request.prompt.system or "", *(message.text for message in request.prompt.messages)])
    said = improvise(request)
    if "punchline" in asked and not isinstance(request.prompt.output, OutputSchema) and not request.prompt.tools:
        said = Say(text=json.dumps(_JOKE))
    if _CACHE in asked:
        said = msgspec.structs.replace(said, usage=Usage(input=30, output=9, thinking=4, cached=10, cache_written=15))
    return msgspec.structs.replace(said, model=None)


@pytest.fixture(scope="session", autouse=True)
def _open_stage() -> Iterator[None]:
    with Stage(answer) as stage:
        _stages.append(stage)
        yield
        refused = [refusal for refusal in stage.refusals if not _is_made_up(str(refusal))]
        assert refused == []


def _is_made_up(refusal: str) -> bool:
    """The suite sends a signature that it made up. Claude refuses it, and the request is sent again without."""
    return "Invalid `signature` in `thinking` block" in refusal


class _Response:
    def __init__(self, content: bytes) -> None:
        self.content = content


class _LocalFiles:
    """The pictures, documents and sounds that the suite would fetch from the web."""

    @staticmethod
    def get(url: str, **_: object) -> _Response:
        if url.endswith(".pdf"):
            return _Response(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n")
        if url.endswith(".wav"):
            return _Response(b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + bytes(18) + b"data" + bytes(8))
        return _Response(_draw_picture())


def _draw_picture() -> bytes:
    """One black pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


@pytest.fixture(autouse=True)
def _use_local_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_models, "httpx", _LocalFiles)
    monkeypatch.setenv("LANGCHAIN_TESTS_USER_AGENT", "none")


class TestUnit(ChatModelUnitTests):
    """What needs no server."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatAsides

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "anthropic:claude-sonnet-4-5"}

    @pytest.mark.xfail(reason='"all" means the classes of a table in langchain-core; others have to be named')
    def test_serdes(self, model: BaseChatModel, snapshot: Any) -> None:
        super().test_serdes(model, snapshot)

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        # asides reads keys with the call, not here: nothing but the model itself is to be seen.
        key = {"ANTHROPIC_API_KEY": "test"}
        return key, {"model": "anthropic:claude-sonnet-4-5"}, {"model": "anthropic:claude-sonnet-4-5"}


class Standard(ChatModelIntegrationTests):
    """The whole suite."""

    asked = ""
    other = ""
    options: ClassVar[dict[str, Any]] = {"thinking": "high"}
    details: tuple[str, ...] = ("reasoning_output", "cache_read_input", "cache_creation_input")
    without: frozenset[str] = frozenset()
    """What the provider does not take."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatAsides

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": self.asked, "base_url": _stages[-1].url, "api_key": "sk-made-up", **self.options}

    @property
    def model_override_value(self) -> str:
        return self.other

    @property
    def has_tool_choice(self) -> bool:
        return "tool_choice" not in self.without

    @property
    def supports_image_inputs(self) -> bool:
        return "pictures" not in self.without

    @property
    def supports_image_urls(self) -> bool:
        return "addresses" not in self.without

    @property
    def supports_pdf_inputs(self) -> bool:
        return "documents" not in self.without

    @property
    def supports_audio_inputs(self) -> bool:
        return "sounds" not in self.without

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return self.supports_image_inputs

    @property
    def supports_pdf_tool_message(self) -> bool:
        return self.supports_pdf_inputs

    @property
    def supported_usage_metadata_details(self) -> Any:
        return {"invoke": [*self.details], "stream": [*self.details]}

    def _ask(self, *, stream: bool) -> AIMessage:
        model = self.chat_model_class(**self.chat_model_params)
        question = f"What is 23 * 47? Use {_CACHE}."
        if not stream:
            return model.invoke(question)
        pieces = list(model.stream(question))
        return sum(pieces[1:], pieces[0])

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        return self._ask(stream=stream)

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        return self._ask(stream=stream)

    def invoke_with_cache_creation_input(self, *, stream: bool = False) -> AIMessage:
        return self._ask(stream=stream)


class TestClaude(Standard):
    asked, other = "anthropic:claude-sonnet-4-5", "claude-opus-4-5"
    options: ClassVar[dict[str, Any]] = {}
    details = ("cache_read_input", "cache_creation_input")
    without = frozenset({"sounds"})


class TestClaudeThinking(Standard):
    """Thinks, and cannot be made to call a tool meanwhile."""

    asked, other = "anthropic:claude-opus-5-5", "claude-opus-5"
    options: ClassVar[dict[str, Any]] = {"thinking": "high", "on_conflict": "adjust"}
    without = frozenset({"tool_choice", "sounds"})


class TestResponses(Standard):
    asked, other = "openai-responses:gpt-5.2", "gpt-5"
    without = frozenset({"sounds"})


class TestChatCompletions(Standard):
    asked, other = "openai-chat:gpt-5.2", "gpt-5"
    details = ("reasoning_output", "cache_read_input")
    without = frozenset({"sounds"})


class TestDeepSeek(Standard):
    """Takes no schema, so it stands in the instructions; takes text only."""

    asked, other = "deepseek:deepseek-chat", "deepseek-reasoner"
    options: ClassVar[dict[str, Any]] = {"thinking": "high", "on_conflict": "adjust"}
    details = ("reasoning_output", "cache_read_input")
    without = frozenset({"tool_choice", "pictures", "addresses", "documents", "sounds"})


class TestGemini(Standard):
    asked, other = "gemini:gemini-3-pro-preview", "gemini-2.5-pro"
    details = ("reasoning_output", "cache_read_input")


class TestBedrock(Standard):
    asked = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    other = "us.anthropic.claude-opus-4-5-20251101-v1:0"
    options: ClassVar[dict[str, Any]] = {"thinking": "high", "on_conflict": "adjust"}
    details = ("cache_read_input", "cache_creation_input")
    without = frozenset({"tool_choice", "addresses", "sounds"})


class TestOllama(Standard):
    """Knows no choice of tools, and reports neither thinking nor a cache."""

    asked, other = "ollama:qwen3", "gpt-oss"
    details = ()
    without = frozenset({"tool_choice", "addresses", "documents", "sounds"})


class TestCohere(Standard):
    asked, other = "cohere:command-a-reasoning-08-2025", "command-a-plus"
    options: ClassVar[dict[str, Any]] = {"thinking": "high", "on_conflict": "adjust"}
    details = ("reasoning_output", "cache_read_input")
    without = frozenset({"documents", "sounds"})


del Standard

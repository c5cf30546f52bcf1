"""What a request of a client asks for: its base path, its home, its key, its headers, its timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from asides import ConfigError, Provider
from asides.integrations.client_requests import (
    NO_KEY,
    Home,
    check_options,
    find_base_path,
    find_home,
    read_key,
    read_timeout,
    select_own_headers,
    select_shared_headers,
)
from asides.options import Options, Timeout


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/v1/chat/completions", "/v1"),
        ("/openai/v1/responses/resp_1/input_items", "/openai/v1"),
        ("/v1/messages/count_tokens", "/v1"),
        ("/anthropic/v1/messages", "/anthropic/v1"),
        ("/v1/models/gpt-5", "/v1"),
        ("/v1beta/models/gemini-3-pro:generateContent", "/v1beta"),
        ("/api/chat", ""),
        ("/v2/chat", "/v2"),
        ("/chat/completions", ""),
        ("/somewhere/else/", "/somewhere/else"),
    ],
)
def test_the_base_path_is_what_stands_before_the_endpoint(path: str, base: str) -> None:
    assert find_base_path(path) == base


@pytest.mark.parametrize(
    ("address", "dialect", "home"),
    [
        ("https://api.openai.com/v1", "openai_chat", Home("openai")),
        ("https://api.openai.com/v1", "openai_responses", Home("openai")),
        ("https://eu.api.openai.com/v1", "openai_chat", Home("openai", "https://eu.api.openai.com/v1")),
        ("https://api.anthropic.com/v1/", "anthropic", Home("anthropic")),
        ("https://api.anthropic.com/v1", "openai_chat", Home("anthropic-openai")),
        ("https://openrouter.ai/api/v1", "openai_chat", Home("openrouter")),
        ("http://localhost:8000/v1", "openai_chat", Home("openai-compatible", "http://localhost:8000/v1")),
        ("https://mine.example/v1", "openai_responses", Home("openai-compatible", "https://mine.example/v1")),
        ("https://mine.example/v1", "anthropic", Home("anthropic-compatible", "https://mine.example/v1")),
        ("https://api.openai.com.evil.example/v1", "openai_chat",
         Home("openai-compatible", "https://api.openai.com.evil.example/v1")),
    ],
)  # fmt: skip
def test_the_home_is_the_provider_at_the_base_url(address: str, dialect: str, home: Home) -> None:
    assert find_home(address, dialect) == home


def test_rows_of_the_caller_come_first() -> None:
    mine = Provider(name="mine", base_url="https://mine.example/v1")
    assert find_home("https://mine.example/v1", "openai_chat", [mine]) == Home("mine")


def test_the_options_of_a_home_are_its_key_and_its_address() -> None:
    assert Home("openai").options(None) == Options()
    assert Home("x", "https://a.example").options("k") == Options(api_key="k", base_url="https://a.example")


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "Bearer sk-1"}, "sk-1"),
        ({"authorization": "bearer sk-1"}, "sk-1"),
        ({"x-api-key": "sk-2"}, "sk-2"),
        ({"x-goog-api-key": "g"}, "g"),
        ({"authorization": f"Bearer {NO_KEY}"}, None),
        ({"authorization": f"Bearer {NO_KEY}", "x-api-key": "sk-3"}, "sk-3"),
        ({}, None),
    ],
)
def test_the_key_of_a_client(headers: dict[str, str], key: str | None) -> None:
    assert read_key(headers) == key


def test_headers_are_the_dialects_or_the_programs_or_the_connections() -> None:
    headers = {
        "accept": "application/json",
        "anthropic-beta": "a,b",
        "authorization": "Bearer secret",
        "host": "api.openai.com",
        "openai-organization": "org",
        "x-stainless-lang": "python",
        "x-team": "blue",
    }
    assert select_shared_headers(headers) == {"accept": "application/json", "anthropic-beta": "a,b"}
    assert select_own_headers(headers) == {"openai-organization": "org", "x-team": "blue"}


@pytest.mark.parametrize(
    ("limits", "timeout"),
    [
        ({"connect": 5, "read": 60, "write": 7, "pool": 8}, Timeout(connect=5.0, first_byte=60.0, idle=60.0)),
        ({"connect": None, "read": None}, Timeout(connect=None, first_byte=None, idle=None)),
        ({"connect": 0, "read": 0}, Timeout(connect=0.001, first_byte=0.001, idle=0.001)),
        (None, Timeout()),
    ],
)
def test_the_timeouts_of_a_client(limits: Any, timeout: Timeout) -> None:
    assert read_timeout(limits) == timeout


def test_an_unknown_option_is_named() -> None:
    assert check_options({"thinking": "high"}) == {"thinking": "high"}
    with pytest.raises(ConfigError, match=r"no option .max_retries.; did you mean retries"):
        check_options({"max_retries": 3})

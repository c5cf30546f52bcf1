"""The hosts of chat completions that the stage imitates, in one table: their models, rules, state and errors.

The first part of a path such as `/as-openrouter/v1/chat/completions` chooses a host; else the path that the real host
has, else the name of the model. For any other, only the rules of all hosts hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules.openai_chat import error_bodies, gateway_rules, host_settings, message_rules
from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest, Check
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, WriteBody
from asides.testing.stage.rules.openai_chat.issued_details import StateForm
from asides.testing.stage.rules.openai_chat.openai_settings import check_openai_settings
from asides.testing.stage.rules.openai_chat.returned_thinking import (
    check_cerebras_fields,
    check_deepseek_thinking,
    check_groq_fields,
    check_kimi_thinking,
    check_mimo_thinking,
    check_mistral_fields,
)
from asides.testing.stage.rules.openai_generations import NAMES

Wrap: TypeAlias = Callable[[Fault, bytes, str, str], bytes]
"""Writes the error of a host around that of its upstream: the fault, its body, the upstream's title, the model."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A host: who it is, what it checks, and how it says no."""

    title: str
    at: str | None = None
    """The first part of the path that chooses it."""
    models: str | None = None
    """The pattern of the names of models that show it; None if they do not."""
    paths: str | None = None
    """The pattern of its real paths."""
    checks: tuple[Check, ...] = ()
    pairs: message_rules.PairWords | None = message_rules.OPENAI_PAIRS
    """None if the upstream looks at calls and results."""
    write: WriteBody = error_bodies.write_openai
    form: StateForm | None = None
    """The state that it puts into replies."""
    field: str | None = None
    """The field of its thinking, where it is not `reasoning_content`."""
    exact: bool = False
    """Whether thinking in a plain field must be that of its turn."""
    wrap: Wrap | None = None
    """Set for a host that passes requests on."""
    fails_midstream: bool = False
    """Whether an upstream finds its faults only after a stream was opened."""
    upstreams: tuple[Host, ...] = ()
    """To whom it passes them on; if its own models do not show it, also to any host of the table."""

    def check(self, asked: ChatRequest) -> Iterator[Fault]:
        """Yield the rules that a request breaks here."""
        for check in self.checks:
            yield from check(asked)
        if self.pairs is not None:
            yield from message_rules.check_pairs(self.pairs)(asked)
            yield from message_rules.check_content(asked)

    def write_body(self, fault: Fault) -> bytes:
        """Write the body of an error that it finds itself."""
        return (fault.write or self.write)(fault)


# --- makers behind a gateway ------------------------------------------------------------------------------------------

_MAKERS = (
    Host(
        title="Anthropic",
        models=r"anthropic/claude",
        checks=(gateway_rules.check_claude_upstream,),
        pairs=message_rules.CLAUDE_PAIRS,
        write=error_bodies.write_messages_api,
        form="signed_text",
    ),
    Host(title="OpenAI", models=r"openai/(?:gpt-[5-9]|o\d)", form="summary_and_token"),
    Host(title="xAI", models=r"x-ai/grok", write=error_bodies.write_string, form="summary_and_token"),
    Host(
        title="Google AI Studio",
        models=r"google/gemini",
        write=error_bodies.write_google_object,
        form="token",
    ),
    Host(title="DeepSeek", models=r"deepseek/deepseek-", checks=(gateway_rules.check_deepseek_upstream,)),
    Host(
        title="Moonshot AI",
        models=r"moonshotai/kimi",
        checks=(gateway_rules.check_kimi_upstream,),
        write=error_bodies.write_short,
    ),
    Host(
        title="Minimax",
        models=r"minimax/minimax",
        pairs=message_rules.MINIMAX_PAIRS,
        write=error_bodies.write_typed,
        # MiniMax-AI/MiniMax-M2#76, 2026-02-22.
        fails_midstream=True,
    ),
    Host(title="Z.AI", models=r"z-ai/glm", pairs=message_rules.ZAI_PAIRS, write=error_bodies.write_code_only),
)

_CLAUDE_BEHIND_A_PROXY = Host(
    title="Anthropic",
    models=r"claude-",
    checks=(gateway_rules.check_claude_loop,),
    pairs=message_rules.CLAUDE_PAIRS,
    write=error_bodies.write_bytes_repr,
)

# --- all hosts --------------------------------------------------------------------------------------------------------

PLAIN = Host(title="a host of chat completions")
HOSTS = (
    Host(
        title="OpenRouter",
        at="as-openrouter",
        paths=r"/api/v1/chat/completions$",
        # Names with the maker in front.
        models="|".join(f"(?:{maker.models})" for maker in _MAKERS),
        checks=(gateway_rules.check_openrouter_settings,),
        pairs=None,
        write=error_bodies.write_short_code,
        wrap=lambda fault, inner, title, _: error_bodies.wrap_raw(fault, inner, title),
        upstreams=_MAKERS,
    ),
    Host(
        title="LiteLLM",
        at="as-litellm",
        checks=(gateway_rules.check_litellm_settings,),
        pairs=None,
        wrap=error_bodies.wrap_sentence,
        upstreams=(_CLAUDE_BEHIND_A_PROXY,),
    ),
    # A relay that tells only the sentence (MoonshotAI/kimi-agent-sdk#169, 2026-04-23).
    Host(
        title="new-api",
        at="as-new-api",
        pairs=None,
        wrap=lambda fault, _inner, _title, _model: error_bodies.wrap_relayed(fault),
    ),
    Host(
        title="GitHub Copilot",
        at="as-copilot",
        checks=(gateway_rules.check_opaque, check_openai_settings),
        pairs=message_rules.COPILOT_PAIRS,
    ),
    Host(
        title="Azure",
        at="as-azure",
        paths=r"/openai/deployments/",
        checks=(check_openai_settings,),
    ),
    Host(
        title="Groq",
        at="as-groq",
        checks=(check_groq_fields, host_settings.check_groq_settings),
        field="reasoning",
        write=error_bodies.write_short,
    ),
    Host(
        title="Cerebras",
        at="as-cerebras",
        models=r"zai-glm-",
        checks=(check_cerebras_fields, host_settings.check_cerebras_settings),
        field="reasoning",
        write=error_bodies.write_flat,
    ),
    Host(
        title="Fireworks",
        at="as-fireworks",
        paths=r"/inference/v1/",
        checks=(host_settings.check_one_spelling,),
        write=error_bodies.write_flat_object,
    ),
    Host(
        title="vLLM",
        at="as-vllm",
        checks=(
            message_rules.check_system_first,
            message_rules.check_alternation,
            message_rules.check_continued,
            host_settings.check_template_effort,
        ),
        field="reasoning",
        write=error_bodies.write_numbered,
    ),
    Host(
        title="llama.cpp",
        at="as-llama-cpp",
        checks=(message_rules.check_prefill,),
        write=error_bodies.write_ordered,
    ),
    Host(
        title="Ollama",
        at="as-ollama",
        checks=(host_settings.check_levels,),
        field="reasoning",
        write=error_bodies.write_api_error,
    ),
    Host(
        title="Google",
        at="as-google",
        models=r"(?:models/)?gemini-",
        paths=r"/v1beta/openai/",
        checks=(gateway_rules.check_google_settings,),
        write=error_bodies.write_google,
        # thought-signatures over the chat endpoint, 2026-08: on the first call of each step of the current turn.
        form="call_signature",
    ),
    Host(
        title="DeepSeek",
        at="as-deepseek",
        models=r"deepseek-",
        checks=(
            check_deepseek_thinking,
            host_settings.check_deepseek_settings,
            message_rules.check_interleaved,
        ),
        exact=True,
    ),
    Host(
        title="Moonshot AI",
        at="as-moonshot",
        models=r"kimi-|moonshot-",
        checks=(check_kimi_thinking, host_settings.check_kimi_settings, message_rules.check_blanks),
        write=error_bodies.write_short,
        exact=True,
    ),
    Host(
        title="Xiaomi",
        at="as-mimo",
        models=r"mimo-",
        checks=(check_mimo_thinking,),
        write=error_bodies.write_param_text,
        exact=True,
    ),
    Host(
        title="Z.AI",
        at="as-zai",
        models=r"glm-",
        paths=r"/paas/v4/",
        checks=(host_settings.check_glm_settings,),
        pairs=message_rules.ZAI_PAIRS,
        write=error_bodies.write_code_only,
        exact=True,
    ),
    Host(
        title="DashScope",
        at="as-dashscope",
        models=r"qwen3?(?:\.\d)?-(?:max|plus|flash|turbo|long|\d+(?:\.\d+)?b)|qwq-|qvq-",
        paths=r"/compatible-mode/",
        checks=(host_settings.check_qwen_settings,),
        write=error_bodies.write_with_request_id,
    ),
    Host(
        title="ModelScope",
        at="as-modelscope",
        checks=(host_settings.check_modelscope_settings,),
        write=error_bodies.write_with_request_id,
    ),
    Host(
        title="MiniMax",
        at="as-minimax",
        models=r"minimax-",
        checks=(
            host_settings.check_minimax_settings,
            message_rules.check_system_role,
            message_rules.check_arguments,
        ),
        pairs=message_rules.MINIMAX_PAIRS,
        write=error_bodies.write_typed,
        # The whole turn must come back, its details verbatim; nothing in them is signed.
        form="plain_text",
    ),
    Host(
        title="Mistral",
        at="as-mistral",
        models=r"(?:magi|mi|mini|code|dev|pix)stral|pixtral|open-mi[sx]tral",
        checks=(host_settings.check_mistral_settings, message_rules.check_order, check_mistral_fields),
        write=error_bodies.write_validated,
    ),
    Host(
        title="xAI",
        at="as-xai",
        models=r"grok-",
        checks=(host_settings.check_grok_settings, message_rules.check_elements),
        write=error_bodies.write_string,
    ),
    Host(
        title="OpenAI",
        at="as-openai",
        models=NAMES.pattern,
        checks=(check_openai_settings,),
    ),
)
_BY_PATH = {host.at: host for host in HOSTS if host.at is not None}


def find_host(request: Request, model: str) -> Host:
    """Return the host that the stage is for this request."""
    first = request.path.lstrip("/").partition("/")[0]
    if first in _BY_PATH:
        return _BY_PATH[first]
    by_path = next((host for host in HOSTS if host.paths and re.search(host.paths, request.path)), None)
    return by_path or _find_by_model(HOSTS, model)


def find_upstream(host: Host, model: str) -> Host:
    """Return the host to which a request is passed on; itself if it passes nothing on."""
    if host.wrap is None:
        return host
    if host.models is not None:
        return _find_by_model(host.upstreams, model)
    own = tuple(other for other in HOSTS if other.wrap is None)
    # A proxy names the maker in front of the model.
    return _find_by_model((*host.upstreams, *own), model.rpartition("/")[2])


def _find_by_model(hosts: tuple[Host, ...], model: str) -> Host:
    name = model.lower()
    return next((host for host in hosts if host.models and re.match(host.models, name)), PLAIN)

"""The hosts of chat completions that the stage plays: their rows, the state that they issue, and the form of errors.

The first part of a path such as `/as-openrouter/v1/chat/completions` chooses a host; else the path that the real host
has, else the name of the model. For any other, only the rules of all hosts hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from asides.dialects.openai_chat.rules import gateways, messages
from asides.dialects.rulebook import BrokenRule, Rule
from asides_stage.stage.rules.hosts import StageHost, choose_host
from asides_stage.stage.rules.openai_chat import error_bodies
from asides_stage.stage.rules.openai_chat.error_bodies import WriteBody
from asides_stage.stage.rules.openai_chat.issued_details import StateForm

Wrap: TypeAlias = Callable[[BrokenRule, bytes, str, str], bytes]
"""Writes the error of a host around that of its upstream: the rule, its body, the upstream's title, the model."""
_OWN_FORMS: dict[Rule, WriteBody] = {
    gateways.ONE_SPELLING: error_bodies.write_issues,
    gateways.OPAQUE: error_bodies.write_nothing,
    messages.ALTERNATION_2024: error_bodies.write_numbered_flat,
}
"""Errors whose body differs from the others of their host."""


class Host(StageHost, frozen=True, kw_only=True):
    """A host of chat completions on the stage."""

    dialect: str = "openai_chat"
    row: str = "openai-compatible"
    title: str
    write: WriteBody = error_bodies.write_openai
    writes: Mapping[Rule, WriteBody] = msgspec.field(default_factory=dict[Rule, WriteBody])
    """Writers for single rules."""
    form: StateForm | None = None
    """The state that it puts into replies."""
    field: str | None = None
    """The field of its thinking, where it is not `reasoning_content`."""
    exact: bool = False
    """Whether thinking in a plain field must be that of its turn."""
    wrap: Wrap | None = None
    """Set for a host that passes requests on."""
    fails_midstream: bool = False
    """Whether an upstream finds faults only after a stream was opened."""
    upstreams: tuple[Host, ...] = ()
    """The upstreams of a gateway; if its own models do not show it, also any host of the table."""

    def write_body(self, broken: BrokenRule) -> bytes:
        """Write the body of an error that it finds itself."""
        return (self.writes.get(broken.rule) or _OWN_FORMS.get(broken.rule) or self.write)(broken)


# --- makers behind a gateway ------------------------------------------------------------------------------------------

_MAKERS = (
    Host(
        title="Anthropic",
        models=r"anthropic/claude",
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
    Host(
        title="DeepSeek",
        models=r"deepseek/deepseek-",
    ),
    Host(
        title="Moonshot AI",
        models=r"moonshotai/kimi",
        write=error_bodies.write_short,
    ),
    Host(
        title="Minimax",
        models=r"minimax/minimax",
        write=error_bodies.write_typed,
        # MiniMax-AI/MiniMax-M2#76, 2026-02-22.
        fails_midstream=True,
    ),
    Host(title="Z.AI", models=r"z-ai/glm", write=error_bodies.write_code_only),
)

_CLAUDE_BEHIND_A_PROXY = Host(
    title="Anthropic",
    models=r"claude-",
    enforces=("thinking_blocks", "block_pairs"),
    write=error_bodies.write_bytes_repr,
)

# --- all hosts --------------------------------------------------------------------------------------------------------

_OPENAI_NAMES = r"gpt-(?!oss)(?:\d|audio|chat)|o\d(?:-|$)|chatgpt-|codex-|chat-latest"
PLAIN = Host(title="a host of chat completions")
HOSTS = (
    Host(
        title="OpenRouter",
        at="as-openrouter",
        row="openrouter",
        paths=r"/api/v1/chat/completions$",
        # Names with the maker in front.
        models="|".join(f"(?:{maker.models})" for maker in _MAKERS),
        write=error_bodies.write_short_code,
        wrap=lambda broken, inner, title, _: error_bodies.wrap_raw(broken, inner, title),
        upstreams=_MAKERS,
    ),
    Host(
        title="LiteLLM",
        at="as-litellm",
        row="litellm-proxy",
        wrap=error_bodies.wrap_sentence,
        upstreams=(_CLAUDE_BEHIND_A_PROXY,),
    ),
    # A relay that reports only the sentence (MoonshotAI/kimi-agent-sdk#169, 2026-04-23).
    Host(
        title="new-api",
        at="as-new-api",
        wrap=lambda broken, _inner, _title, _model: error_bodies.wrap_relayed(broken),
    ),
    Host(
        title="GitHub Copilot",
        at="as-copilot",
        row="openai-chat",
        enforces=("opaque_state", "known_fields", "reasoning_settings", "block_pairs"),
        writes=dict.fromkeys(
            (messages.BLOCK_PAIRS.missing, messages.BLOCK_PAIRS.orphaned), error_bodies.write_body_code
        ),
    ),
    Host(
        title="Azure",
        at="as-azure",
        row="azure",
        paths=r"/openai/deployments/",
    ),
    Host(
        title="Groq",
        at="as-groq",
        row="groq",
        field="reasoning",
        write=error_bodies.write_short,
    ),
    Host(
        title="Cerebras",
        at="as-cerebras",
        row="cerebras",
        models=r"zai-glm-",
        field="reasoning",
        write=error_bodies.write_flat,
    ),
    Host(
        title="Fireworks",
        at="as-fireworks",
        row="fireworks",
        paths=r"/inference/v1/",
        write=error_bodies.write_flat_object,
    ),
    Host(
        title="vLLM",
        at="as-vllm",
        row="vllm",
        field="reasoning",
        write=error_bodies.write_numbered,
    ),
    Host(
        title="llama.cpp",
        at="as-llama-cpp",
        row="llamacpp",
        write=error_bodies.write_ordered,
    ),
    Host(
        title="Ollama",
        at="as-ollama",
        row="ollama-openai",
        field="reasoning",
        write=error_bodies.write_api_error,
    ),
    Host(
        title="Google",
        at="as-google",
        row="google-openai",
        models=r"(?:models/)?gemini-",
        paths=r"/v1beta/openai/",
        write=error_bodies.write_google,
        # thought-signatures over the chat endpoint, 2026-08: on the first call of each step of the current turn.
        form="call_signature",
    ),
    Host(
        title="DeepSeek",
        at="as-deepseek",
        row="deepseek",
        # Names with "deepseek-ai/" in front are those of open weights at other hosts.
        models=r"deepseek-(?!ai/)",
        exact=True,
    ),
    Host(
        title="Moonshot AI",
        at="as-moonshot",
        row="moonshot",
        models=r"kimi-|moonshot-",
        write=error_bodies.write_short,
        exact=True,
    ),
    Host(
        title="Xiaomi",
        at="as-mimo",
        enforces=("tool_turn_thinking_2026",),
        models=r"mimo-",
        write=error_bodies.write_param_text,
        exact=True,
    ),
    Host(
        title="Z.AI",
        at="as-zai",
        row="zai",
        models=r"glm-",
        paths=r"/paas/v4/",
        write=error_bodies.write_code_only,
        exact=True,
    ),
    Host(
        title="DashScope",
        at="as-dashscope",
        row="qwen",
        models=r"qwen3?(?:\.\d)?-(?:max|plus|flash|turbo|long|\d+(?:\.\d+)?b)|qwq-|qvq-",
        paths=r"/compatible-mode/",
        write=error_bodies.write_with_request_id,
    ),
    Host(
        title="ModelScope",
        at="as-modelscope",
        enforces=("asked_thinking_streamed",),
        write=error_bodies.write_with_request_id,
    ),
    Host(
        title="MiniMax",
        at="as-minimax",
        row="minimax",
        models=r"minimax-",
        write=error_bodies.write_typed,
        # The whole turn must come back, its details verbatim; nothing in them is signed.
        form="plain_text",
    ),
    Host(
        title="Mistral",
        at="as-mistral",
        row="mistral",
        models=r"(?:magi|mi|mini|code|dev|pix)stral(?!ai/)|pixtral|open-mi[sx]tral",
        write=error_bodies.write_validated,
    ),
    Host(
        title="xAI",
        at="as-xai",
        row="xai",
        models=r"grok-",
        write=error_bodies.write_string,
    ),
    Host(
        title="OpenAI",
        at="as-openai",
        row="openai-chat",
        models=_OPENAI_NAMES,
    ),
)


def find_host(path: str, model: str) -> Host:
    """Return the host that the stage plays for this request."""
    return choose_host(HOSTS, path, model) or PLAIN


def find_upstream(host: Host, model: str) -> Host:
    """Return the host to which a request is passed on; itself if it passes nothing on."""
    if host.wrap is None:
        return host
    if host.models is not None:
        return choose_host(host.upstreams, "", model) or PLAIN
    own = tuple(other for other in HOSTS if other.wrap is None)
    # A proxy names the maker in front of the model.
    return choose_host((*host.upstreams, *own), "", model.rpartition("/")[2]) or PLAIN

"""ONE ROW PER PROVIDER — the place to add one. Facts only: a new row needs no code.

A fact carries its date (`since`) and its source (`source`): the maker's documents, a public project that measured it,
or "recorded" for answers of the real host. Facts after "unsure:" rest on memory or on one weak source and need a check.
The first rule that matches a model counts, so special rules come before general ones.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, LOW_TO_XHIGH, never_thinks
from asides.providers.models.bedrock import BEDROCK_MODELS, BEDROCK_REPLAY
from asides.providers.models.claude import CLAUDE_REPLAY, claude_models
from asides.providers.models.gemini import GEMINI_MODELS, GEMINI_REPLAY
from asides.providers.models.gpt import (
    GPT_MODELS,
    GPT_MODELS_ELSEWHERE,
    GPT_RESPONSES_MODELS,
    at_azure,
    gpt_oss,
)
from asides.providers.models.makers import (
    COMMAND_MODELS,
    DEEPSEEK_GUIDE,
    DEEPSEEK_MODELS,
    GLM_MODELS,
    GROK_MODELS,
    KIMI,
    KIMI_MODELS,
    MINIMAX,
    MINIMAX_MODELS,
    MISTRAL,
    MISTRAL_MODELS,
    QWEN_MODELS,
    QWEN_PRESERVES,
)
from asides.providers.models.open_weights import (
    ALTERNATING_TEMPLATES,
    HOSTED,
    OWN_GRAMMARS,
    SELF_HOSTED,
    SELF_HOSTED_AUTO,
    TINY_REASONER,
    extend_hosted,
    find_written_tags,
    open_weights,
    spell_with_p,
)
from asides.providers.provider import (
    LAUNCH_URL,
    ModelRule,
    ModelVariant,
    Provider,
    Quirks,
    ReplayRule,
    ReplayWhen,
    Sampled,
    ThinkingForm,
)
from asides.providers.quirks import Tags
from asides.values.errors import UnknownProvider
from asides.values.thinking import Effort


def _replay(when: ReplayWhen, since: str, source: str, models: str = "*") -> ReplayRule:
    return ReplayRule(models=models, when=when, since=since, source=source)


_OSS_IN_LOOPS = _replay(
    "tool_turns",
    "2026-11-19",
    "openai/harmony docs/format.md: it needs its thinking in a tool loop; unsure: whether this host reads it",
    "*gpt-oss*",
)
# Thinking of these makers goes back with its signature or not at all.
_WITHOUT_SEAL = "OpenRouterTeam/ai-sdk-provider convert-to-openrouter-chat-messages.ts"
_SEALED_AT_GATEWAYS = tuple(
    _replay("sealed", "2026-06-25", _WITHOUT_SEAL, models) for models in ("*anthropic/claude*", "*google/gemini*")
)


# --- OpenAI's models, at OpenAI and at Azure --------------------------------------------------------------------------


_RESPONSES_GUIDE = "platform.openai.com/docs/guides/reasoning; openai-python types/responses"
_KEEP_ITEMS = "every item of a turn goes back as it came: reasoning with its encrypted content, ids, phase"


def _responses(
    *,
    models: tuple[ModelRule, ...] | None = None,
    quirks: Quirks | None = None,
    replay: ReplayWhen = "all",
    tier: Literal["verified", "documented"] = "documented",
    since: str = "2026-11",
    source: str = "recorded",
) -> ModelVariant:
    """The same host with the dialect Responses."""
    own = Quirks(encrypted_reasoning=True) if quirks is None else quirks
    return ModelVariant(
        dialect="openai_responses",
        quirks=msgspec.structs.replace(own, path="/responses"),
        models=models,
        replay=(_replay(replay, since, source),),
        tier=tier,
        since=since,
        source=source,
    )


# --- open weights, on any host ----------------------------------------------------------------------------------------


# These servers enforce a schema with a grammar, and a model under a grammar cannot call tools. vLLM: #39929, open since
# 2026-04, a fix was closed unmerged in 2026-07. Ollama: "will not work with tools" (its maintainer in #11185,
# 2025-06-24). llama.cpp: measured on build 11549, 2026-11. At an address of an unknown server, one more request is
# better than tools that are never called; unsure: SGLang, LM Studio, mistral.rs.
_SCHEMA_WITH_TOOLS = False

_SAME_FIELD = "the host reads the field that it writes; turns that call tools need it most"

# --- Anthropic's Messages, at Anthropic and at hosts that copy it -----------------------------------------------------


def _messages(
    *,
    auth: Literal["bearer", "x-api-key", "nothing"] = "bearer",
    transport: Literal["direct", "bedrock_invoke", "vertex_predict"] = "direct",
    path: str = "/messages",
    clone: bool = False,
    empty_thinking: bool = False,
    tags: Tags | None = (),
    enforces: tuple[str, ...] = (),
) -> Quirks:
    """The quirks of a host of Anthropic's Messages. A clone is a host that copies it; clones sign nothing, and enforce
    only the rule sets in `enforces`. `tags` is None for a server that may inline anything."""
    return Quirks(
        tags=tags,
        ask_by="thinking_toggle",
        auth=auth,
        path=path,
        transport=transport,
        empty_thinking=empty_thinking,
        enforces=enforces if clone else ("claude_rules",),
        structured_output="nothing" if clone else "json_schema",
        # 400 for bounds, open objects and recursive types (platform.claude.com structured-outputs, "JSON Schema
        # limitations"; agentjido/req_llm#302, 2026).
        schema_words="shapes",
        # "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`"
        # (tailcallhq/forgecode#1853, 2025-11-07).
        refuses_thoughts_while_off=("*",),
    )


def _clone(
    models: str,
    thinking: Literal["always", "optional", "unknown"],
    forms: tuple[ThinkingForm, ...],
    *,
    efforts: tuple[Effort, ...] | None = None,
    least: int = 1,
) -> ModelRule:
    """Another maker's model served through Anthropic's Messages: its thinking is shown as it is."""
    return ModelRule(
        models=models,
        thinking=thinking,
        default=None if thinking == "unknown" else "on",
        efforts=efforts if efforts is not None else None if "adaptive" in forms else (),
        budget=(least, None) if "enabled" in forms else None,
        forms=forms,
        since="2026-08",
        source="the makers' pages on Anthropic's Messages; unsure: single models",
    )


def _toggled(models: str, what: str) -> ModelRule:
    """A young model of a maker's own host, which `thinking.type` switches; its efforts are not documented."""
    return ModelRule(
        models=models,
        thinking="optional",
        default="on",
        efforts=(),
        forms=("enabled", "disabled"),
        since="2026-11-18",
        source=f"{what} in litellm 1.109; unsure: the default, single models",
    )


def _resold(models: str, thinking: Literal["always", "optional"], *, pictures: bool | None = None) -> ModelRule:
    """A model of another maker at a host that reports only that it thinks."""
    return ModelRule(
        models=models,
        thinking=thinking,
        off_as_effort=thinking != "always",
        pictures=pictures,
        since="2026-11-18",
        source="litellm 1.109: it reasons; whether it can stop, as at its maker; unsure: its efforts here",
    )


def _muse(models: str, efforts: tuple[Effort, ...]) -> ModelRule:
    """A model of Meta's own host."""
    return ModelRule(
        models=models,
        thinking="always",
        default="on",
        kind="summary",
        efforts=efforts,
        off_as_effort=False,
        forced_tools="never",
        context=1_048_576,
        max_output=131_072,
        since="2026-11-18",
        source="docs.litellm.ai providers/meta; litellm 1.109; ocaml.org chatoyant Meta: the choice auto alone, no off",
    )


# --- Together, Groq, Cerebras, Fireworks, Perplexity, and Gemini in chat completions ----------------------------------

_TOGETHER = "docs.together.ai/docs/reasoning-overview"


def _together(models: str, default: Literal["on", "off"]) -> ModelRule:
    """A model that `reasoning: {enabled}` switches; it takes no effort."""
    return ModelRule(
        models=models,
        thinking="optional",
        default=default,
        efforts=(),
        ask_by="reasoning_object",
        since="2026-08",
        source=_TOGETHER,
    )


_GROQ = "console.groq.com/docs/reasoning"
_GROQ_APART = (("reasoning_format", "parsed"),)
_GROQ_SCHEMAS = "unsure: who takes a schema, from memory of console.groq.com/docs/structured-outputs"
_CEREBRAS = "inference-docs.cerebras.ai/capabilities/reasoning; pydantic-ai providers/cerebras.py"
_CEREBRAS_FORBIDS: tuple[Sampled, ...] = ("presence_penalty", "frequency_penalty", "logit_bias")
_FIREWORKS = "docs.fireworks.ai/guides/reasoning; langchain deepagents reasoning efforts"


def _fireworks(rules: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """The host's spelling of names. It takes three efforts for open models that have none of their own."""
    source = f"{_FIREWORKS}; recorded: deepseek-v3p2; unsure: single families"
    return spell_with_p(
        tuple(
            msgspec.structs.replace(rule, efforts=LOW_TO_HIGH, since="2026-11-15", source=source)
            if rule.efforts == () and rule.thinking != "never"
            else rule
            for rule in rules
        )
    )


_PERPLEXITY = (
    "docs.perplexity.ai; langchain_perplexity output parsers; no tools: hexdocs.pm langchain ChatPerplexity; "
    "unsure: which models do not think"
)
_GEMINI_OPENAI = "unsure: ai.google.dev/gemini-api/docs/openai, from memory"
_GEMINI_SIGNS = "gemini-[34]*"
_GEMINI_EFFORTS: tuple[tuple[str, Literal["always", "optional"], tuple[Effort, ...]], ...] = (
    (_GEMINI_SIGNS, "always", LOW_TO_HIGH),
    ("gemini-2.5-pro*", "always", ("minimal", *LOW_TO_HIGH)),
    ("gemini-2.5-flash*", "optional", ("minimal", *LOW_TO_HIGH)),
)
# Signatures of calls arrive in extra_content and go back there.
_GEMINI_AS_CHAT = ModelVariant(
    dialect="openai_chat",
    quirks=Quirks(
        tags=("thought", "think"), output_excludes_thinking=True, enforces=("effort_or_config", "call_signatures")
    ),
    models=(
        *(
            ModelRule(
                models=models,
                thinking=thinking,
                default="on",
                kind="summary",
                efforts=efforts,
                off_as_effort=thinking == "optional",
                output_with_tools=None if models == "gemini-[34]*" else False,
                signed_calls=models == _GEMINI_SIGNS,
                since="2026-08",
                source=f"{_GEMINI_OPENAI}; before 3, schema and tools are apart (openai-agents-python#656, 2025-05)",
            )
            for models, thinking, efforts in _GEMINI_EFFORTS
        ),
        never_thinks("gemini-[12].[05]*", "2026-08", _GEMINI_OPENAI),
    ),
    replay=(_replay("never", "2026-08", "ai.google.dev: optional; signatures travel with their calls"),),
    tier="verified",
    since="2026-08",
    source=_GEMINI_OPENAI,
)

# --- Gemini, as Interactions ------------------------------------------------------------------------------------------

_INTERACTIONS = "google-genai 3.3 types: thinking_level and thinking_summaries, no budget"
_AGENTS = "google-genai 3.3 types: agents are named in `agent`, and only interactions have that field"


def _by_interaction(rule: ModelRule) -> ModelRule:
    """The rule of a model in Interactions, which have levels and no budgets: nothing turns thinking off there."""
    if rule.ask_by != "thinking_budget":
        return rule
    return msgspec.structs.replace(
        rule,
        thinking="always",
        default="on",
        efforts=LOW_TO_HIGH,
        budget=None,
        refuses_zero_budget=False,
        ask_by="thinking_level",
        since="2026-11-18",
        source=f"{_INTERACTIONS}; unsure: the levels of models that generateContent gives a budget",
    )


_INTERACTIONS_ONLY: tuple[ModelRule, ...] = (
    *(
        ModelRule(
            models=models,
            thinking="always",
            kind="summary",
            efforts=(),
            endpoint="interactions",
            named_in="agent",
            tools="native",
            output_with_tools=False,
            since="2026-11-18",
            source=_AGENTS,
        )
        for models in ("deep-research-*", "antigravity-*")
    ),
    ModelRule(
        models="gemini-omni-*",
        efforts=(),
        endpoint="interactions",
        output_with_tools=False,
        since="2026-11-18",
        source="google-genai 3.3 types, and ai.google.dev interactions: new models outside the main family are there "
        "alone; unsure: this one, and whether it thinks",
    ),
)
_INTERACTIONS_MODELS = (*map(_by_interaction, GEMINI_MODELS), *_INTERACTIONS_ONLY)

_GEMINI_INTERACTIONS = ModelVariant(
    dialect="gemini_interactions",
    quirks=Quirks(tags=(), auth="x-goog-api-key", ask_by="thinking_level", path="/interactions", account_bound=True),
    models=_INTERACTIONS_MODELS,
    replay=(
        _replay("sealed", "2026-11-18", "recorded; a thought without a signature is refused (js-genai#1735, 2026-06)"),
    ),
    tier="verified",
    since="2026-11-18",
    source="google-genai 3.3 types; ai.google.dev gemini-api/docs/interactions; recorded",
)
# --- the exceptions of chat templates ---------------------------------------------------------------------------------

# vLLM, SGLang, llama.cpp and LM Studio pass them on. Qwen3.5 and later: "System message must be at the beginning."
# (nashsu/llm_wiki#45, 2026-04-21; joshuadavidthomas/opencode-agent-memory#11, 2026-04-07), "No user query found in
# messages." (vllm-project/vllm#36432, 2026-03-09). Gemma and other older models: roles must alternate.
_RAISING_QWENS = ("*qwen3.8*", "*qwen3.[5-9]*")
# "System role not supported": raise_exception in the templates of Gemma 1 and 2. That of Gemma 3 moves it itself.
_WITHOUT_SYSTEM = ("*gemma-[12]-*", "*gemma-1.1-*", "*gemma-[27]b*", "*gemma2*")
_TEMPLATE_RULES: tuple[tuple[str, ...], ...] = (
    ("system_first", "*qwen3.[5-9]*"),
    ("user_query", "*qwen3.[5-9]*"),
    ("template_alternation", *ALTERNATING_TEMPLATES),
    ("template_without_system", *_WITHOUT_SYSTEM),
)


def _with_templates(rules: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """The same models, with what their chat templates demand of messages."""
    demanding = (
        msgspec.structs.replace(rule, message_rules=("system_first", "user_query"))
        if rule.models in _RAISING_QWENS
        else rule
        for rule in rules
        if rule.models != "*"
    )
    alternating = (
        ModelRule(
            models=models,
            message_rules=("alternate", "system_first"),
            since="2025-12-05",
            source="suitenumerique/conversations#197; nextai-translator/raycast-openai-translator#34 for llama.cpp; "
            "SillyTavern/SillyTavern#4349 for LM Studio",
        )
        for models in ALTERNATING_TEMPLATES
    )
    without_system = (
        ModelRule(
            models=models,
            message_rules=("alternate", "system_first", "system_in_user"),
            since="2024-07-27",
            source="the chat template of google/gemma-2-9b-it",
        )
        for models in _WITHOUT_SYSTEM
    )
    return (*demanding, *without_system, *alternating, *(rule for rule in rules if rule.models == "*"))


# --- llama.cpp's server, on any machine -------------------------------------------------------------------------------

# With --reasoning-format deepseek-legacy the thinking arrives twice, in the field and in tags. The server announces
# keep-alive but closes a connection after a stream, often during the next request (measured on build 11549, 2026-11).
# So each request opens its own connection.
_LLAMACPP = Provider(
    name="llamacpp",
    also=(
        _responses(
            quirks=Quirks(raw_reasoning="shown", hides_truncation=True, output_with_tools=_SCHEMA_WITH_TOOLS),
            replay="tool_turns",
            tier="verified",
            source="recorded; it reads content[0].text of a reasoning item back (pydantic-ai profiles/openai.py)",
        ),
    ),
    title="llama.cpp",
    aliases=("llama-server",),
    base_url="http://localhost:8080/v1",
    base_url_env=("LLAMACPP_BASE_URL",),
    key_env=("LLAMACPP_API_KEY", "LLAMA_API_KEY"),
    key="optional",
    headers=(("Connection", "close"),),
    quirks=Quirks(
        ask_by="template_and_effort",
        enforces=("no_prefill", ("one_channel", "*gpt-oss*"), *_TEMPLATE_RULES),
        budget_in="reasoning_budget_tokens",
        output_with_tools=_SCHEMA_WITH_TOOLS,
        # With thinking turned off a last assistant message is continued (llama.cpp#15404, #22727; 2026-05).
        continues="final_message",
    ),
    models=(TINY_REASONER, *_with_templates(SELF_HOSTED_AUTO)),
    replay=(_replay("tool_turns", "2026-10", "llama.cpp tools/server/README.md; recorded"),),
    docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    tier="verified",
    since="2026-11",
)

# --- Bedrock, in its own dialect and in two others --------------------------------------------------------------------

_AWS_CARDS = "docs.aws.amazon.com bedrock userguide model cards, in litellm 1.108"


def _behind_maker(maker: str, rules: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """The rules under names that begin with a region and the maker: `us.xai.grok-4.6`."""
    return tuple(
        msgspec.structs.replace(
            rule, models=f"*{maker}.{rule.models}", since="2026-11-15", source=f"{rule.source}; {_AWS_CARDS}"
        )
        for rule in rules
    )


def _mantle(gpt: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """Mantle's models: those of OpenAI and xAI, then the open ones."""
    oss = gpt_oss("*gpt-oss*", "2026-08", "pydantic-ai models/bedrock_mantle.py; recorded")
    return extend_hosted(oss, *_behind_maker("openai", gpt), *_behind_maker("xai", GROK_MODELS))


_BEDROCK_AS_CHAT = ModelVariant(
    dialect="openai_chat",
    quirks=Quirks(tags=("reasoning", "think")),
    models=extend_hosted(
        gpt_oss("*gpt-oss*", "2026-08", "vercel/ai packages/amazon-bedrock; recorded"),
        *_behind_maker("xai", GROK_MODELS),
    ),
    replay=(_replay("never", "2026-08", "vercel/ai packages/amazon-bedrock: unsigned reasoning leaks"),),
    tier="verified",
    since="2026-08",
    source="recorded",
)

_BEDROCK_AS_MESSAGES = ModelVariant(
    dialect="anthropic",
    quirks=_messages(transport="bedrock_invoke", path=""),
    models=claude_models("*"),
    replay=CLAUDE_REPLAY,
    tier="verified",
    since="2026-08",
    source="recorded",
)

# --- Ollama, in its own dialect and in two others ---------------------------------------------------------------------

_OLLAMA = Quirks(
    ask_by="think",
    thinking_in=("thinking",),
    path="/api/chat",
    output_with_tools=_SCHEMA_WITH_TOOLS,
)

# In Ollama's library, these sizes are the models that always think. With `think: false` they think in the content,
# after a tag that their template opened (recorded: qwen3:4b).
_OLLAMA_MODELS = (
    *(
        never_thinks(models, "2026-11", "ollama.com/library: no capability `thinking`")
        for models in (
            *("llama[23]*", "codellama*", "mistral*", "mixtral*", "gemma", "gemma:*", "gemma[23]", "gemma[23]:*"),
            *("qwen2*", "phi3*", "phi4", "phi4:*", "starcoder*"),
        )
    ),
    *(
        ModelRule(
            models=f"*qwen3:{size}*",
            thinking="optional",
            default="on",
            efforts=(),
            tags=("think",),
            starts_inside="auto",
            thinks_though_off=True,
            since="2026-08",
            source="recorded; unsure: which sizes",
        )
        for size in ("4b", "30b", "235b")
    ),
    # We cannot see whether a template opened the tag, and a server that parses may have found no tag.
    *open_weights(opened="auto", hybrid="auto"),
)

_OLLAMA_REPLAY = (
    _replay(
        "tool_turns", "2026-08-21", "docs.ollama.com capabilities/thinking, tool-calling; recorded: it is accepted"
    ),
)

_OLLAMA_AS_CHAT = ModelVariant(
    dialect="openai_chat",
    quirks=Quirks(replay_field="reasoning", enforces=("levels_by_model",), output_with_tools=_SCHEMA_WITH_TOOLS),
    models=SELF_HOSTED,
    replay=(_replay("tool_turns", "2026-08-21", "ollama openai/openai.go; recorded"),),
    tier="verified",
    since="2026-08-21",
    source="ollama openai/openai.go; recorded",
)

_OLLAMA_AS_RESPONSES = _responses(
    quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS),
    models=SELF_HOSTED,
    replay="tool_turns",
    since="2026-08-21",
    source="ollama openai/responses.go: its encrypted_content is the thinking, plain",
)


# OpenAI and xAI send thinking in its own items, never in the text. Its encrypted content is valid in one organisation:
# "Encrypted content organization_id did not match the target organization" (openai/codex#13724, 2026-03-06), "Could not
# decrypt the provided encrypted_content" (xAI: sub2api#4535, 2026-07-18); at Azure in one resource (openai/codex#3573,
# 2025-09-14).
# prompt_cache_key: developers.openai.com guides/prompt-caching; docs.x.ai prompt-caching/best-practices, 2026-11-16.
# Items of reasoning go back without raw text: "Expected an array with maximum length 0" (2026).
_APART = Quirks(tags=(), encrypted_reasoning=True, account_bound=True, raw_items=False, cache_key=True)

# Settings of other makers' hosts: 400 "Unknown parameter: 'top_k'." (errors of the live service, 2024-10).
_FOREIGN_SAMPLING = ("top_k", "min_p", "repetition_penalty")

_OPENAI_RULES = (
    "known_fields",
    "reasoning_settings",
    *("filled_calls", "named_calls", "short_ids"),
    # The words for a temperature that is refused are older (langchain4j/langchain4j#2699, 2025-03-14).
    ("named_sampling", "o[0-9]*"),
    # 400 "does not support 'system' with this model" (recorded in pydantic-ai's test_openai cassettes, 2025).
    ("no_system_role", "o1-mini*", "o1-preview*"),
    # 400 "Web search options not supported with this model." (recorded there, 2025): only models named for search.
    ("no_web_search", "gpt-4o", "gpt-4o-20*", "gpt-4o-mini", "gpt-4o-mini-20*"),
)

_OPENAI_CHAT = Quirks(
    tags=(),
    output_limit="max_completion_tokens",
    cache_key=True,
    refused_fields=_FOREIGN_SAMPLING,
    enforces=_OPENAI_RULES,
    tool_call_ids="up_to_40",
    returns_refusals=True,
)

_OWN_RESPONSES = ("known_fields", "reasoning_settings", "item_forms", "paired_items")


def _enforce(rules: tuple[ModelRule, ...], *enforces: str) -> tuple[ModelRule, ...]:
    """The same models where other rule sets hold than for the host's own."""
    return tuple(msgspec.structs.replace(rule, enforces=enforces) for rule in rules)


_OPENAI_RESPONSES = _responses(
    models=GPT_RESPONSES_MODELS,
    # developers.openai.com api/docs/guides/compaction, 2026-11.
    quirks=msgspec.structs.replace(_APART, compacts=True, enforces=_OWN_RESPONSES),
    tier="verified",
    source=f"{_RESPONSES_GUIDE}: {_KEEP_ITEMS}",
)

# Data residency: us.api.openai.com, eu.api.openai.com (platform.openai.com/docs/guides/your-data, 2026-11).
_OPENAI_HOSTS = (".api.openai.com",)


def _routed(
    models: str,
    thinking: Literal["always", "optional"],
    *upstream: str,
    forced_tools: bool | Literal["required"] = True,
    empty_thinking: bool | None = None,
    tags: Tags | None = None,
) -> ModelRule:
    """A model behind a router that maps efforts, and the rule sets of its maker that reach the caller."""
    return ModelRule(
        models=models,
        thinking=thinking,
        default=None if forced_tools is True else "on",
        efforts=("minimal", *LOW_TO_MAX),
        budget=(1, None),
        forced_tools=forced_tools,
        empty_thinking=empty_thinking,
        enforces=("one_reasoning_spelling", *upstream),
        # Not every host of the router parses them.
        tags=tags or find_written_tags(models) or None,
        since="2026-06-25" if thinking == "optional" else "2026-07-25",
        source="openrouter.ai/docs/use-cases/reasoning-tokens"
        if thinking == "optional"
        else "/api/v1/models reasoning.mandatory; musistudio/claude-code-router#1215, 2026-02-15",
    )


_CLAUDE_UPSTREAM = ("signed_upstream", "block_pairs")
_OPENROUTER_MODELS = (
    *(_routed(f"openai/{name}", "always") for name in ("o[0-9]*", "gpt-5", "gpt-5-[!c]*", "gpt-oss*")),
    *(_routed(f"google/gemini-{name}*", "always") for name in ("2.5-pro", "[3-9]")),
    *(
        _routed(f"anthropic/claude-{name}*", "always", *_CLAUDE_UPSTREAM)
        for name in ("fable", "mythos", "opus-5.5", "sonnet-5.5")
    ),
    _routed("anthropic/claude*", "optional", *_CLAUDE_UPSTREAM),
    _routed("deepseek/deepseek-r1*", "always"),
    # Turns with calls need their thinking (endolith/open-interpreter#215, 2026-08-20); unsure: an empty text for a
    # thought that is gone, which the maker's own host takes.
    *(
        _routed(f"deepseek/deepseek-{name}*", "optional", "tool_turns_upstream", empty_thinking=True)
        for name in ("v[4-9]", "flash")
    ),
    _routed("moonshotai/kimi-k2-thinking*", "always"),
    # Forced tools: AstrBotDevs/AstrBot#7805, 2026-04-25; UKGovernmentBEIS/inspect_ai#5152, 2026-08-31.
    *(
        _routed(f"moonshotai/kimi-{name}*", "always", "forced_tools_upstream", forced_tools="required")
        for name in ("k3", "k[4-9]")
    ),
    _routed("moonshotai/kimi-k2.[5-9]*", "optional", "forced_tools_upstream", forced_tools=False),
    _routed("minimax/minimax-m2*", "always", "numbered_pairs"),
    *(_routed(f"minimax/minimax{name}*", "optional", "numbered_pairs") for name in ("-m3", "")),
    _routed("z-ai/glm-5.3*", "always", "one_pair_error"),
    _routed("z-ai/glm*", "optional", "one_pair_error"),
    *(_routed(models, "optional", tags=tags) for models, tags in OWN_GRAMMARS.items()),
    _routed("*", "optional"),
)


# `tools` takes at most 128 functions (2026-11, https://platform.openai.com/docs/api-reference/chat/create).
_OPENAI_MAX_TOOLS = 128

PROVIDERS: tuple[Provider, ...] = (
    # ── the plain rows ────────────────────────────────────────────────────────────────────────────────────────────────
    Provider(
        name="openai",
        max_tools=_OPENAI_MAX_TOOLS,
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        base_url_env=("OPENAI_BASE_URL",),
        own_hosts=_OPENAI_HOSTS,
        key_env=("OPENAI_API_KEY",),
        quirks=_OPENAI_CHAT,
        models=GPT_MODELS,
        also=(_OPENAI_RESPONSES,),
        chooses=True,
        prices="openai",
        docs="https://platform.openai.com/docs/guides/reasoning",
        tier="verified",
        since="2026-11",
    ),
    # The same host with a fixed endpoint.
    Provider(
        name="openai-responses",
        max_tools=_OPENAI_MAX_TOOLS,
        title="OpenAI (Responses)",
        host="openai",
        dialect="openai_responses",
        base_url="https://api.openai.com/v1",
        base_url_env=("OPENAI_BASE_URL",),
        own_hosts=_OPENAI_HOSTS,
        key_env=("OPENAI_API_KEY",),
        quirks=_OPENAI_RESPONSES.quirks,
        models=GPT_RESPONSES_MODELS,
        replay=_OPENAI_RESPONSES.replay,
        also=(ModelVariant(dialect="openai_chat", quirks=_OPENAI_CHAT, models=GPT_MODELS),),
        prices="openai",
        docs="https://platform.openai.com/docs/api-reference/responses",
        tier="verified",
        since="2026-11",
    ),
    Provider(
        name="openai-chat",
        max_tools=_OPENAI_MAX_TOOLS,
        title="OpenAI (chat completions)",
        host="openai",
        base_url="https://api.openai.com/v1",
        base_url_env=("OPENAI_BASE_URL",),
        own_hosts=_OPENAI_HOSTS,
        key_env=("OPENAI_API_KEY",),
        quirks=_OPENAI_CHAT,
        models=GPT_MODELS,
        prices="openai",
        docs="https://platform.openai.com/docs/api-reference/chat",
        tier="verified",
        since="2026-11",
    ),
    # Reads every field and every tag, since any server may answer. Has its own key: OpenAI's goes to no other host.
    Provider(
        name="openai-compatible",
        title="An OpenAI-compatible server",
        base_url_env=("OPENAI_COMPATIBLE_BASE_URL",),
        key_env=("OPENAI_COMPATIBLE_API_KEY",),
        key="optional",
        # Any host may be there, so the caller's word for a tool choice stays.
        quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS, any_tool=True),
        models=(TINY_REASONER, *SELF_HOSTED_AUTO),
        replay=(_replay("tool_turns", "2026-08", _SAME_FIELD),),
        also=(
            _responses(
                quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS),
                source="thinking is sent back only to the server that made it",
            ),
        ),
        docs="https://platform.openai.com/docs/api-reference/chat",
        since="2026-11",
    ),
    # The model is the name of a deployment; family= names the real model. Also serves DeepSeek, with a field or tags.
    Provider(
        name="azure",
        max_tools=_OPENAI_MAX_TOOLS,
        title="Azure OpenAI",
        aliases=("azure-openai",),
        base_url_env=("AZURE_OPENAI_ENDPOINT",),
        addressing="azure",
        own_hosts=(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        # A key, or a token of Azure AD under the name that Microsoft's own client reads.
        key_env=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        cloud="azure-ad",
        query=(("api-version", "$OPENAI_API_VERSION"),),
        quirks=Quirks(
            enforces=_OPENAI_RULES,
            tool_call_ids="up_to_40",
            returns_refusals=True,
            refused_fields=_FOREIGN_SAMPLING,
            auth="api-key",
            output_limit="max_completion_tokens",
            tags=("think",),
        ),
        # "Unrecognized request argument supplied: reasoning_effort" is known of OpenAI's models alone
        # (avante-corp/avante.nvim#1359, 2025-02-22; generative-computing/mellea#270, 2025-12-24).
        models=(*at_azure(GPT_MODELS), *_enforce(HOSTED, "known_fields")),
        replay=(
            _replay("never", "2025-01", "api-docs.deepseek.com/guides/reasoning_model", "*deepseek-r1*"),
            _replay("tool_turns", "2026-08", "learn.microsoft.com use-chat-reasoning", "*deepseek-v*"),
        ),
        also=(
            _responses(
                # Messages that change the effort are documented at OpenAI alone.
                models=(
                    *(msgspec.structs.replace(rule, effort_updates=None) for rule in at_azure(GPT_RESPONSES_MODELS)),
                    *_enforce(HOSTED, "known_fields", "item_forms", "paired_items"),
                ),
                quirks=Quirks(
                    tags=(),
                    auth="api-key",
                    encrypted_reasoning=True,
                    account_bound=True,
                    enforces=_OWN_RESPONSES,
                ),
                tier="verified",
                source=f"learn.microsoft.com azure/ai-foundry/openai/how-to/responses: {_KEEP_ITEMS}",
            ),
        ),
        chooses=True,
        prices="azure",
        docs="https://learn.microsoft.com/azure/ai-foundry/openai/reference",
        tier="verified",
        since="2026-11",
    ),
    # ── makers of models ──────────────────────────────────────────────────────────────────────────────────────────────
    Provider(
        name="deepseek",
        also=(
            _responses(
                quirks=Quirks(
                    tags=(),
                    raw_reasoning="shown",
                    call_order="grouped",
                    # "The `reasoning_text` in the thinking mode must be passed back" (rikkahub/rikkahub#1690,
                    # 2026-08-11).
                    empty_thinking=True,
                    enforces=("known_fields", "reasoning_text"),
                ),
                tier="verified",
                source="recorded; calls must not be interleaved (pydantic-ai providers/deepseek.py)",
            ),
        ),
        title="DeepSeek",
        base_url="https://api.deepseek.com",
        base_url_env=("DEEPSEEK_BASE_URL",),
        key_env=("DEEPSEEK_API_KEY",),
        # Pictures: 400 "unknown variant `image_url`" (vercel/ai#9179, 2026-07; rikkahub/rikkahub#1433, 2026-07).
        quirks=Quirks(
            enforces=(
                "no_developer",
                ("thinking_refused", "*deepseek-r1*"),
                ("loop_thinking", "*deepseek-v3.[2-9]*"),
                ("turn_thinking", "*deepseek-v[4-9]*", "*deepseek-flash*"),
                # Names that meant several generations.
                ("dated_thinking", "*deepseek-reasoner", "*deepseek-chat"),
                ("alternation_of_2025", "*deepseek-reasoner", "*deepseek-r1"),
                ("pictures_since_2026_11", "*deepseek-v4-flash*", "*deepseek-flash*"),
                "unforced_while_thinking",
                "text_content",
            ),
            tags=(),
            ask_by="thinking_toggle_and_effort",
            empty_thinking=True,
            replay_field="reasoning_content",
            # api-docs.deepseek.com/zh-cn/guides/reasoning_model, 2025-01.
            refuses_thinking=("deepseek-r1*",),
            structured_output="json_object",
            pictures=False,
            # Content is text (and pictures, for one model): api-docs.deepseek.com api/create-chat-completion, 2026-11.
            refuses_files=("audio", "video", "pdf"),
            # `reasoning_content` of the last message, beside `prefix`: api-docs.deepseek.com
            # api/create-chat-completion, guides/chat_prefix_completion, 2026-11.
            continues="prefix",
        ),
        models=DEEPSEEK_MODELS,
        replay=(
            # R1 answered 400 to any reasoning_content. It had no tools, so `tool_turns` below sends it none either.
            _replay("never", "2025-01", "api-docs.deepseek.com/zh-cn/guides/reasoning_model", "deepseek-r1*"),
            _replay("tool_turns", "2025-12", f"{DEEPSEEK_GUIDE} (V3.2); recorded", "deepseek-reasoner*"),
            _replay("tool_turns", "2026-04-24", f"{DEEPSEEK_GUIDE}; recorded"),
        ),
        prices="deepseek",
        docs="https://api-docs.deepseek.com/guides/thinking_mode",
        tier="verified",
        since="2026-11",
    ),
    # A key is for .ai or for .cn. For keys of .cn set MOONSHOT_BASE_URL=https://api.moonshot.cn/v1.
    Provider(
        name="moonshot",
        title="Moonshot AI",
        aliases=("moonshotai",),
        base_url="https://api.moonshot.ai/v1",
        base_url_env=("MOONSHOT_BASE_URL",),
        own_hosts=("api.moonshot.cn",),
        key_env=("MOONSHOT_API_KEY", "MOONSHOTAI_API_KEY"),
        quirks=Quirks(
            enforces=("tool_turn_thinking", "switch_and_sampling", "filled_messages"),
            tags=(),
            ask_by="thinking_toggle",
            output_limit="max_completion_tokens",
            # "thinking is enabled but reasoning_content is missing in assistant tool call message"
            # (MoonshotAI/kimi-agent-sdk#169, 2026-04-23).
            empty_thinking=".",
            # A turn with tool calls omits empty content: MoonshotAI/kimi-cli kosong/chat_provider/kimi.py, 2026-07.
            blank_content=False,
            replay_field="reasoning_content",
            structured_output="json_object",
        ),
        models=KIMI_MODELS,
        replay=(
            _replay("never", "2026-08", KIMI, "moonshot-v1*"),
            # Earlier turns without calls go back only with `thinking.keep`, which nothing here asks for.
            _replay("tool_turns", "2026-11-15", "unsure: kimi-cli kosong; java.agentscope.io kimi", "kimi-k3*"),
            _replay("tool_turns", "2026-08", "MoonshotAI/kimi-cli kosong/chat_provider/kimi.py"),
        ),
        prices="moonshotai",
        docs="https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model",
        since="2026-11",
    ),
    # Most models think only in streams. For keys of mainland China set
    # DASHSCOPE_BASE_URL=https://dashscope.aliyuncs.com/compatible-mode/v1.
    Provider(
        name="qwen",
        title="Qwen (Alibaba Cloud Model Studio)",
        aliases=("alibaba", "dashscope"),
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        base_url_env=("DASHSCOPE_BASE_URL",),
        own_hosts=("dashscope.aliyuncs.com", "dashscope-us.aliyuncs.com"),
        key_env=("DASHSCOPE_API_KEY", "ALIBABA_API_KEY"),
        # Models refused JSON while they think (presenton/presenton#184, 2025-08). Newer ones accept it, but their
        # answer then contradicts their thinking (QwenLM/Qwen#2329, 2026-09-02).
        quirks=Quirks(
            enforces=("thinking_switch", "filled_calls"),
            tags=(),
            ask_by="enable_thinking",
            structured_output="json_object",
            output_while_thinking=False,
        ),
        models=QWEN_MODELS,
        replay=(
            _replay("never", "2025-01", "api-docs.deepseek.com/zh-cn/guides/reasoning_model", "*deepseek-r1*"),
            # Other models ignore preserve_thinking, and take their thinking back beside the results of their calls.
            _replay("all", "2026-09-16", QWEN_PRESERVES, "qwen3.[6-9]*"),
            _replay("tool_turns", "2026-09-16", "vercel/ai#20871: docs.qwencloud.com thinking, function calling"),
        ),
        docs="https://www.alibabacloud.com/help/en/model-studio/deep-thinking",
        tier="verified",
        since="2026-11-15",
    ),
    # For keys of mainland China set ZAI_BASE_URL=https://open.bigmodel.cn/api/paas/v4.
    Provider(
        name="zai",
        title="Z.ai",
        aliases=("zhipu", "zhipuai", "glm", "bigmodel"),
        base_url="https://api.z.ai/api/paas/v4",
        base_url_env=("ZAI_BASE_URL",),
        own_hosts=("open.bigmodel.cn",),
        key_env=("ZAI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY"),
        quirks=Quirks(
            enforces=("not_disabled", "one_pair_error", "asked"),
            message_rules=("user_query",),
            tags=(),
            ask_by="thinking_toggle",
            structured_output="json_object",
        ),
        models=GLM_MODELS,
        # Required in a tool loop. Of earlier turns, the host drops it unless clear_thinking is false; it stays in the
        # request, so that the request begins as the one before it.
        replay=(_replay("tool_turns", "2026-11", "docs.z.ai thinking-mode: explicitly preserved with the results"),),
        prices="zai",
        docs="https://docs.z.ai/guides/capabilities/thinking-mode",
        tier="verified",
        since="2026-11-15",
    ),
    # By default the subscription's address uses earlier thinking, so all of it goes back, in order.
    Provider(
        name="zai-coding",
        title="Z.ai coding plan",
        aliases=("glm-coding",),
        base_url="https://api.z.ai/api/coding/paas/v4",
        key_env=("ZAI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY"),
        quirks=Quirks(
            enforces=("not_disabled", "one_pair_error", "asked"),
            message_rules=("user_query",),
            tags=(),
            ask_by="thinking_toggle",
            structured_output="json_object",
        ),
        models=GLM_MODELS,
        replay=(_replay("all", "2026-08", "docs.z.ai thinking-mode: clear_thinking is false here"),),
        docs="https://docs.z.ai/guides/capabilities/thinking-mode",
        tier="verified",
        since="2026-11-15",
    ),
    # By default it writes <think> into the content; with reasoning_split thinking comes separately, as snapshots. The
    # whole turn must go back. For keys of mainland China set MINIMAX_BASE_URL=https://api.minimaxi.com/v1.
    Provider(
        name="minimax",
        title="MiniMax",
        base_url="https://api.minimax.io/v1",
        base_url_env=("MINIMAX_BASE_URL",),
        own_hosts=("api.minimaxi.com",),
        key_env=("MINIMAX_API_KEY",),
        quirks=Quirks(
            # "chat content has invalid message role: system" (BigPizzaV3/CodexPlusPlus#267, 2026-05-23); "chat content
            # is empty (2013)" for a tool that returned nothing and a turn without text (reports to 2026-09); "invalid
            # function arguments json string" (earendil-works/pi#5468, 2026-04-18).
            message_rules=("system_first", "filled", "object_arguments"),
            enforces=(
                ("switch_values", "*minimax-m3*"),
                *("leading_system", "json_arguments", "numbered_pairs", "filled_chat", "named_calls"),
            ),
            ask_by="thinking_toggle",
            toggle_on="adaptive",
            tags=("think", "mm"),
            snapshots=True,
            output_limit="max_completion_tokens",
            replay_as="details",
            fields=(("reasoning_split", True),),
        ),
        models=MINIMAX_MODELS,
        replay=(_replay("all", "2026-08", f"{MINIMAX}: the whole message must be kept"),),
        prices="minimax",
        docs="https://platform.minimax.io/docs/api-reference/text-openai-api",
        since="2026-11-15",
    ),
    Provider(
        name="xai",
        title="xAI",
        aliases=("grok",),
        base_url="https://api.x.ai/v1",
        key_env=("XAI_API_KEY",),
        quirks=Quirks(
            tags=(),
            output_limit="max_completion_tokens",
            output_excludes_thinking=True,
            enforces=("listed_efforts", "content_elements"),
        ),
        models=GROK_MODELS,
        replay=(_replay("never", "2026-08", "docs.x.ai: state goes back through the Responses API only"),),
        also=(
            _responses(
                models=tuple(
                    msgspec.structs.replace(rule, kind="summary") if rule.thinking != "never" else rule
                    for rule in GROK_MODELS
                ),
                quirks=msgspec.structs.replace(_APART, enforces=("known_fields", "listed_efforts", "content_elements")),
                tier="verified",
                source="docs.x.ai guides/reasoning: encrypted_content goes back on every turn",
            ),
        ),
        chooses=True,
        prices="x-ai",
        docs="https://docs.x.ai/docs/guides/reasoning",
        tier="verified",
        since="2026-11",
    ),
    # Always sends usage, and answers 422 to stream_options and max_completion_tokens (openai-agents-python#442,
    # avante.nvim#2347, eca#231; last report 2025-12). Refuses a user message after a tool result, code 3230
    # (avante.nvim#2695, litellm#17761, hermes-agent#20154; 2026-05).
    Provider(
        name="mistral",
        title="Mistral AI",
        base_url="https://api.mistral.ai/v1",
        key_env=("MISTRAL_API_KEY",),
        quirks=Quirks(
            enforces=("reasoning_modes", "strict_order", "strict_messages"),
            ask_by="prompt_mode",
            tags=("think", "[think]"),
            stream_usage=False,
            replay_as="content_list",
            # 422 extra_forbidden (reports through litellm, 2026).
            message_fields=("role", "content", "tool_calls", "prefix"),
            tool_call_ids="nine_alphanumerics",
            any_tool=True,  # mistralai 3.7 client/models/toolchoiceenum.py, 2026-11-18
            # 400, code 3051: "Cannot use json response type with tools" (draive#39, workflowai, 2026).
            output_with_tools=False,
            after_results="assistant",
        ),
        models=MISTRAL_MODELS,
        also=(
            _responses(
                quirks=Quirks(tags=(), encrypted_reasoning=False),
                replay="never",
                since="2026-11-18",
                source="mistralai 3.7 client/responses.py: its path; unsure: whether its reasoning goes back",
            ),
        ),
        replay=(_replay("all", "2026-06-30", f"{MISTRAL}: leaving it out degrades answers"),),
        prices="mistral",
        docs="https://docs.mistral.ai/capabilities/reasoning",
        tier="verified",
        since="2026-11-15",
    ),
    # ── hosts of open models ──────────────────────────────────────────────────────────────────────────────────────────
    # Models without reasoning_format answer it with 400 (0xPlaygrounds/rig#1134); gpt-oss sends thinking separately
    # without it. The host refuses reasoning_content in the history (req_llm#772); its own field is `reasoning`.
    Provider(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_env=("GROQ_API_KEY",),
        # "json mode cannot be combined with tool/function calling", 400 (vercel/ai#16540, 2026-07-01).
        # server_tools: console.groq.com/docs/tool-use/built-in-tools, 2026-11.
        quirks=Quirks(
            enforces=("reasoning_field", "efforts_by_model"),
            tags=("think",),
            replay_field="reasoning",
            # 400: "reasoning is not supported with this model" (2026-06, with Qwen3 32B).
            refuses_thinking=("*qwen[!3]*", "*qwen3[!.]*", "*deepseek*", "*llama*", "*kimi*"),
            refused_fields=(
                "top_k",
            ),  # "property 'top_k' is unsupported" (musistudio/claude-code-router#1204, 2026-02)
            output_with_tools=False,
            server_tools=("browser_search", "code_interpreter"),
        ),
        models=(
            gpt_oss("*gpt-oss*", "2026-07-14", _GROQ),
            never_thinks("*qwen3*instruct*", "2026-08", _GROQ),
            # Takes the efforts none and default, so a request for "on" sends no effort.
            ModelRule(
                models="*qwen3*",
                thinking="optional",
                default="on",
                efforts=(),
                fields=_GROQ_APART,
                structured_output="json_object",
                since="2026-08",
                source=f"{_GROQ}; {_GROQ_SCHEMAS}",
            ),
            ModelRule(
                models="*deepseek-r1*",
                thinking="always",
                default="on",
                efforts=(),
                fields=_GROQ_APART,
                structured_output="json_object",
                since="2025-10",
                source=f"{_GROQ}; {_GROQ_SCHEMAS}; recorded",
            ),
            never_thinks("*llama-4*", "2026-08", _GROQ),
            ModelRule(
                models="*llama*",
                thinking="never",
                efforts=(),
                structured_output="json_object",
                since="2026-08",
                source=f"{_GROQ}; {_GROQ_SCHEMAS}",
            ),
            never_thinks("*kimi-k2-instruct*", "2026-08", _GROQ),
        ),
        replay=(
            _replay("tool_turns", "2026-06-15", "agentjido/req_llm#772; tensorzero#6353", "*gpt-oss*"),
            _replay(
                "tool_turns",
                "2026-11",
                "unsure: groq/groq-changelog#8, where assistant messages of Qwen3 take reasoning; not measured",
                "*qwen3.[6-9]*",
            ),
            _replay("never", "2026-08", f"{_GROQ}: not required"),
        ),
        prices="groq",
        docs="https://console.groq.com/docs/reasoning",
        tier="verified",
        since="2026-11",
    ),
    Provider(
        name="cerebras",
        title="Cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_env=("CEREBRAS_API_KEY",),
        quirks=Quirks(
            refused_fields=("top_k",),
            enforces=("assistant_fields", "own_efforts"),
            tags=("think",),
            replay_field="reasoning",
        ),
        models=(
            ModelRule(
                models="gpt-oss*",
                thinking="always",
                default="on",
                efforts=LOW_TO_HIGH,
                off_as_effort=False,
                forbids=_CEREBRAS_FORBIDS,
                since="2026-08",
                source=_CEREBRAS,
            ),
            # Takes its thinking back as text in tags, and drops it unless a field says otherwise.
            ModelRule(
                models="*glm*",
                thinking="optional",
                default="on",
                efforts=(),
                forbids=_CEREBRAS_FORBIDS,
                replay_as="tags",
                fields=(("clear_thinking", False),),
                since="2026-08",
                source=_CEREBRAS,
            ),
            ModelRule(
                models="qwen-3*thinking*",
                thinking="always",
                default="on",
                efforts=(),
                forbids=_CEREBRAS_FORBIDS,
                since="2026-01",
                source="recorded",
            ),
            ModelRule(
                models="gemma-4*",
                thinking="optional",
                efforts=(),
                forbids=_CEREBRAS_FORBIDS,
                since="2026-11-15",
                source="unsure: litellm 1.108 alone: it thinks; how to ask is not known",
            ),
            never_thinks("qwen-3*instruct*", "2026-08", "unsure: from memory"),
            never_thinks("qwen-3-coder*", "2026-08", "unsure: from memory"),
            ModelRule(
                models="qwen-3*",
                thinking="optional",
                default="on",
                efforts=(),
                forbids=_CEREBRAS_FORBIDS,
                since="2026-11-15",
                source="unsure: litellm 1.108 alone: it thinks; how to ask is not known",
            ),
            never_thinks("llama*", "2026-08", "unsure: from memory"),
        ),
        replay=(
            # clear_thinking is false here: the model expects all of it back.
            _replay("all", "2026-11", f"{_CEREBRAS}; docs.z.ai thinking-mode: complete, in order", "*glm*"),
            _replay("tool_turns", "2026-08", _CEREBRAS, "gpt-oss*"),
        ),
        prices="cerebras",
        docs="https://inference-docs.cerebras.ai/capabilities/reasoning",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="together",
        title="Together AI",
        base_url="https://api.together.xyz/v1",
        key_env=("TOGETHER_API_KEY",),
        quirks=Quirks(tags=("think",), replay_field="reasoning"),
        models=extend_hosted(
            gpt_oss("*gpt-oss*", "2026-08", _TOGETHER),
            _together("*deepseek-v3.1*", "off"),
            _together("*qwen3.5*", "on"),
            _together("*kimi-k2.5*", "on"),
            _together("*glm-5", "on"),
            never_thinks("meta-llama/*", "2026-08", "unsure: not among its reasoning models"),
        ),
        replay=(_replay("tool_turns", "2026-08", f"{_TOGETHER}: the same field"),),
        prices="together",
        docs="https://docs.together.ai/docs/reasoning-overview",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="fireworks",
        title="Fireworks AI",
        base_url="https://api.fireworks.ai/inference/v1",
        key_env=("FIREWORKS_API_KEY",),
        quirks=Quirks(enforces=("one_switch",), tags=("think",)),
        models=_fireworks(
            extend_hosted(
                gpt_oss("*gpt-oss*", "2026-08", _FIREWORKS),
                ModelRule(
                    models="*deepseek-v4*",
                    thinking="optional",
                    default="on",
                    efforts=LOW_TO_XHIGH,
                    since="2026-08",
                    source=_FIREWORKS,
                ),
                # `none` and a disabled toggle answer 400.
                ModelRule(
                    models="*glm-5.3*",
                    thinking="always",
                    default="on",
                    efforts=("low", "high", "max"),
                    off_as_effort=False,
                    since="2026-11-15",
                    source="models.dev fireworks-ai glm-5p3, measured 2026-09-04",
                ),
                ModelRule(
                    models="*glm-5*",
                    thinking="optional",
                    default="on",
                    efforts=("high", "max"),
                    since="2026-08",
                    source=_FIREWORKS,
                ),
            )
        ),
        replay=(_replay("tool_turns", "2026-08", f"{_FIREWORKS}: the same field"),),
        prices="fireworks",
        docs="https://docs.fireworks.ai/guides/reasoning",
        since="2026-11-15",
    ),
    Provider(
        name="deepinfra",
        title="DeepInfra",
        base_url="https://api.deepinfra.com/v1/openai",
        key_env=("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
        # Its output count includes thinking for some models only; its total shows which.
        quirks=Quirks(tags=("think",)),
        models=extend_hosted(
            *(_resold(models, "always") for models in ("*/gemini-3*", "*/gemini-2.5-pro*", "*/claude-fable*")),
            *(_resold(models, "always") for models in ("*/inkling*", "*/muse-*")),
            _resold("*/mimo-*-pro*", "optional", pictures=False),
            *(
                _resold(models, "optional")
                for models in ("*/gemini-2.5-flash*", "*/claude-*", "*/mimo-*", "*/seed-[12]*")
            ),
            *(_resold(models, "optional", pictures=False) for models in ("*/ling-3*", "*/hy3*")),
        ),
        replay=(_replay("tool_turns", "2026-08", f"unsure: {_SAME_FIELD}"),),
        docs="https://deepinfra.com/docs/openai_api",
        since="2026-11-15",
    ),
    Provider(
        name="sambanova",
        title="SambaNova",
        base_url="https://api.sambanova.ai/v1",
        key_env=("SAMBANOVA_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_OSS_IN_LOOPS, _replay("never", "2026-08", "docs.sambanova.ai names no field for it")),
        docs="https://docs.sambanova.ai/docs/en/build/reasoning",
        since="2026-11-15",
    ),
    # The system prompt switches older Nemotron models: write "detailed thinking on" or /no_think there.
    Provider(
        name="nvidia",
        title="NVIDIA NIM",
        aliases=("nim",),
        base_url="https://integrate.api.nvidia.com/v1",
        key_env=("NVIDIA_API_KEY",),
        quirks=Quirks(ask_by="template", budget_in="reasoning_budget", tags=("think",)),
        models=extend_hosted(never_thinks("meta/*", "2026-08", "unsure: from memory")),
        replay=(_replay("tool_turns", "2026-08", f"unsure: {_SAME_FIELD}"),),
        docs="https://docs.nvidia.com/nim/large-language-models/latest/reasoning-model.html",
        tier="verified",
        since="2026-11-15",
    ),
    # A router: the field, the tags and the accepted settings are those of the host that it chooses.
    Provider(
        name="huggingface",
        also=(
            _responses(
                quirks=Quirks(raw_reasoning="shown"),
                replay="tool_turns",
                source="vercel/ai packages/huggingface; unsure: what goes back",
            ),
        ),
        title="Hugging Face",
        aliases=("hf",),
        base_url="https://router.huggingface.co/v1",
        key_env=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        quirks=Quirks(replay_field="reasoning"),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", f"unsure: {_SAME_FIELD}"),),
        docs="https://huggingface.co/docs/inference-providers",
        tier="verified",
        since="2026-11-15",
    ),
    # A router: maps efforts to those of the model. No inline thinking was seen, but a host that it chooses may inline.
    Provider(
        name="openrouter",
        also=(
            _responses(
                quirks=Quirks(tags=("think",), encrypted_reasoning=True, raw_reasoning="alone"), tier="verified"
            ),
        ),
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_env=("OPENROUTER_API_KEY",),
        # cache_control: openrouter.ai/docs, prompt caching, 2026-11. It and server_tools: OpenRouterTeam/python-sdk
        # components/chatfunctiontool.py, 2026-11.
        quirks=Quirks(
            enforces=("one_reasoning_spelling",),
            ask_by="reasoning_object",
            tags=("think",),
            replay_as="details",
            replay_field="reasoning",
            cache_control=True,
            server_tools=(
                "openrouter:",
                "web_search",
                "web_search_preview",
                "web_search_preview_2025_03_11",
                "web_search_2025_08_26",
            ),
        ),
        models=_OPENROUTER_MODELS,
        replay=(*_SEALED_AT_GATEWAYS, _replay("all", "2026-06-25", "OpenRouterTeam/ai-sdk-provider; recorded")),
        prices="openrouter",
        docs="https://openrouter.ai/docs/use-cases/reasoning-tokens",
        tier="verified",
        since="2026-08-20",
    ),
    Provider(
        name="perplexity",
        title="Perplexity",
        base_url="https://api.perplexity.ai",
        key_env=("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
        quirks=Quirks(
            tags=("think",),
            message_rules=("alternate", "system_first"),
            enforces=("alternating_users", "leading_system"),
        ),
        models=(
            *(
                ModelRule(
                    models=models,
                    thinking="always",
                    default="on",
                    efforts=("minimal", *LOW_TO_HIGH),
                    off_as_effort=False,
                    tools=False,
                    since="2026-08",
                    source=_PERPLEXITY,
                )
                for models in ("sonar-reasoning*", "sonar-deep-research*")
            ),
            ModelRule(models="sonar*", thinking="never", efforts=(), tools=False, since="2026-08", source=_PERPLEXITY),
        ),
        replay=(_replay("never", "2026-08", "langchain_perplexity output parsers: stripped"),),
        prices="perplexity",
        docs="https://docs.perplexity.ai",
        tier="verified",
        since="2026-08",
    ),
    # The plan before calls (`tool_plan`) is neither answer nor thinking here.
    Provider(
        name="cohere",
        title="Cohere",
        dialect="cohere",
        base_url="https://api.cohere.com/v2",
        base_url_env=("CO_API_URL",),
        key_env=("COHERE_API_KEY", "CO_API_KEY"),
        # response_format is "not supported when used in combinations with the documents or tools parameters"
        # (docs.cohere.com reference/chat, 2026-08).
        quirks=Quirks(
            tags=(), ask_by="thinking_toggle", budget_in="thinking.token_budget", path="/chat", output_with_tools=False
        ),
        models=COMMAND_MODELS,
        replay=(
            _replay(
                "tool_turns",
                "2026-08",
                "cohere-python types/assistant_message_v2content_item: thinking is accepted; unsure: earlier turns",
            ),
        ),
        prices="cohere",
        docs="https://docs.cohere.com/docs/reasoning",
        tier="verified",
        since="2026-08",
    ),
    # ── the user's own servers ────────────────────────────────────────────────────────────────────────────────────────
    # Without --reasoning-parser the tags stay in the content.
    Provider(
        name="vllm",
        also=(
            _responses(
                quirks=Quirks(raw_reasoning="shown", output_with_tools=_SCHEMA_WITH_TOOLS),
                replay="tool_turns",
                tier="verified",
            ),
        ),
        title="vLLM",
        base_url="http://localhost:8000/v1",
        base_url_env=("VLLM_BASE_URL",),
        key_env=("VLLM_API_KEY",),
        key="optional",
        quirks=Quirks(
            enforces=(
                *_TEMPLATE_RULES,
                ("template_efforts", "*qwen3.8*"),
                "continued_message",
            ),
            ask_by="template_and_effort",
            budget_in="thinking_token_budget",
            replay_field="reasoning",
            output_with_tools=_SCHEMA_WITH_TOOLS,
            continues="final_message",  # vllm entrypoints/openai/chat_completion/protocol.py, 2026-08
        ),
        models=(TINY_REASONER, *_with_templates(SELF_HOSTED)),
        replay=(_replay("tool_turns", "2026-08-22", "vllm entrypoints/openai/chat_completion/protocol.py"),),
        docs="https://docs.vllm.ai/en/latest/features/reasoning_outputs.html",
        tier="verified",
        since="2026-11",
    ),
    Provider(
        name="sglang",
        title="SGLang",
        base_url="http://localhost:30000/v1",
        base_url_env=("SGLANG_BASE_URL",),
        key_env=("SGLANG_API_KEY",),
        key="optional",
        quirks=Quirks(
            ask_by="template_and_effort",
            output_with_tools=_SCHEMA_WITH_TOOLS,
            continues="final_message",  # sglang srt/entrypoints/openai/protocol.py, 2026-08
            enforces=_TEMPLATE_RULES,
        ),
        models=_with_templates(SELF_HOSTED),
        replay=(_replay("tool_turns", "2026-08-22", "sglang srt/entrypoints/openai/protocol.py"),),
        docs="https://docs.sglang.ai/advanced_features/separate_reasoning.html",
        since="2026-11-15",
    ),
    _LLAMACPP,
    # The same server, from the xllamacpp wheel, started by the first request. `local:tiny` is the model that comes with
    # asides; any other name is the path of a GGUF file.
    msgspec.structs.replace(
        _LLAMACPP,
        name="local",
        title="a model on this machine",
        aliases=(),
        base_url=f"{LAUNCH_URL}/v1",
        base_url_env=(),
        key_env=(),
        launcher="asides.local:launch",
        models=(msgspec.structs.replace(TINY_REASONER, models="tiny", default_max_tokens=1024), *_LLAMACPP.models),
        docs="https://github.com/xorbitsai/xllamacpp",
    ),
    Provider(
        name="lmstudio",
        also=(
            _responses(
                quirks=Quirks(raw_reasoning="shown", output_with_tools=_SCHEMA_WITH_TOOLS),
                replay="tool_turns",
                tier="verified",
            ),
        ),
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        base_url_env=("LMSTUDIO_BASE_URL", "LM_STUDIO_BASE_URL"),
        key_env=("LMSTUDIO_API_KEY", "LM_STUDIO_API_KEY"),
        key="optional",
        quirks=Quirks(enforces=_TEMPLATE_RULES, output_with_tools=_SCHEMA_WITH_TOOLS),
        models=_with_templates(SELF_HOSTED),
        replay=(_OSS_IN_LOOPS, _replay("never", "2026-08", "unsure: no document says that it is read")),
        docs="https://lmstudio.ai/docs/developer/openai-compat",
        since="2026-11-15",
    ),
    # Its own endpoint. Thinks by default.
    Provider(
        name="ollama",
        title="Ollama",
        dialect="ollama",
        aliases=("ollama-native",),
        base_url="http://localhost:11434",
        base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        key_env=("OLLAMA_API_KEY",),
        key="optional",
        quirks=_OLLAMA,
        models=_OLLAMA_MODELS,
        replay=_OLLAMA_REPLAY,
        also=(_OLLAMA_AS_CHAT, _OLLAMA_AS_RESPONSES),
        docs="https://docs.ollama.com/capabilities/thinking",
        tier="verified",
        since="2026-11-15",
    ),
    # Its OpenAI endpoint. Clamps efforts itself.
    Provider(
        name="ollama-openai",
        also=(_OLLAMA_AS_RESPONSES,),
        title="Ollama (OpenAI endpoint)",
        base_url="http://localhost:11434/v1",
        base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        key_env=("OLLAMA_API_KEY",),
        key="optional",
        quirks=_OLLAMA_AS_CHAT.quirks,
        models=_OLLAMA_AS_CHAT.models or (),
        replay=_OLLAMA_AS_CHAT.replay,
        docs="https://docs.ollama.com/api/openai-compatibility",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="mistralrs",
        also=(_responses(quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS), replay="never", tier="verified"),),
        title="mistral.rs",
        base_url="http://localhost:1234/v1",
        base_url_env=("MISTRALRS_BASE_URL",),
        key="optional",
        quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS),
        models=SELF_HOSTED,
        docs="https://github.com/EricLBuehler/mistral.rs",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="gpustack",
        title="GPUStack",
        base_url_env=("GPUSTACK_API_BASE",),
        key_env=("GPUSTACK_API_KEY",),
        quirks=Quirks(output_with_tools=_SCHEMA_WITH_TOOLS),
        models=SELF_HOSTED,
        replay=(_replay("tool_turns", "2026-08", "recorded"),),
        docs="https://docs.gpustack.ai",
        tier="verified",
        since="2026-11-15",
    ),
    # ── clouds and gateways ───────────────────────────────────────────────────────────────────────────────────────────
    Provider(
        name="google",
        title="Google Gemini (AI Studio)",
        dialect="gemini",
        aliases=("gemini", "google-ai", "ai-studio"),
        base_url="https://generativelanguage.googleapis.com/v1beta",
        base_url_env=("GOOGLE_GEMINI_BASE_URL",),
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        # "Corrupted thought signature": signatures are valid in one project (massgen/MassGen#665, 2025-11-20).
        quirks=Quirks(tags=(), auth="x-goog-api-key", ask_by="thinking_level", path="", account_bound=True),
        models=(*GEMINI_MODELS, *_INTERACTIONS_ONLY),
        replay=GEMINI_REPLAY,
        also=(_GEMINI_AS_CHAT, _GEMINI_INTERACTIONS),
        prices="google",
        docs="https://ai.google.dev/gemini-api/docs/thinking",
        tier="verified",
        since="2026-11",
    ),
    # The key is an access token: `gcloud auth print-access-token`.
    Provider(
        name="vertex",
        title="Google Vertex AI",
        dialect="gemini",
        aliases=("google-vertex", "vertex-ai"),
        base_url="https://$GOOGLE_CLOUD_LOCATION-aiplatform.googleapis.com/v1beta1/projects/$GOOGLE_CLOUD_PROJECT"
        "/locations/$GOOGLE_CLOUD_LOCATION/publishers/google",
        base_url_env=("GOOGLE_VERTEX_BASE_URL",),
        own_hosts=("aiplatform.googleapis.com",),
        addressing="regional",
        key_env=("GOOGLE_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
        cloud="google-cloud",
        quirks=Quirks(tags=(), ask_by="thinking_level", path="", account_bound=True, enforces=("cloud_words",)),
        models=GEMINI_MODELS,
        replay=GEMINI_REPLAY,
        prices="google",
        docs="https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thinking",
        tier="verified",
        since="2026-11",
    ),
    # Reads every field that a server of this dialect may send.
    Provider(
        name="gemini-compatible",
        title="A server that speaks Gemini's generateContent",
        dialect="gemini",
        base_url_env=("GEMINI_COMPATIBLE_BASE_URL",),
        key_env=("GEMINI_COMPATIBLE_API_KEY",),
        key="optional",
        quirks=Quirks(auth="x-goog-api-key", ask_by="thinking_level", path="", account_bound=True),
        models=GEMINI_MODELS,
        replay=GEMINI_REPLAY,
        also=(_GEMINI_INTERACTIONS,),
        docs="https://ai.google.dev/api/generate-content",
        tier="verified",
        since="2026-11",
    ),
    # The same host with a fixed endpoint.
    Provider(
        name="google-interactions",
        title="Google Gemini (Interactions)",
        host="google",
        dialect="gemini_interactions",
        aliases=("gemini-interactions",),
        base_url="https://generativelanguage.googleapis.com/v1beta",
        base_url_env=("GOOGLE_GEMINI_BASE_URL",),
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        quirks=_GEMINI_INTERACTIONS.quirks,
        models=_INTERACTIONS_MODELS,
        replay=_GEMINI_INTERACTIONS.replay,
        prices="google",
        docs="https://ai.google.dev/gemini-api/docs/interactions",
        tier="verified",
        since="2026-11-18",
    ),
    # Gemini's OpenAI endpoint.
    Provider(
        name="google-openai",
        title="Google Gemini (OpenAI endpoint)",
        aliases=("gemini-openai",),
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        quirks=_GEMINI_AS_CHAT.quirks,
        models=_GEMINI_AS_CHAT.models or (),
        replay=_GEMINI_AS_CHAT.replay,
        prices="google",
        docs="https://ai.google.dev/gemini-api/docs/openai",
        tier="verified",
        since="2026-08",
    ),
    # All its models in one dialect. A key of Bedrock is sent as a bearer; without one, AWS credentials sign.
    Provider(
        name="bedrock",
        title="Amazon Bedrock (Converse)",
        dialect="bedrock",
        aliases=("aws-bedrock", "amazon-bedrock"),
        base_url="https://bedrock-runtime.$AWS_REGION|AWS_DEFAULT_REGION.amazonaws.com",
        base_url_env=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        signing="aws",
        # Refuses bounds and open objects, as the makers of its models do (docs.aws.amazon.com bedrock userguide
        # structured-output; unsure: models that are not Claude).
        quirks=Quirks(
            ask_by="nothing",
            tags=("thinking", "reasoning", "think"),
            path="",
            schema_words="shapes",
            # As at Anthropic. Other models take them, and need them for a prefix that is cached.
            refuses_thoughts_while_off=("*claude*",),
            enforces=("alternation",),
            # can1357/oh-my-pi#9086, 2026-08-20: Nova's first generation, DeepSeek R1.
            refuses_thinking=("*amazon.nova-[!2]*", "*deepseek.r1*"),
            # strands-agents/harness-sdk#1223, 2025-11-23; langchain-ai/langchain-aws#141.
            results_alone=("*meta.llama*", "*mistral.*", "*cohere.*"),
        ),
        models=BEDROCK_MODELS,
        replay=BEDROCK_REPLAY,
        also=(_BEDROCK_AS_CHAT, _BEDROCK_AS_MESSAGES),
        prices="aws",
        docs="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
        tier="verified",
        since="2026-11",
    ),
    # gpt-oss writes its thinking into the content, in <reasoning> tags. Thinking that goes back appears in the answer.
    Provider(
        name="bedrock-openai",
        title="Amazon Bedrock (OpenAI endpoint)",
        base_url="https://bedrock-runtime.$AWS_REGION|AWS_DEFAULT_REGION.amazonaws.com/v1",
        base_url_env=("AWS_BEDROCK_BASE_URL",),
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        signing="aws",
        quirks=_BEDROCK_AS_CHAT.quirks,
        models=_BEDROCK_AS_CHAT.models or (),
        replay=_BEDROCK_AS_CHAT.replay,
        prices="aws",
        docs="https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="bedrock-mantle",
        also=(
            _responses(
                models=_mantle(GPT_RESPONSES_MODELS),
                quirks=Quirks(tags=("reasoning", "think"), encrypted_reasoning=True, raw_reasoning="alone"),
                tier="verified",
            ),
        ),
        title="Amazon Bedrock Mantle",
        base_url="https://bedrock-mantle.$AWS_REGION|AWS_DEFAULT_REGION.api.aws/v1",
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        quirks=Quirks(tags=("reasoning", "think"), replay_field="reasoning"),
        models=_mantle(GPT_MODELS_ELSEWHERE),
        replay=(_replay("tool_turns", "2026-08", "recorded: the field is accepted"),),
        prices="aws",
        docs="https://docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html",
        tier="verified",
        since="2026-11-15",
    ),
    # Anthropic's OpenAI endpoint is for tests: it never returns thinking.
    Provider(
        name="anthropic-openai",
        title="Anthropic (OpenAI endpoint)",
        base_url="https://api.anthropic.com/v1",
        key_env=("ANTHROPIC_API_KEY",),
        # Ignores response_format; unsure: from memory of its page.
        quirks=Quirks(tags=(), ask_by="thinking_toggle", structured_output="nothing"),
        prices="anthropic",
        docs="https://platform.claude.com/docs/en/api/openai-sdk",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="ollama-cloud",
        title="Ollama Cloud",
        base_url="https://ollama.com/v1",
        key_env=("OLLAMA_API_KEY",),
        quirks=Quirks(replay_field="reasoning"),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08-21", "ollama openai/openai.go; recorded"),),
        also=(
            ModelVariant(
                dialect="ollama",
                quirks=_OLLAMA,
                models=_OLLAMA_MODELS,
                replay=_OLLAMA_REPLAY,
                since="2026-08-21",
                source="docs.ollama.com cloud: the same API",
            ),
        ),
        docs="https://docs.ollama.com/cloud",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="vercel-gateway",
        title="Vercel AI Gateway",
        aliases=("vercel", "ai-gateway"),
        base_url="https://ai-gateway.vercel.sh/v1",
        key_env=("AI_GATEWAY_API_KEY", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
        quirks=Quirks(ask_by="reasoning_object", tags=("think",), replay_as="details", replay_field="reasoning"),
        replay=(
            *_SEALED_AT_GATEWAYS,
            _replay("all", "2026-08", "recorded: reasoning_details are sent and accepted back"),
        ),
        docs="https://vercel.com/docs/ai-gateway",
        tier="verified",
        since="2026-08",
    ),
    # With reasoning it requires an explicit temperature of 1 (pydantic-ai providers/snowflake.py).
    Provider(
        name="snowflake",
        title="Snowflake Cortex",
        base_url="https://$SNOWFLAKE_ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1",
        key_env=("SNOWFLAKE_TOKEN",),
        quirks=Quirks(ask_by="reasoning_object", tags=("think",), replay_as="details"),
        replay=(
            _replay("sealed", "2026-06-25", _WITHOUT_SEAL, "*claude*"),
            _replay("all", "2026-08", "recorded: signed reasoning_details are accepted back"),
        ),
        docs="https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-rest-api",
        tier="verified",
        since="2026-08",
    ),
    # Recorded: streams always report usage; its client library sends no stream_options.
    Provider(
        name="databricks",
        title="Databricks",
        base_url_env=("DATABRICKS_BASE_URL",),
        key_env=("DATABRICKS_TOKEN",),
        quirks=Quirks(ask_by="thinking_toggle", tags=("think",), stream_usage=False),
        prices="databricks",
        docs="https://docs.databricks.com/aws/en/machine-learning/model-serving/query-reason-models",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="cloudflare",
        title="Cloudflare Workers AI",
        aliases=("workers-ai",),
        base_url="https://api.cloudflare.com/client/v4/accounts/$CLOUDFLARE_ACCOUNT_ID/ai/v1",
        key_env=("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY"),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        prices="cloudflare",
        docs="https://developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="venice",
        title="Venice",
        base_url="https://api.venice.ai/api/v1",
        key_env=("VENICE_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", "recorded: the field is accepted"),),
        docs="https://docs.venice.ai/overview/guides/reasoning-models",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="avian",
        title="Avian",
        base_url="https://api.avian.io/v1",
        key_env=("AVIAN_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", "recorded: the field is accepted"),),
        prices="avian",
        docs="https://avian.io/docs",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="novita",
        title="Novita AI",
        base_url="https://api.novita.ai/openai/v1",
        key_env=("NOVITA_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://novita.ai/docs/guides/llm-api",
        since="2026-11-18",
    ),
    Provider(
        name="nebius",
        title="Nebius Token Factory",
        base_url="https://api.tokenfactory.nebius.com/v1",
        key_env=("NEBIUS_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://docs.tokenfactory.nebius.com",
        since="2026-11-18",
    ),
    Provider(
        name="baseten",
        title="Baseten, model APIs",
        base_url="https://inference.baseten.co/v1",
        key_env=("BASETEN_API_KEY",),
        quirks=Quirks(tags=("think",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://docs.baseten.co/development/model-apis/overview",
        since="2026-11-18",
    ),
    # Its field is `reasoning`, and the chat template switches (docs.wandb.ai inference/response-settings/reasoning).
    Provider(
        name="wandb",
        title="Weights & Biases Inference",
        aliases=("weights-and-biases",),
        base_url="https://api.inference.wandb.ai/v1",
        key_env=("WANDB_API_KEY",),
        quirks=Quirks(tags=("think",), ask_by="template", replay_field="reasoning"),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://docs.wandb.ai/inference/response-settings/reasoning",
        since="2026-11-18",
    ),
    # ByteDance's own host: `thinking.type` is enabled, disabled or auto (volcengine.com docs/82379/1449737).
    Provider(
        name="doubao",
        title="Doubao, Volcengine Ark",
        aliases=("volcengine", "ark"),
        base_url="https://ark.cn-beijing.volces.com/api/v3",
        key_env=("ARK_API_KEY", "VOLCENGINE_API_KEY"),
        quirks=Quirks(tags=("think",), ask_by="thinking_toggle"),
        models=extend_hosted(_toggled("doubao-seed-*", "Doubao Seed"), _toggled("seed-*", "Doubao Seed")),
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://www.volcengine.com/docs/82379/1449737",
        since="2026-11-18",
    ),
    # `thinking.type` is enabled, disabled or adaptive (tencentcloud.com document/product/1300/82345, in litellm).
    Provider(
        name="tencent",
        title="Tencent TokenHub",
        aliases=("hunyuan", "tokenhub"),
        base_url="https://tokenhub-intl.tencentcloudmaas.com/v1",
        key_env=("TENCENT_API_KEY",),
        quirks=Quirks(tags=("think",), ask_by="thinking_toggle"),
        models=extend_hosted(_toggled("hy3*", "Hy3"), _toggled("hunyuan-*", "Hunyuan")),
        replay=(_replay("tool_turns", "2026-11-18", f"unsure: {_SAME_FIELD}"),),
        docs="https://www.tencentcloud.com/document/product/1300/82345",
        since="2026-11-18",
    ),
    # It wants earlier thinking of turns with calls back: reasoning_content_required in the public refusals of 2026.
    Provider(
        name="mimo",
        title="Xiaomi MiMo",
        aliases=("xiaomi", "xiaomi-mimo"),
        base_url="https://api.xiaomimimo.com/v1",
        key_env=("XIAOMI_MIMO_API_KEY", "MIMO_API_KEY"),
        quirks=Quirks(tags=("think",), ask_by="thinking_toggle", empty_thinking=True),
        models=(_toggled("mimo-*", "MiMo"),),
        replay=(_replay("tool_turns", "2026-11-18", "refusals of 2026: it must be passed back beside calls"),),
        docs="https://platform.xiaomimimo.com",
        since="2026-11-18",
    ),
    # Thinking cannot be turned off; items of reasoning go back encrypted, each with a `summary` (newo-ether/Agora#141,
    # 2026-09-21). It has chat completions and Messages too, without that state.
    Provider(
        name="meta-ai",
        title="Meta Model API",
        aliases=("muse",),
        dialect="openai_responses",
        base_url="https://api.meta.ai/v1",
        base_url_env=("META_API_BASE",),
        key_env=("MODEL_API_KEY", "META_API_KEY"),
        quirks=Quirks(tags=(), encrypted_reasoning=True, path="/responses"),
        models=(
            _muse("muse-wonder*", ("minimal", *LOW_TO_MAX)),
            _muse("muse-*", ("minimal", *LOW_TO_XHIGH)),
        ),
        replay=(_replay("all", "2026-11-18", "docs.openclaw.ai providers/meta; newo-ether/Agora#141"),),
        docs="https://dev.meta.ai/docs",
        since="2026-11-18",
    ),
    Provider(
        name="crusoe",
        title="Crusoe",
        base_url="https://api.inference.crusoecloud.com/v1",
        key_env=("CRUSOE_API_KEY",),
        quirks=Quirks(tags=("think",), replay_field="reasoning"),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", "recorded: the field is accepted"),),
        docs="https://docs.crusoecloud.com",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="doubleword",
        title="Doubleword",
        base_url_env=("DOUBLEWORD_BASE_URL",),
        key_env=("DOUBLEWORD_API_KEY",),
        quirks=Quirks(tags=("think",), replay_field="reasoning"),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", "recorded: the field is accepted"),),
        prices="doubleword",
        docs="https://docs.doubleword.ai",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="github-copilot",
        also=(_responses(models=GPT_RESPONSES_MODELS, tier="verified"),),
        title="GitHub Copilot",
        base_url="https://api.githubcopilot.com",
        key_env=("GITHUB_COPILOT_TOKEN",),
        docs="https://docs.github.com/copilot",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="heroku",
        title="Heroku Managed Inference",
        base_url="https://us.inference.heroku.com/v1",
        base_url_env=("HEROKU_INFERENCE_URL",),
        key_env=("HEROKU_INFERENCE_KEY",),
        quirks=Quirks(tags=("think",)),
        docs="https://devcenter.heroku.com/articles/heroku-inference-api-v1-chat-completions",
        tier="verified",
        since="2026-08",
    ),
    # Sends message and delta in one chunk.
    Provider(
        name="writer",
        title="Writer",
        base_url="https://api.writer.com/v1",
        key_env=("WRITER_API_KEY",),
        quirks=Quirks(tags=(), path="/chat"),
        docs="https://dev.writer.com/api-reference",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="watsonx",
        title="IBM watsonx.ai",
        base_url_env=("WATSONX_BASE_URL",),
        key_env=("WATSONX_TOKEN",),
        quirks=Quirks(),
        models=HOSTED,
        docs="https://cloud.ibm.com/apidocs/watsonx-ai",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="portkey",
        title="Portkey",
        base_url="https://api.portkey.ai/v1",
        key_env=("PORTKEY_API_KEY",),
        quirks=Quirks(tags=("think",)),
        docs="https://portkey.ai/docs/api-reference/sdk",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="litellm-proxy",
        title="LiteLLM proxy",
        aliases=("litellm",),
        base_url="http://localhost:4000",
        base_url_env=("LITELLM_PROXY_API_BASE",),
        key_env=("LITELLM_PROXY_API_KEY",),
        key="optional",
        quirks=Quirks(enforces=("one_thinking_level",)),
        models=HOSTED,
        replay=(_replay("tool_turns", "2026-08", _SAME_FIELD),),
        docs="https://docs.litellm.ai/docs/reasoning_content",
        tier="verified",
        since="2026-11-15",
    ),
    Provider(
        name="pydantic-gateway",
        also=(_responses(tier="verified"),),
        title="Pydantic AI Gateway",
        base_url_env=("PYDANTIC_AI_GATEWAY_BASE_URL",),
        key_env=("PYDANTIC_AI_GATEWAY_API_KEY",),
        quirks=Quirks(tags=("think",), replay_field="reasoning"),
        docs="https://ai.pydantic.dev/gateway",
        tier="verified",
        since="2026-08",
    ),
    Provider(
        name="mirascope-router",
        also=(_responses(tier="verified"),),
        title="Mirascope Router",
        base_url_env=("MIRASCOPE_BASE_URL",),
        key_env=("MIRASCOPE_API_KEY",),
        docs="https://mirascope.com/docs",
        tier="verified",
        since="2026-08",
    ),
    # ── Anthropic's Messages ──────────────────────────────────────────────────────────────────────────────────────────
    Provider(
        name="anthropic",
        title="Anthropic",
        dialect="anthropic",
        aliases=("claude",),
        base_url="https://api.anthropic.com/v1",
        base_url_env=("ANTHROPIC_BASE_URL",),
        key_env=("ANTHROPIC_API_KEY",),
        headers=(("anthropic-version", "2023-06-01"),),
        # platform.claude.com build-with-claude/compaction, 2026-11.
        quirks=msgspec.structs.replace(_messages(auth="x-api-key"), compacts=True, reports_input=True),
        models=claude_models(),
        replay=CLAUDE_REPLAY,
        prices="anthropic",
        docs="https://platform.claude.com/docs/en/api/messages",
        tier="verified",
        since="2026-11-15",
    ),
    # Each model has its own address; the version is inside the body. A key of Bedrock is sent as a bearer.
    Provider(
        name="bedrock-anthropic",
        title="Claude on Amazon Bedrock (InvokeModel)",
        dialect="anthropic",
        aliases=("bedrock-invoke", "bedrock-claude"),
        base_url="https://bedrock-runtime.$AWS_REGION|AWS_DEFAULT_REGION.amazonaws.com",
        base_url_env=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        signing="aws",
        quirks=_BEDROCK_AS_MESSAGES.quirks,
        models=_BEDROCK_AS_MESSAGES.models or (),
        replay=_BEDROCK_AS_MESSAGES.replay,
        prices="aws",
        docs="https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html",
        tier="verified",
        since="2026-11-15",
    ),
    # The key is an access token: `gcloud auth print-access-token`.
    Provider(
        name="vertex-anthropic",
        title="Claude on Google Vertex AI",
        dialect="anthropic",
        aliases=("vertex-claude", "google-vertex-anthropic"),
        base_url="https://$GOOGLE_CLOUD_LOCATION-aiplatform.googleapis.com/v1/projects/$GOOGLE_CLOUD_PROJECT"
        "/locations/$GOOGLE_CLOUD_LOCATION/publishers/anthropic/models",
        base_url_env=("GOOGLE_VERTEX_ANTHROPIC_BASE_URL",),
        own_hosts=("aiplatform.googleapis.com",),
        addressing="regional",
        key_env=("GOOGLE_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
        cloud="google-cloud",
        quirks=_messages(transport="vertex_predict", path=""),
        models=claude_models("*"),
        replay=CLAUDE_REPLAY,
        prices="google",
        docs="https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude",
        tier="verified",
        since="2026-11-15",
    ),
    # A key goes in x-api-key, as its own SDK sends it (anthropic 2.9 lib/foundry.py).
    Provider(
        name="foundry-anthropic",
        title="Claude on Microsoft Foundry",
        dialect="anthropic",
        aliases=("azure-anthropic", "foundry-claude", "foundry"),
        base_url="https://$ANTHROPIC_FOUNDRY_RESOURCE.services.ai.azure.com/anthropic/v1",
        base_url_env=("ANTHROPIC_FOUNDRY_BASE_URL",),
        own_hosts=(".services.ai.azure.com",),
        key_env=("ANTHROPIC_FOUNDRY_API_KEY",),
        headers=(("anthropic-version", "2023-06-01"),),
        quirks=_messages(auth="x-api-key"),
        models=claude_models("*"),
        replay=CLAUDE_REPLAY,
        prices="azure",
        docs="https://platform.claude.com/docs/en/build-with-claude/claude-in-microsoft-foundry",
        since="2026-11-18",
    ),
    # Reads every field that a server of this dialect may send. Many clones send no signatures, or empty ones.
    Provider(
        name="anthropic-compatible",
        title="A server that speaks Anthropic's Messages",
        dialect="anthropic",
        base_url_env=("ANTHROPIC_COMPATIBLE_BASE_URL",),
        key_env=("ANTHROPIC_COMPATIBLE_API_KEY",),
        key="optional",
        headers=(("anthropic-version", "2023-06-01"),),
        quirks=_messages(auth="x-api-key", clone=True, tags=None),
        # Other models may answer under these names, in tags of their own.
        models=tuple(msgspec.structs.replace(rule, tags=None, effort_updates=None) for rule in claude_models("*")),
        replay=(_replay("all", "2026-11", "the language of Messages: whole turns go back"),),
        docs="https://platform.claude.com/docs/en/api/messages",
        since="2026-11",
    ),
    Provider(
        name="minimax-anthropic",
        title="MiniMax (Anthropic's Messages)",
        dialect="anthropic",
        base_url="https://api.minimax.io/anthropic/v1",
        key_env=("MINIMAX_API_KEY",),
        headers=(("anthropic-version", "2023-06-01"),),
        quirks=_messages(auth="x-api-key", clone=True, enforces=("numbered_errors",)),
        models=(
            _clone("minimax-m2*", "always", ("adaptive",)),
            _clone("minimax-m3.1*", "always", ("adaptive",), efforts=LOW_TO_MAX),
            _clone("*", "optional", ("adaptive", "disabled")),
        ),
        replay=(_replay("all", "2026-08-22", "vercel/ai packages/minimax; unsure: earlier turns"),),
        prices="minimax",
        docs="https://platform.minimax.io/docs/api-reference/text-anthropic-api",
        since="2026-08-22",
    ),
    Provider(
        name="deepseek-anthropic",
        title="DeepSeek (Anthropic's Messages)",
        dialect="anthropic",
        base_url="https://api.deepseek.com/anthropic",
        key_env=("DEEPSEEK_API_KEY",),
        headers=(("anthropic-version", "2023-06-01"),),
        # "The `content[].thinking` in the thinking mode must be passed back to the API" (2026-11). Unsigned is fine.
        quirks=_messages(auth="x-api-key", clone=True, empty_thinking=True, enforces=("tool_thinking",)),
        models=(_clone("*", "optional", ("enabled", "adaptive", "disabled"), efforts=("low", "high", "max")),),
        replay=(_replay("all", "2026-08", "api-docs.deepseek.com anthropic_api; unsure: earlier turns"),),
        prices="deepseek",
        docs="https://api-docs.deepseek.com/guides/anthropic_api",
        since="2026-08",
    ),
    Provider(
        name="kimi-anthropic",
        title="Kimi (Anthropic's Messages)",
        dialect="anthropic",
        aliases=("moonshot-anthropic",),
        base_url="https://api.moonshot.ai/anthropic",
        key_env=("MOONSHOT_API_KEY", "MOONSHOTAI_API_KEY"),
        headers=(("anthropic-version", "2023-06-01"),),
        # "reasoning_content is missing in assistant tool call message" (MoonshotAI/kimi-agent-sdk#169, 2026-04-23).
        quirks=_messages(auth="x-api-key", clone=True, empty_thinking=True),
        models=(_clone("*", "optional", ("enabled", "disabled")),),
        replay=(_replay("all", "2026-08", "kimi-cli kosong; unsure: earlier turns"),),
        prices="moonshotai",
        docs="https://platform.moonshot.ai/docs/guide/agent-support",
        since="2026-08",
    ),
    Provider(
        name="zai-anthropic",
        title="Z.AI (Anthropic's Messages)",
        dialect="anthropic",
        base_url="https://api.z.ai/api/anthropic",
        key_env=("ZAI_API_KEY", "ZHIPU_API_KEY", "ZHIPUAI_API_KEY"),
        headers=(("anthropic-version", "2023-06-01"),),
        quirks=_messages(auth="x-api-key", clone=True),
        models=(_clone("*", "optional", ("enabled", "disabled")),),
        replay=(_replay("all", "2026-08", "docs.z.ai; unsure: earlier turns"),),
        prices="zai",
        docs="https://docs.z.ai/scenario-example/develop-tools/claude",
        since="2026-08",
    ),
    Provider(
        name="ollama-anthropic",
        title="Ollama (Anthropic's Messages)",
        dialect="anthropic",
        base_url="http://127.0.0.1:11434/v1",
        base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        key="optional",
        quirks=_messages(auth="nothing", clone=True, tags=None),
        models=(_clone("*", "unknown", ("enabled", "disabled")),),
        replay=(_replay("all", "2026-08-21", "ollama anthropic/anthropic.go; recorded"),),
        docs="https://docs.ollama.com/api/anthropic-compatibility",
        tier="verified",
        since="2026-08-21",
    ),
    # Its blocks overlap and its signatures are empty; it ignores `disabled`.
    Provider(
        name="llamacpp-anthropic",
        title="llama.cpp's server (Anthropic's Messages)",
        dialect="anthropic",
        base_url="http://127.0.0.1:8080/v1",
        base_url_env=("LLAMACPP_BASE_URL",),
        key_env=("LLAMACPP_API_KEY", "LLAMA_API_KEY"),
        key="optional",
        quirks=_messages(auth="x-api-key", clone=True, tags=None),
        models=(_clone("*", "unknown", ("enabled", "disabled")),),
        replay=(_replay("all", "2026-11", "recorded: the blocks are accepted"),),
        docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
        tier="verified",
        since="2026-11",
    ),
    Provider(
        name="vllm-anthropic",
        title="vLLM (Anthropic's Messages)",
        dialect="anthropic",
        base_url="http://127.0.0.1:8000/v1",
        base_url_env=("VLLM_BASE_URL",),
        key_env=("VLLM_API_KEY",),
        key="optional",
        quirks=_messages(auth="x-api-key", clone=True, tags=None),
        models=(_clone("*", "unknown", ("enabled", "disabled"), least=1024),),
        replay=(_replay("all", "2026-11", "recorded: the blocks are accepted"),),
        docs="https://docs.vllm.ai/en/latest/serving/",
        tier="verified",
        since="2026-11",
    ),
)

WITHOUT_A_KEY = "local:tiny"
"""The model that comes with asides. It needs no key, no account and no network."""

_PLAIN_ROWS = {
    "anthropic": "anthropic-compatible",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini-compatible",
    "gemini_interactions": "gemini-compatible",
    "ollama": "ollama",
    "openai_chat": "openai-compatible",
    "openai_responses": "openai-compatible",
}


def plain_row(dialect: str) -> Provider:
    """The row for a dialect when no provider is named. It reads every field and tag, since any server may answer."""
    name = _PLAIN_ROWS.get(dialect)
    row = next((row for row in PROVIDERS if row.name == name), None)
    if row is None:
        raise UnknownProvider(f"no plain row speaks {dialect!r}: name a provider; plain are {', '.join(_PLAIN_ROWS)}.")
    return row.with_dialect(dialect) or row


_MAKERS = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "google",
    "gemini_interactions": "google",
    "ollama": "ollama",
    "openai_chat": "openai",
    "openai_responses": "openai",
}


def find_maker(dialect: str) -> str | None:
    """The name of the provider that made a dialect, in origins and in model strings; None if it is not one of ours."""
    return _MAKERS.get(dialect)


def is_maker(row: Provider, dialect: str) -> bool:
    """Whether a row is the own host of the provider that made a dialect, and not another host that speaks it."""
    return (row.host or row.name) == find_maker(dialect)

"""Rules for the settings of a chat: efforts, switches, budgets, sampling, forced tools, unknown fields, lengths.

Written from the documented rules and from reported errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from asides.dialects.openai_chat.rules.chat_request import ChatRequest
from asides.dialects.rulebook import BrokenRule, Rule, Wire
from asides.providers.provider import ModelRule, Sampled

# openai-python 3.49, types/chat/completion_create_params.py, 2026-11.
_FIELDS = frozenset({
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
    "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
})  # fmt: skip
_SAMPLING: tuple[Sampled, ...] = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "stop",
)
_DEFAULTS = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": False}

UNKNOWN = Rule(
    kind="unknown_param",
    text="Unknown parameter: '{name}'.",
    param="{name}",
    code="unknown_parameter",
    since="2024-10",
    source="errors of the live service; editor-code-assistant/eca 0.160.3 for Azure and `reasoning`",
)
_EFFORT_VALUE = Rule(
    kind="effort_unsupported_value",
    text="Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are: "
    "{values}.",
    param="reasoning_effort",
    code="unsupported_value",
    since="2025-08",
    source="errors of the live service, such as Wei-Shaw/sub2api#6624; the same words at Kilo-Org/cloud#3807",
)
_EFFORT_PARAM = Rule(
    kind="effort_unsupported_param",
    text="Unrecognized request argument supplied: reasoning_effort",
    since="2025-02-22",
    source="avante-corp/avante.nvim#1359: gpt-4o",
)
_TOOLS_54 = Rule(
    kind="effort_tools_endpoint",
    text="Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. Please use "
    "/v1/responses instead.",
    param="reasoning_effort",
    since="2026-03-16",
    source="pipecat-ai/pipecat#4043; openai/openai-openapi#541",
)
_TOOLS_56 = Rule(
    kind="effort_tools_endpoint",
    text="Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'.",
    param="reasoning_effort",
    since="2026-07-09",
    source="github/app#3268; BerriAI/litellm#34569: also without an effort",
)
_SAMPLING_PARAM = Rule(
    kind="sampling_unsupported",
    text="Unsupported parameter: '{name}' is not supported with this model.",
    param="{name}",
    code="unsupported_parameter",
    since="2025-03-14",
    source="langchain4j/langchain4j#2699",
)
_SAMPLING_VALUE = Rule(
    kind="sampling_unsupported",
    text="Unsupported value: '{name}' does not support {value} with this model. Only the default ({default}) value is "
    "supported.",
    param="{name}",
    code="unsupported_value",
    since="2025-05-09",
    source="obot-platform/obot#2862",
)
_MAX_TOKENS = Rule(
    kind="unknown_param",
    text="Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param="max_tokens",
    code="unsupported_parameter",
    since="2024-09",
    source="openai-python types/chat/completion_create_params.py; errors of the live service",
)
_WEB_SEARCH = Rule(
    kind=None,
    text="Web search options not supported with this model.",
    param="web_search_options",
    since="2025-05",
    source="recorded in pydantic-ai's test_openai cassettes: gpt-4o; unsure: the date",
)
_ABOVE = Rule(
    kind=None,
    text="Invalid '{name}': decimal above maximum value. Expected a value <= {limit}, but got {value} instead.",
    param="{name}",
    code="decimal_above_max_value",
    since="2025-08",
    source="recorded in rig's cassettes: gpt-4o; unsure: the date",
)
_BELOW = Rule(
    kind=None,
    text="Invalid '{name}': decimal below minimum value. Expected a value >= {limit}, but got {value} instead.",
    param="{name}",
    code="decimal_below_min_value",
    since="2025-08",
    source="recorded in pydantic-ai's cassettes: gpt-4o; unsure: the date",
)
_STRICT_OBJECT = Rule(
    kind=None,
    text="Invalid schema for function '{name}': In context=(), 'additionalProperties' is required to be supplied and "
    "to be false.",
    param="{param}",
    code="invalid_function_parameters",
    since="2025-08",
    source="recorded in cassettes: gpt-4o-mini; unsure: the date",
)
_STRICT_REQUIRED = Rule(
    kind=None,
    text="Invalid schema for function '{name}': In context=(), 'required' is required to be supplied and to be an "
    "array including every key in properties. Missing '{missing}'.",
    param="{param}",
    code="invalid_function_parameters",
    since="2025-08",
    source="recorded in cassettes: gpt-4o-mini; unsure: the date",
)
_RANGES = {"temperature": (0, 2), "top_p": (0, 1)}
_TOO_LONG = Rule(
    kind="context_length",
    text="Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {count} tokens. Please "
    "reduce the length of the messages.",
    param="messages",
    code="context_length_exceeded",
    since="2026-03-05",
    source="archi-physics/archi#497",
)


def check_known_fields(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that every field is known."""
    yield from (UNKNOWN.broken(name, name=name) for name in asked.body if name not in _FIELDS)


def check_no_web_search(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a model without web search is not asked for one."""
    if asked.body.get("web_search_options") is not None:
        yield _WEB_SEARCH.broken("web_search_options")


def check_reasoning_settings(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the effort, tools beside it, sampling, and the length."""
    yield from _check_effort(asked)
    yield from _check_tools(asked)
    yield from _check_sampling(asked)
    yield from check_ranges(asked.body)
    yield from check_strict_tools(asked.body)
    if "temperature" in asked.rule.forbids and asked.body.get("max_tokens") is not None:
        yield _MAX_TOKENS.broken("max_tokens")
    yield from _check_length(asked, asked.rule.input_limit or 0)


def check_ranges(body: Wire) -> Iterator[BrokenRule]:
    """Check that sampling settings are in their ranges."""
    for name, (least, most) in _RANGES.items():
        value = body.get(name)
        if not isinstance(value, (int, float)):
            continue
        if value > most:
            yield _ABOVE.broken(name, name=name, limit=most, value=value)
        elif value < least:
            yield _BELOW.broken(name, name=name, limit=least, value=value)


def check_strict_tools(body: Wire) -> Iterator[BrokenRule]:
    """Check that the arguments of strict tools are a closed object with only required fields."""
    tools = body.get("tools")
    for place, tool in enumerate(tools if isinstance(tools, list) else []):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or function.get("strict") is not True:
            continue
        schema, name = function.get("parameters"), function.get("name")
        if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
            continue
        inside = "function.parameters" if function is not tool else "parameters"
        path, required = f"tools[{place}].{inside}", schema.get("required") or []
        missing = next((each for each in schema["properties"] if each not in required), None)
        if schema.get("additionalProperties") is not False:
            yield _STRICT_OBJECT.broken(path, name=name, param=path)
        elif missing is not None:
            yield _STRICT_REQUIRED.broken(path, name=name, param=path, missing=missing)


def list_efforts(rule: ModelRule) -> tuple[str, ...] | None:
    """Return the values of the effort that a model accepts, `none` included; None if they are not known."""
    if rule.efforts and rule.thinking == "optional" and rule.off_as_effort:
        return ("none", *rule.efforts)
    return rule.efforts


def thinks_at(rule: ModelRule, effort: object) -> bool:
    """Return whether a model thinks at this effort, as far as that is known; None: a request without one."""
    return rule.thinking != "never" and effort != "none" and (effort is not None or rule.default == "on")


def _check_effort(asked: ChatRequest) -> Iterator[BrokenRule]:
    efforts = list_efforts(asked.rule)
    if asked.effort is None or efforts is None:
        return
    if not efforts:
        yield _EFFORT_PARAM.broken("reasoning_effort")
    elif asked.effort not in efforts:
        yield _EFFORT_VALUE.broken("reasoning_effort", value=asked.effort, values=list_values(efforts))


def _check_tools(asked: ChatRequest) -> Iterator[BrokenRule]:
    if not asked.body.get("tools") or asked.effort == "none":
        return
    if asked.rule.tools_need_off and asked.today >= date(2026, 7, 9):
        yield _TOOLS_56.broken("tools", model=asked.model)
    elif asked.rule.tools_while_thinking is False and asked.effort is not None:
        yield _TOOLS_54.broken("tools", model=asked.model)


def _check_sampling(asked: ChatRequest) -> Iterator[BrokenRule]:
    if not thinks_at(asked.rule, asked.effort):
        return
    for name in _SAMPLING:
        value, default = asked.body.get(name), _DEFAULTS.get(name)
        if value is None or value == default or name not in asked.rule.forbids:
            continue
        if name == "temperature" and "named_sampling" not in asked.target.facts.enforces:
            yield _SAMPLING_VALUE.broken(name, name=name, value=value, default=default)
        else:
            yield _SAMPLING_PARAM.broken(name, name=name)


def _check_length(asked: ChatRequest, limit: int) -> Iterator[BrokenRule]:
    # A text has at most half as many words as characters: most requests need no counting.
    if not limit or sum(len(str(message.get("content"))) for message in asked.messages) < 2 * limit:
        return
    count = sum(count_tokens(str(message.get("content"))) for message in asked.messages)
    if count > limit:
        yield _TOO_LONG.broken("messages", limit=limit, count=count)


def list_values(values: Sequence[str]) -> str:
    """Return the values as errors list them: 'a', 'b', and 'c'."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def count_tokens(text: str) -> int:
    """Count words as tokens: a lower bound."""
    return len(text.split())


# --- DeepSeek ---------------------------------------------------------------------------------------------------------

_NO_FORCED_TOOL = Rule(
    kind="tool_choice_with_thinking",
    text="Thinking mode does not support this tool_choice",
    code="invalid_request_error",
    since="2026-04-24",
    source="osaurus-ai/osaurus#1940; tickernelz/opencode-mem#253",
)


def check_unforced(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that no tool is forced while the model thinks."""
    thinks = asked.thinks(by_default=asked.rule.default == "on")
    if asked.forced_tool and thinks and asked.today >= date(2026, 4, 24):
        yield _NO_FORCED_TOOL.broken("tool_choice")


# --- Kimi -------------------------------------------------------------------------------------------------------------

_TOOL_CHOICE = Rule(
    kind="tool_choice_with_thinking",
    text="tool_choice '{choice}' is incompatible with thinking enabled",
    since="2026-04-22",
    source="AstrBotDevs/AstrBot#7805; can1357/oh-my-pi#827; UKGovernmentBEIS/inspect_ai#5152: K3 takes 'required'",
)
_ONLY_ALLOWED = Rule(
    kind="sampling_with_thinking",
    text="invalid {name}: only {value} is allowed for this model",
    since="2026-01-27",
    source="MoonshotAI/kimi-code#686: 0.6 with thinking off; platform.moonshot.ai kimi-k2-5: 1 and top_p 0.95",
)
_EFFORT_LIST = Rule(
    kind="effort_unsupported_value",
    text="Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are: "
    "{values}.",
    since="2026-06-08",
    source="Kilo-Org/cloud#3807",
)
_THINKING_TYPE = Rule(
    kind="unknown_param",
    text="the thinking field in the request (expected type object) is illegal, and {type} is not acceptable",
    since="2025-12-30",
    source="LionSR/TeXRA#1905",
)
_ONLY_ENABLED = Rule(
    kind="thinking_cannot_disable",
    text="invalid thinking: only type=enabled is allowed for this model",
    since="2026-08",
    source="vercel/ai moonshotai-chat-options.ts: an error, measured; unsure: the words",
)
# Accepted and ignored by models without efforts of their own.
_USUAL_EFFORTS = ("minimal", "low", "medium", "high")


def check_switch_and_sampling(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the switch, the effort, forced tools and sampling."""
    if "thinking" in asked.body and not isinstance(asked.body["thinking"], dict):
        kind = {bool: "bool", str: "string", int: "number"}.get(type(asked.body["thinking"]), "null")
        yield _THINKING_TYPE.broken("thinking", type=kind)
    if asked.switch == "disabled" and asked.rule.thinking == "always":
        yield _ONLY_ENABLED.broken("thinking")
    efforts = asked.rule.efforts or _USUAL_EFFORTS
    if asked.effort is not None and asked.effort not in efforts:
        yield _EFFORT_LIST.broken("reasoning_effort", value=asked.effort, values=list_values(efforts))
    if "temperature" not in asked.rule.forbids:
        return
    thinks = asked.thinks(by_default=True)
    takes_required = asked.rule.forced_tools == "required"
    if asked.forced_tool and thinks and not (takes_required and asked.forced_tool == "required"):
        yield _TOOL_CHOICE.broken("tool_choice", choice=asked.forced_tool)
    for name, value in (("temperature", 1 if thinks else 0.6), ("top_p", 0.95)):
        if asked.body.get(name) not in (None, value):
            yield _ONLY_ALLOWED.broken(name, name=name, value=value)


# --- GLM --------------------------------------------------------------------------------------------------------------

_ALWAYS_THINKS = Rule(
    kind="thinking_cannot_disable",
    text="This model always engages in thinking and cannot be disabled; please use low, high, or max",
    code="1210",
    since="2026-09-14",
    source="sam-dumont/immich-video-memory-generator#919; from 2026-10-19 the effort none is taken (ceulen v0.23)",
)


def check_not_disabled(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a model that always thinks is not switched off."""
    off = asked.switch == "disabled" or (asked.effort == "none" and asked.today < date(2026, 10, 19))
    if asked.rule.thinking == "always" and off:
        yield _ALWAYS_THINKS.broken("thinking")


# --- Qwen at DashScope ------------------------------------------------------------------------------------------------

_NOT_STREAMED = Rule(
    kind="stream_required",
    text="parameter.enable_thinking must be set to false for non-streaming calls",
    since="2025-07-22",
    source="infiniflow/ragflow#8972",
)
_ONLY_STREAMED = Rule(
    kind="stream_required",
    text="This model only support stream mode, please enable the stream parameter to access the model. ",
    since="2025-03",
    source="errors of the live service in public reports, such as langgenius/dify#15484",
)
_NO_STREAM = Rule(
    kind="stream_required",
    text="enable thinking can not be support when `stream=False`.",
    since="2025-10-23",
    source="musistudio/claude-code-router#948",
)
_BUDGET = Rule(
    kind="budget_out_of_range",
    text="<400> InternalError.Algo.InvalidParameter: The thinking_budget parameter must be a positive integer and not "
    "greater than {most}",
    since="2026-08-16",
    source="QwenLM/Qwen-Agent#942",
)
_RESTRICTED = Rule(
    kind="thinking_cannot_disable",
    text="The value of the enable_thinking parameter is restricted to True.",
    since="2026-07-26",
    source="ten public files, such as those of qwen3.7-max-preview clients; help.aliyun.com deep-thinking",
)
_FORCED_IN_THINKING = Rule(
    kind="tool_choice_with_thinking",
    text="<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required "
    "or object in thinking mode",
    since="2026-04-24",
    source="cloudwego/eino#994",
)
_MAX_BUDGET = 81_920


def check_thinking_switch(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the switch, the budget, streams and forced tools."""
    rule, enabled = asked.rule, asked.body.get("enable_thinking")
    always, never = rule.thinking == "always", rule.thinking == "never"
    if always and enabled is False:
        yield _RESTRICTED.broken("enable_thinking")
    thinks = always or (not never and asked.thinks(by_default=rule.default == "on"))
    streams = rule.stream_only
    if streams and asked.body.get("stream") is not True:
        if streams is True:
            yield _ONLY_STREAMED.broken("stream")
        elif thinks:
            yield _NOT_STREAMED.broken("stream")
    budget = asked.body.get("thinking_budget")
    most = 0 if never else (rule.budget or (1, None))[1] or _MAX_BUDGET
    if budget is not None and (not isinstance(budget, int) or not 0 < budget <= most):
        yield _BUDGET.broken("thinking_budget", most=most)
    if thinks and asked.forced_tool:
        yield _FORCED_IN_THINKING.broken("tool_choice")


def check_thinking_streamed(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking that is asked for is streamed."""
    if asked.body.get("enable_thinking") is True and asked.body.get("stream") is not True:
        yield _NO_STREAM.broken("stream")


# --- MiniMax ----------------------------------------------------------------------------------------------------------

_SWITCH_TYPES = Rule(
    kind="thinking_mode_unsupported",
    text='invalid params, invalid thinking.type: "{value}" (allowed: adaptive, disabled)',
    since="2026-06-24",
    source="HenriGrimm/Minnow#364",
)


def check_switch_values(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the values of the switch."""
    if asked.switch not in (None, "adaptive", "disabled"):
        yield _SWITCH_TYPES.broken("thinking", value=asked.switch)


# --- Groq and Cerebras ------------------------------------------------------------------------------------------------

_MUST_BE_ONE = Rule(
    kind="effort_unsupported_value",
    text="`reasoning_effort` must be one of {values}",
    since="2026-03-02",
    source="iamsrikanthnani/pluely#219; earendil-works/pi#1745",
)
_NOT_WITH_MODEL = Rule(
    kind="effort_unsupported_param",
    text="`reasoning_effort` is not supported with this model",
    since="2025-08-14",
    source="errors of the live service in public reports; unsure: the words",
)
_UNSUPPORTED = Rule(
    kind="unknown_param",
    text="property '{name}' is unsupported",
    since="2026-02-11",
    source="musistudio/claude-code-router#1204; musistudio/llms#64",
)
_UNSUPPORTED_HERE = Rule(
    kind="unknown_param",
    text="{name}: property '{name}' is unsupported",
    since="2026-09-15",
    source="OpenMinis/OpenMinis#361",
)
_BOTH_FORMATS = Rule(
    kind="reasoning_params_conflict",
    text="cannot specify both `reasoning_format` and `include_reasoning`",
    since="2025-08",
    source="console.groq.com docs/reasoning: mutually exclusive; unsure: the words",
)
# The spellings of other hosts.
_FOREIGN = ("reasoning", "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs", "top_k")


def check_efforts_by_model(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the efforts of each model, and the fields of other hosts."""
    yield from (_UNSUPPORTED.broken(name, name=name) for name in _FOREIGN if name in asked.body)
    if "reasoning_format" in asked.body and "include_reasoning" in asked.body:
        yield _BOTH_FORMATS.broken("include_reasoning")
    if asked.effort is None:
        return
    # A model that can be switched and has no efforts takes these two.
    efforts = asked.rule.efforts or (("none", "default") if asked.rule.thinking == "optional" else ())
    if not efforts:
        yield _NOT_WITH_MODEL.broken("reasoning_effort")
    elif asked.effort not in efforts:
        yield _MUST_BE_ONE.broken("reasoning_effort", values=_list_choices(efforts))


def check_own_efforts(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the fields of other hosts, and that the models that always think are not switched off."""
    yield from (_UNSUPPORTED_HERE.broken(name, name=name) for name in _FOREIGN if name in asked.body)
    if asked.rule.efforts and asked.effort not in (None, *asked.rule.efforts):
        yield _MUST_BE_ONE.broken("reasoning_effort", values=_list_choices(asked.rule.efforts))


def _list_choices(values: Sequence[str]) -> str:
    """Return the values as these hosts list them: `a`, `b`, or `c`."""
    quoted = [f"`{value}`" for value in values]
    return " or ".join(quoted) if len(quoted) < 3 else f"{', '.join(quoted[:-1])}, or {quoted[-1]}"


# --- Mistral ----------------------------------------------------------------------------------------------------------

_PROMPT_MODE = Rule(
    kind="thinking_mode_unsupported",
    text="Reasoning prompt mode is not enabled for this model",
    code="3051",
    since="2026-04-13",
    source="earendil-works/pi#3096",
)
_EXTRA_FIELD = Rule(
    kind="unknown_param",
    text="Extra inputs are not permitted",
    status=422,
    param="{name}",
    code="extra_forbidden",
    since="2026-04-22",
    source="NousResearch/hermes-agent#11390: the form of the error",
)
_NONE_OR_HIGH = Rule(
    kind="effort_unsupported_value",
    text="Input should be 'none' or 'high'",
    status=422,
    param="reasoning_effort",
    code="literal_error",
    since="2026-06-30",
    source="mistralai/client-python, the type of the field; unsure: the words",
)


def check_reasoning_modes(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the prompt mode, the effort, and the fields of other hosts."""
    takes_mode = asked.rule.thinking == "always" and asked.target.facts.ask_by == "prompt_mode"
    if asked.body.get("prompt_mode") is not None and not takes_mode:
        yield _PROMPT_MODE.broken("prompt_mode")
    foreign = (*_FOREIGN[:5], "reasoning_format", "include_reasoning")
    yield from (_EXTRA_FIELD.broken(name, name=name, quoted=asked.body[name]) for name in foreign if name in asked.body)
    if asked.effort not in (None, "none", "high", *(asked.rule.efforts or ())):
        yield _NONE_OR_HIGH.broken("reasoning_effort", quoted=asked.effort)


# --- xAI --------------------------------------------------------------------------------------------------------------

_NO_PARAMETER = Rule(
    kind="sampling_unsupported",
    text="Model {model} does not support parameter {name}.",
    since="2026-02-08",
    source="open-webui/open-webui#21266",
)
_NO_ARGUMENT = Rule(
    kind="sampling_unsupported",
    text="Argument not supported on this model: {name}",
    since="2025-04-24",
    source="yym68686/uni-api#105",
)
_NO_EFFORT = Rule(
    kind="effort_unsupported_param",
    text="Model {model} does not support parameter reasoningEffort.",
    since="2025-11-05",
    source="BerriAI/litellm#16265",
)
_NO_SUCH_EFFORT = Rule(
    kind="effort_unsupported_value",
    text="Model {model} does not support reasoning effort '{value}'. Supported values are: {values}.",
    since="2026-08",
    source="docs.x.ai guides/reasoning: an error; unsure: the words",
)


def check_penalties(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the effort, and the settings that models which think do not take."""
    yield from check_listed_effort(asked.model, asked.rule, asked.effort)
    refused = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "stop": "stop"}
    for name, written in refused.items():
        if name in asked.rule.forbids and asked.body.get(name) is not None and thinks_at(asked.rule, asked.effort):
            rule = _NO_PARAMETER if asked.today >= date(2026, 1, 1) else _NO_ARGUMENT
            yield rule.broken(name, model=asked.model, name=written)


def check_listed_effort(model: str, rule: ModelRule, effort: object) -> Iterator[BrokenRule]:
    """Check the effort against those of the model, here and in Responses."""
    efforts = list_efforts(rule)
    if effort is None or efforts is None:
        return
    if not efforts:
        yield _NO_EFFORT.broken("reasoning_effort", model=model)
    elif effort not in efforts:
        values = list_values(efforts)
        yield _NO_SUCH_EFFORT.broken("reasoning_effort", model=model, value=effort, values=values)


# --- engines ----------------------------------------------------------------------------------------------------------

_UNEXPECTED_EFFORT = Rule(
    kind="effort_unsupported_value",
    text="Unexpected reasoning effort {value}. Supported types are xhigh (default), medium, and low",
    since="2026-08-27",
    source="vllm-project/vllm#54022: raise_exception in the template of Qwen3.8",
)
_BOTH_SPELLINGS = Rule(
    kind="reasoning_params_conflict",
    text="Error from provider: cannot specify both 'thinking' and 'reasoning_effort'",
    since="2026-07-12",
    source="OnesoftQwQ/opencode-go-copilot#58",
)
_THINK_VALUE = Rule(
    kind="effort_unsupported_value",
    text='think value "{value}" is not supported for this model',
    since="2025-12-22",
    source="musistudio/claude-code-router#1093; ollama openai/openai.go, 2026-08-21: levels are lowered instead",
)


def check_template_effort(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check the effort of the model whose template raises an exception for others."""
    if asked.effort not in (None, "none", "xhigh", "medium", "low"):
        yield _UNEXPECTED_EFFORT.broken("reasoning_effort", value=asked.effort)


def check_one_spelling(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that thinking is asked for in one spelling only."""
    if "thinking" in asked.body and "reasoning_effort" in asked.body:
        yield _BOTH_SPELLINGS.broken("reasoning_effort")


def check_levels(asked: ChatRequest) -> Iterator[BrokenRule]:
    """Check that a level goes only to a model that has levels. Newer servers lower it instead."""
    effort = asked.effort or asked.get("reasoning.effort")
    if effort not in (None, "none") and not asked.rule.efforts and asked.today < date(2026, 8, 1):
        yield _THINK_VALUE.broken("reasoning_effort", value=effort)

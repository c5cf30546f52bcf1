"""Rules for the settings of a chat, host by host: efforts, switches, budgets, sampling, forced tools, unknown fields.

Written from the documented rules and from reported errors. Not here: OpenAI's own (openai_settings), and messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from asides.testing.stage.rules.openai_chat.chat_request import ChatRequest
from asides.testing.stage.rules.openai_chat.error_bodies import Fault, HostRule
from asides.testing.stage.rules.openai_generations import list_values

# --- DeepSeek ---------------------------------------------------------------------------------------------------------

_NO_FORCED_TOOL = HostRule(
    kind="tool_choice_with_thinking",
    text="Thinking mode does not support this tool_choice",
    code="invalid_request_error",
    since="2026-04-24",
    source="osaurus-ai/osaurus#1940; tickernelz/opencode-mem#253",
)


def check_deepseek_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that no tool is forced while the model thinks."""
    thinks = asked.thinks(by_default=asked.name != "deepseek-chat")
    if asked.forced_tool and thinks and asked.today >= date(2026, 4, 24):
        yield _NO_FORCED_TOOL.fault()


# --- Kimi -------------------------------------------------------------------------------------------------------------

_TOOL_CHOICE = HostRule(
    kind="tool_choice_with_thinking",
    text="tool_choice '{choice}' is incompatible with thinking enabled",
    since="2026-04-22",
    source="AstrBotDevs/AstrBot#7805; can1357/oh-my-pi#827; UKGovernmentBEIS/inspect_ai#5152: K3 takes 'required'",
)
_ONLY_ALLOWED = HostRule(
    kind="sampling_with_thinking",
    text="invalid {name}: only {value} is allowed for this model",
    since="2026-01-27",
    source="MoonshotAI/kimi-code#686: 0.6 with thinking off; platform.moonshot.ai kimi-k2-5: 1 and top_p 0.95",
)
_EFFORT_LIST = HostRule(
    kind="effort_unsupported_value",
    text="Unsupported value: 'reasoning_effort' does not support '{value}' with this model. Supported values are: "
    "{values}.",
    since="2026-06-08",
    source="Kilo-Org/cloud#3807",
)
_THINKING_TYPE = HostRule(
    kind="unknown_param",
    text="the thinking field in the request (expected type object) is illegal, and {type} is not acceptable",
    since="2025-12-30",
    source="LionSR/TeXRA#1905",
)
_ONLY_ENABLED = HostRule(
    kind="thinking_cannot_disable",
    text="invalid thinking: only type=enabled is allowed for this model",
    since="2026-08",
    source="vercel/ai moonshotai-chat-options.ts: an error, measured; unsure: the words",
)
_KIMI_EFFORTS = ("minimal", "low", "medium", "high")
_KIMI_3_EFFORTS = ("low", "high", "max")


def check_kimi_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the switch, the effort, forced tools and sampling."""
    if "thinking" in asked.body and not isinstance(asked.body["thinking"], dict):
        kind = {bool: "bool", str: "string", int: "number"}.get(type(asked.body["thinking"]), "null")
        yield _THINKING_TYPE.fault(type=kind)
    newest = re.match(r"kimi-k[3-9]", asked.name) is not None
    if asked.switch == "disabled" and (newest or "k2.7-code" in asked.name):
        yield _ONLY_ENABLED.fault()
    efforts = _KIMI_3_EFFORTS if newest else _KIMI_EFFORTS
    if asked.effort is not None and asked.effort not in efforts:
        yield _EFFORT_LIST.fault(value=asked.effort, values=list_values(efforts))
    if re.match(r"kimi-(?:k2\.[5-9]|k[3-9])", asked.name) is None:
        return
    thinks = asked.thinks(by_default=True)
    if asked.forced_tool and thinks and not (newest and asked.forced_tool == "required"):
        yield _TOOL_CHOICE.fault(choice=asked.forced_tool)
    for name, value in (("temperature", 1 if thinks else 0.6), ("top_p", 0.95)):
        if asked.body.get(name) not in (None, value):
            yield _ONLY_ALLOWED.fault(name=name, value=value)


# --- GLM --------------------------------------------------------------------------------------------------------------

_ALWAYS_THINKS = HostRule(
    kind="thinking_cannot_disable",
    text="This model always engages in thinking and cannot be disabled; please use low, high, or max",
    code="1210",
    since="2026-09-14",
    source="sam-dumont/immich-video-memory-generator#919; from 2026-10-19 the effort none is taken (ceulen v0.23)",
)


def check_glm_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that a model that always thinks is not switched off."""
    off = asked.switch == "disabled" or (asked.effort == "none" and asked.today < date(2026, 10, 19))
    if asked.name.startswith("glm-5.3") and off:
        yield _ALWAYS_THINKS.fault()


# --- Qwen at DashScope ------------------------------------------------------------------------------------------------

_NOT_STREAMED = HostRule(
    kind="stream_required",
    text="parameter.enable_thinking must be set to false for non-streaming calls",
    since="2025-07-22",
    source="infiniflow/ragflow#8972",
)
_ONLY_STREAMED = HostRule(
    kind="stream_required",
    text="This model only support stream mode, please enable the stream parameter to access the model. ",
    since="2025-03",
    source="errors of the live service in public reports, such as langgenius/dify#15484",
)
_NO_STREAM = HostRule(
    kind="stream_required",
    text="enable thinking can not be support when `stream=False`.",
    since="2025-10-23",
    source="musistudio/claude-code-router#948",
)
_BUDGET = HostRule(
    kind="budget_out_of_range",
    text="<400> InternalError.Algo.InvalidParameter: The thinking_budget parameter must be a positive integer and not "
    "greater than {most}",
    since="2026-08-16",
    source="QwenLM/Qwen-Agent#942",
)
_RESTRICTED = HostRule(
    kind="thinking_cannot_disable",
    text="The value of the enable_thinking parameter is restricted to True.",
    since="2026-07-26",
    source="ten public files, such as those of qwen3.7-max-preview clients; help.aliyun.com deep-thinking",
)
_FORCED_IN_THINKING = HostRule(
    kind="tool_choice_with_thinking",
    text="<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required "
    "or object in thinking mode",
    since="2026-04-24",
    source="cloudwego/eino#994",
)
# qwen3.8-max itself can be switched (help.aliyun.com deep-thinking, 2026-11).
_ALWAYS_ON = re.compile(r"qwen3\.[78]-max-preview|.*-thinking|qwq|qvq")
# Open weights that think unless they are told not to, and only in a stream.
_OPEN_HYBRIDS = re.compile(r"qwen3-\d+(?:\.\d+)?b(?!.*-(?:instruct|thinking))")
_NEVER = re.compile(r".*-instruct|qwen3-coder|qwen2")


def check_qwen_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the switch, the budget, streams and forced tools."""
    name, enabled = asked.name, asked.body.get("enable_thinking")
    always = _ALWAYS_ON.match(name) is not None
    if always and enabled is False:
        yield _RESTRICTED.fault()
    never = _NEVER.match(name) is not None
    thinks = always or (not never and asked.thinks(by_default=_OPEN_HYBRIDS.match(name) is not None))
    if thinks and asked.body.get("stream") is not True:
        if re.match(r"qwq|qvq", name):
            yield _ONLY_STREAMED.fault()
        elif _OPEN_HYBRIDS.match(name):
            yield _NOT_STREAMED.fault()
    budget = asked.body.get("thinking_budget")
    most = 0 if never else 81_920
    if budget is not None and (not isinstance(budget, int) or not 0 < budget <= most):
        yield _BUDGET.fault(most=most)
    if thinks and asked.forced_tool:
        yield _FORCED_IN_THINKING.fault()


def check_modelscope_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking that is asked for is streamed."""
    if asked.body.get("enable_thinking") is True and asked.body.get("stream") is not True:
        yield _NO_STREAM.fault()


# --- MiniMax ----------------------------------------------------------------------------------------------------------

_SWITCH_TYPES = HostRule(
    kind="thinking_mode_unsupported",
    text='invalid params, invalid thinking.type: "{value}" (allowed: adaptive, disabled)',
    since="2026-06-24",
    source="HenriGrimm/Minnow#364",
)


def check_minimax_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the values of the switch."""
    if asked.name.startswith("minimax-m3") and asked.switch not in (None, "adaptive", "disabled"):
        yield _SWITCH_TYPES.fault(value=asked.switch)


# --- Groq and Cerebras ------------------------------------------------------------------------------------------------

_MUST_BE_ONE = HostRule(
    kind="effort_unsupported_value",
    text="`reasoning_effort` must be one of {values}",
    since="2026-03-02",
    source="iamsrikanthnani/pluely#219; earendil-works/pi#1745",
)
_NOT_WITH_MODEL = HostRule(
    kind="effort_unsupported_param",
    text="`reasoning_effort` is not supported with this model",
    since="2025-08-14",
    source="errors of the live service in public reports; unsure: the words",
)
_UNSUPPORTED = HostRule(
    kind="unknown_param",
    text="property '{name}' is unsupported",
    since="2026-02-11",
    source="musistudio/claude-code-router#1204; musistudio/llms#64",
)
_UNSUPPORTED_HERE = HostRule(
    kind="unknown_param",
    text="{name}: property '{name}' is unsupported",
    since="2026-09-15",
    source="OpenMinis/OpenMinis#361",
)
_BOTH_FORMATS = HostRule(
    kind="reasoning_params_conflict",
    text="cannot specify both `reasoning_format` and `include_reasoning`",
    since="2025-08",
    source="console.groq.com docs/reasoning: mutually exclusive; unsure: the words",
)
# The spellings of other hosts.
_FOREIGN = ("reasoning", "thinking", "enable_thinking", "thinking_budget", "chat_template_kwargs", "top_k")


def check_groq_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the efforts of each model, and the fields of other hosts."""
    yield from (_UNSUPPORTED.fault(name=name) for name in _FOREIGN if name in asked.body)
    if "reasoning_format" in asked.body and "include_reasoning" in asked.body:
        yield _BOTH_FORMATS.fault()
    if asked.effort is None:
        return
    if "gpt-oss" in asked.name:
        if asked.effort not in ("low", "medium", "high"):
            yield _MUST_BE_ONE.fault(values="`low`, `medium`, or `high`")
    elif re.search(r"qwen-?3", asked.name):
        if asked.effort not in ("none", "default"):
            yield _MUST_BE_ONE.fault(values="`none` or `default`")
    else:
        yield _NOT_WITH_MODEL.fault()


def check_cerebras_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the fields of other hosts, and that the models that always think are not switched off."""
    yield from (_UNSUPPORTED_HERE.fault(name=name) for name in _FOREIGN if name in asked.body)
    if "gpt-oss" in asked.name and asked.effort not in (None, "low", "medium", "high"):
        yield _MUST_BE_ONE.fault(values="`low`, `medium`, or `high`")


# --- Mistral ----------------------------------------------------------------------------------------------------------

_PROMPT_MODE = HostRule(
    kind="thinking_mode_unsupported",
    text="Reasoning prompt mode is not enabled for this model",
    code="3051",
    since="2026-04-13",
    source="earendil-works/pi#3096",
)
_EXTRA_FIELD = HostRule(
    kind="unknown_param",
    text="Extra inputs are not permitted",
    status=422,
    param="{name}",
    code="extra_forbidden",
    since="2026-04-22",
    source="NousResearch/hermes-agent#11390: the form of the error",
)
_NONE_OR_HIGH = HostRule(
    kind="effort_unsupported_value",
    text="Input should be 'none' or 'high'",
    status=422,
    param="reasoning_effort",
    code="literal_error",
    since="2026-06-30",
    source="mistralai/client-python, the type of the field; unsure: the words",
)


def check_mistral_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the prompt mode, the effort, and the fields of other hosts."""
    if asked.body.get("prompt_mode") is not None and not asked.name.startswith("magistral"):
        yield _PROMPT_MODE.fault()
    foreign = (*_FOREIGN[:5], "reasoning_format", "include_reasoning")
    yield from (_EXTRA_FIELD.fault(name=name, quoted=asked.body[name]) for name in foreign if name in asked.body)
    if asked.effort not in (None, "none", "high"):
        yield _NONE_OR_HIGH.fault(quoted=asked.effort)


# --- xAI --------------------------------------------------------------------------------------------------------------

_NO_PARAMETER = HostRule(
    kind="sampling_unsupported",
    text="Model {model} does not support parameter {name}.",
    since="2026-02-08",
    source="open-webui/open-webui#21266",
)
_NO_ARGUMENT = HostRule(
    kind="sampling_unsupported",
    text="Argument not supported on this model: {name}",
    since="2025-04-24",
    source="yym68686/uni-api#105",
)
_NO_EFFORT = HostRule(
    kind="effort_unsupported_param",
    text="Model {model} does not support parameter reasoningEffort.",
    since="2025-11-05",
    source="BerriAI/litellm#16265",
)
_NO_SUCH_EFFORT = HostRule(
    kind="effort_unsupported_value",
    text="Model {model} does not support reasoning effort '{value}'. Supported values are: {values}.",
    since="2026-08",
    source="docs.x.ai guides/reasoning: an error; unsure: the words",
)
_GROK_EFFORTS = (
    (re.compile(r"grok-3-mini"), ("low", "high")),
    (re.compile(r"grok-4\.3"), ("none", "low", "medium", "high")),
    (re.compile(r"grok-4\.[67]"), ("low", "medium", "high", "xhigh")),
    (re.compile(r"grok-4\.5"), ("low", "medium", "high")),
    (re.compile(r"grok-(?:2|3|4(?:-|$)|4\.20|code)"), ()),
)


def check_grok_settings(asked: ChatRequest) -> Iterator[Fault]:
    """Check the effort, and the settings that models which think do not take."""
    yield from check_grok_effort(asked.model, asked.effort)
    thinks = re.match(r"grok-(?:3-mini|4|5|code)", asked.name) and "non-reasoning" not in asked.name
    refused = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "stop": "stop"}
    for name, written in refused.items():
        if thinks and asked.body.get(name) is not None:
            rule = _NO_PARAMETER if asked.today >= date(2026, 1, 1) else _NO_ARGUMENT
            yield rule.fault(model=asked.model, name=written)


def check_grok_effort(model: str, effort: object) -> Iterator[Fault]:
    """Check the effort, here and in Responses."""
    if effort is None:
        return
    name = model.lower().rpartition("/")[2]
    efforts = next((efforts for pattern, efforts in _GROK_EFFORTS if pattern.match(name)), None)
    if efforts == ():
        yield _NO_EFFORT.fault(model=model)
    elif efforts is not None and effort not in efforts:
        yield _NO_SUCH_EFFORT.fault(model=model, value=effort, values=list_values(efforts))


# --- engines ----------------------------------------------------------------------------------------------------------

_UNEXPECTED_EFFORT = HostRule(
    kind="effort_unsupported_value",
    text="Unexpected reasoning effort {value}. Supported types are xhigh (default), medium, and low",
    since="2026-08-27",
    source="vllm-project/vllm#54022: raise_exception in the template of Qwen3.8",
)
_BOTH_SPELLINGS = HostRule(
    kind="reasoning_params_conflict",
    text="Error from provider: cannot specify both 'thinking' and 'reasoning_effort'",
    since="2026-07-12",
    source="OnesoftQwQ/opencode-go-copilot#58",
)
_THINK_VALUE = HostRule(
    kind="effort_unsupported_value",
    text='think value "{value}" is not supported for this model',
    since="2025-12-22",
    source="musistudio/claude-code-router#1093; ollama openai/openai.go, 2026-08-21: levels are lowered instead",
)


def check_template_effort(asked: ChatRequest) -> Iterator[Fault]:
    """Check the effort of the model whose template raises an exception for others."""
    if "qwen3.8" in asked.name and asked.effort not in (None, "none", "xhigh", "medium", "low"):
        yield _UNEXPECTED_EFFORT.fault(value=asked.effort)


def check_one_spelling(asked: ChatRequest) -> Iterator[Fault]:
    """Check that thinking is asked for in one spelling only."""
    if "thinking" in asked.body and "reasoning_effort" in asked.body:
        yield _BOTH_SPELLINGS.fault()


def check_levels(asked: ChatRequest) -> Iterator[Fault]:
    """Check that a level goes only to a model that has levels. Newer servers lower it instead."""
    effort = asked.effort or asked.get("reasoning.effort")
    if effort not in (None, "none") and "gpt-oss" not in asked.name and asked.today < date(2026, 8, 1):
        yield _THINK_VALUE.fault(value=effort)

"""OpenAI's models, at every host: in chat completions (`GPT_MODELS`) and in Responses (`GPT_RESPONSES_MODELS`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from asides.providers.models import LOW_TO_HIGH, LOW_TO_MAX, LOW_TO_XHIGH, never_thinks
from asides.providers.provider import ModelRule, Sampled
from asides.providers.quirks import EffortUpdates, FileKind
from asides.values.thinking import Effort

_MEASURED = "pydantic-ai profiles/openai.py, measured on the live API; unsure: the list of efforts, stop"

_GPT_6 = "openrouter.ai guide to GPT-6; docs.laozhang.ai; unsure: the list of efforts"

_TERRA = (
    "pydantic-ai 2.66 profiles/openai.py after developers.openai.com guides/latest-model; openai-python 3.49; "
    "docs.oxen.ai gpt-6-1-terra; tools in chat: as the rest of the family"
)

_ROSALIND = "openai-python 3.51 shared/responses_model: a model of Responses; litellm 1.109: its efforts"

_NO_MAX_IN_CHAT = "chat completions refuse the effort max on every model (checked on the live service, 2026-11)"

_LATEST = "developers.openai.com models and pricing, in litellm 1.108: the one effort medium"

_DAYBREAK = "the list of models in OpenAI's codex 0.159, in litellm 1.108; unsure: whether it can be turned off"

_MODEL_PAGES = "platform.openai.com/docs/models, the page of each; unsure: the list of efforts"

_OPENAI_SAMPLING: tuple[Sampled, ...] = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
)


# Neither sound nor video: "modalities" on the page of each model (platform.openai.com/docs/models, 2026-11). A PDF is
# sent as text and pictures of its pages, so it needs a model that sees (docs/guides/pdf-files).
_NO_SOUND: tuple[FileKind, ...] = ("audio", "video")
_TEXT_ONLY: tuple[FileKind, ...] = ("audio", "video", "pdf")


def _without_pictures(rule: ModelRule, *, refuses: tuple[FileKind, ...] = _TEXT_ONLY) -> ModelRule:
    return msgspec.structs.replace(rule, pictures=False, refuses_files=refuses)


def _gpt(
    models: str,
    thinking: Literal["always", "optional", "unknown"],
    efforts: tuple[Effort, ...] | None,
    *,
    default: Literal["on", "off"] | None = "on",
    tools: bool | Literal["off"] = True,
    endpoint: Literal["either", "responses"] = "either",
    forbids: tuple[Sampled, ...] = _OPENAI_SAMPLING,
    since: str = "2026-07",
    source: str = _MEASURED,
) -> ModelRule:
    """A reasoning model of OpenAI: no thinking text in chat, other names for the limit and the system role."""
    return ModelRule(
        models=models,
        thinking=thinking,
        default=default,
        kind="hidden",
        efforts=efforts,
        off_as_effort=thinking != "always",
        forbids=forbids,
        tools_while_thinking=tools,
        # BerriAI/litellm#34569, 2026-07: from 5.6 on, tools are refused also without an effort.
        tools_need_off=tools is not True and (tools == "off" or models.startswith("gpt-6")),
        endpoint=endpoint,
        output_limit="max_completion_tokens",
        system_role="developer",
        # Audio input of unlisted models: unknown.
        refuses_files=None if thinking == "unknown" else _NO_SOUND,
        since=since,
        source=source,
    )


_FORMS = "platform.openai.com/docs/guides/structured-outputs and the page of each model; unsure: from memory"


# "Max output tokens" on the page of each model (platform.openai.com/docs/models; unsure: as tables of other projects
# repeat it, 2026-11). Of gpt-4 it is the context: "maximum context length is 8192 tokens" (ChatGPT-Next-Web#3195).
_TURBO_OUTPUT, _GPT_4_OUTPUT, _GPT_4O_OUTPUT = 4_096, 8_192, 16_384


def _older_gpt(
    models: str, structured_output: Literal["json_object", "nothing"], max_output: int | None = None
) -> ModelRule:
    """A model without thinking that takes no schema."""
    return ModelRule(
        models=models,
        thinking="never",
        efforts=(),
        structured_output=structured_output,
        max_output=max_output,
        since="2026-07",
        source=f"{_MEASURED}; {_FORMS}",
    )


def _without_forms(rule: ModelRule) -> ModelRule:
    """A model that takes neither tools nor a schema."""
    return msgspec.structs.replace(rule, tools=False, structured_output="nothing", source=f"{rule.source}; {_FORMS}")


_DESCRIBED = (
    _gpt("gpt-6.1-sol*", "always", LOW_TO_MAX, tools=False, since="2026-11-04", source=_GPT_6),
    _gpt("gpt-6.1-terra*", "optional", LOW_TO_MAX, tools="off", since="2026-11-15", source=_TERRA),
    _gpt("gpt-6-astra*", "always", LOW_TO_MAX, tools=False, since="2026-11-04", source=_GPT_6),
    _gpt("gpt-6-sol*", "optional", LOW_TO_MAX, default=None, tools="off", since="2026-11-04", source=_GPT_6),
    _gpt("gpt-6-luna*", "optional", LOW_TO_MAX, default=None, tools="off", since="2026-11-04", source=_GPT_6),
    _gpt("gpt-6-rosalind*", "always", LOW_TO_MAX, endpoint="responses", since="2026-11-18", source=_ROSALIND),
    _gpt("gpt-6*", "unknown", None, default=None, tools=False, since="2026-11-04", source=_GPT_6),
    # From 5.4 on, tools and an effort together are refused in this dialect (docs.apiyi.com responses-migration). From
    # 5.6 on also tools alone: "use /v1/responses or set reasoning_effort to 'none'" (2026-07).
    _gpt("gpt-5.6*", "optional", LOW_TO_MAX, tools="off"),
    _gpt("gpt-5.[245]-pro*", "always", ("medium", "high", "xhigh"), tools=False, endpoint="responses"),
    _gpt("gpt-5.5*", "optional", LOW_TO_XHIGH, tools=False),
    _gpt("gpt-5.[123]-chat*", "always", ("medium",)),
    # The newest chat model under a name that stays. Azure writes it with the family in front.
    _gpt("chat-latest*", "always", ("medium",), since="2026-11-15", source=_LATEST),
    _gpt("gpt-chat-latest*", "always", ("medium",), since="2026-11-15", source=_LATEST),
    _gpt("*daybreak-*", "optional", LOW_TO_MAX, tools="off", since="2026-11-15", source=_DAYBREAK),
    _gpt("gpt-5.4*", "optional", LOW_TO_XHIGH, default="off", tools=False),
    _gpt("gpt-5.3*", "optional", LOW_TO_XHIGH, default="off"),
    _gpt("gpt-5.2*", "optional", LOW_TO_XHIGH, default="off"),
    _gpt("gpt-5.1-codex-max*", "always", LOW_TO_XHIGH),
    _gpt("gpt-5.1-codex*", "always", LOW_TO_HIGH),
    _gpt("gpt-5.1*", "optional", LOW_TO_HIGH, default="off"),
    _gpt("gpt-5.*", "unknown", None, default=None),
    never_thinks("gpt-5-chat*", "2026-07", _MEASURED),
    _gpt("gpt-5-pro*", "always", ("high",), endpoint="responses"),
    _gpt("gpt-5-codex*", "always", LOW_TO_HIGH, endpoint="responses"),
    # "Unsupported parameter: 'stop' is not supported with this model." (recorded: gpt-5-mini).
    _gpt("gpt-5-*", "always", ("minimal", *LOW_TO_HIGH), forbids=(*_OPENAI_SAMPLING, "stop")),
    _gpt("gpt-5", "always", ("minimal", *LOW_TO_HIGH), forbids=(*_OPENAI_SAMPLING, "stop")),
    # They take neither the role system nor developer (recorded: o1-mini).
    msgspec.structs.replace(_without_pictures(_without_forms(_gpt("o1-mini*", "always", ()))), system_role="user"),
    msgspec.structs.replace(_without_forms(_gpt("o1-preview*", "always", ())), system_role="user"),
    # "Available in the Responses API only", as their pages say.
    _gpt("o[13]-pro*", "always", LOW_TO_HIGH, endpoint="responses", source=_MODEL_PAGES),
    _gpt("o[34]*-deep-research*", "always", (), endpoint="responses", source=_MODEL_PAGES),
    _gpt("codex-mini*", "always", LOW_TO_HIGH, endpoint="responses", source=_MODEL_PAGES),
    _gpt("computer-use-preview*", "always", (), endpoint="responses", source=_MODEL_PAGES),
    _gpt("o1*", "always", LOW_TO_HIGH),
    # Of the small models, o4-mini is the first that takes pictures (vercel.com/ai-gateway/models/o4-mini, 2026-11).
    _without_pictures(_gpt("o3-mini*", "always", LOW_TO_HIGH, forbids=(*_OPENAI_SAMPLING, "stop"))),
    _gpt("o[34]*", "always", LOW_TO_HIGH, forbids=(*_OPENAI_SAMPLING, "stop")),
    # gpt-4o takes a schema from 2024-08 on. Models before it take JSON without a schema, and the oldest neither.
    _older_gpt("gpt-4o-2024-05*", "json_object", _TURBO_OUTPUT),
    _older_gpt("gpt-4-turbo*", "json_object", _TURBO_OUTPUT),
    _older_gpt("gpt-4-1106*", "json_object", _TURBO_OUTPUT),
    _older_gpt("gpt-4-0125*", "json_object", _TURBO_OUTPUT),
    _older_gpt("gpt-4", "nothing", _GPT_4_OUTPUT),
    _older_gpt("gpt-4-0[36]*", "nothing", _GPT_4_OUTPUT),
    _older_gpt("gpt-4-32k*", "nothing"),
    # Models that hear and speak do not see.
    _without_pictures(never_thinks("gpt-4o*-audio*", "2026-11-15", _MODEL_PAGES), refuses=("video", "pdf")),
    _without_pictures(never_thinks("gpt-audio*", "2026-11-15", _MODEL_PAGES), refuses=("video", "pdf")),
    # These hear too. OpenAI has them at endpoints of their own; gateways have them in chat.
    never_thinks("gpt-4o*-realtime*", "2026-11-16", _MODEL_PAGES),
    never_thinks("gpt-4o*-transcribe*", "2026-11-16", _MODEL_PAGES),
    msgspec.structs.replace(
        never_thinks("gpt-4o*", "2026-07", _MEASURED), refuses_files=_NO_SOUND, max_output=_GPT_4O_OUTPUT
    ),
    msgspec.structs.replace(never_thinks("gpt-4.1*", "2026-07", _MEASURED), refuses_files=_NO_SOUND),
    msgspec.structs.replace(never_thinks("gpt-4*", "2026-07", _MEASURED), refuses_files=_NO_SOUND),
    _older_gpt("gpt-3.5*", "json_object"),
    _without_forms(never_thinks("chatgpt-*", "2026-07", _MEASURED)),
)


# The most input tokens: platform.openai.com/docs/models, 2026-11, and the errors of the live service.
_INPUT_LIMITS = (
    ("gpt-6", None),
    ("gpt-5-chat", 128_000),
    ("gpt-5", 272_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o", 200_000),
    ("codex-mini", 200_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4", 128_000),
    ("gpt-3.5", 128_000),
    ("gpt-audio", 128_000),
)


def _find_input_limit(models: str) -> int | None:
    return next((limit for name, limit in _INPUT_LIMITS if models.startswith(name)), None)


_ALL = tuple(msgspec.structs.replace(rule, input_limit=_find_input_limit(rule.models)) for rule in _DESCRIBED)


def _convert_to_chat(rule: ModelRule) -> ModelRule:
    """The same model in chat completions, which take no effort max."""
    if rule.efforts is None or "max" not in rule.efforts:
        return rule
    efforts = tuple(effort for effort in rule.efforts if effort != "max")
    return msgspec.structs.replace(rule, efforts=efforts, source=f"{rule.source}; {_NO_MAX_IN_CHAT}")


GPT_MODELS = tuple(map(_convert_to_chat, _ALL))

# In chat, sol stops at xhigh everywhere (docs.laozhang.ai, 2026-11-04).
GPT_MODELS_ELSEWHERE = tuple(_convert_to_chat(rule) if rule.models == "gpt-6.1-sol*" else rule for rule in _ALL)
"""In chat completions of clouds that serve the models themselves: their own lists have the effort max."""


_UPDATES = EffortUpdates(
    always=True,  # its prompts are cached unasked
    since="2026-11-16",
    source="openrouter.ai model-migrations/gpt-6-astra; openai-python 3.49 response_configuration_update_item_param; "
    "unsure: the default effort",
)


def _convert_to_responses(rule: ModelRule) -> ModelRule:
    """The same model in Responses: it sends its thinking as a summary, and takes tools while it thinks."""
    if rule.thinking == "never":
        return rule
    if rule.models == "gpt-6-astra*":
        rule = msgspec.structs.replace(rule, effort_updates=_UPDATES)
    return msgspec.structs.replace(
        rule,
        kind="summary",
        tools_while_thinking=True,
        tools_need_off=False,
        # This dialect has no stop: its encoder reports that for every model.
        forbids=_OPENAI_SAMPLING,
        system_role="developer",
    )


GPT_RESPONSES_MODELS = tuple(map(_convert_to_responses, _ALL))

_AZURE = "litellm 1.109, its rows of azure and azure_ai"


def at_azure(rules: tuple[ModelRule, ...]) -> tuple[ModelRule, ...]:
    """The same models at Azure: its gpt-6-astra takes no effort max, and its gpt-6.1-terra cannot stop thinking."""
    changed: list[ModelRule] = []
    for rule in rules:
        if rule.models == "gpt-6-astra*":
            rule = msgspec.structs.replace(rule, efforts=LOW_TO_XHIGH, since="2026-11-18", source=_AZURE)
        elif rule.models == "gpt-6.1-terra*":
            tools = rule.tools_while_thinking is True
            rule = msgspec.structs.replace(
                rule,
                thinking="always",
                off_as_effort=False,
                tools_while_thinking=tools,
                since="2026-11-18",
                source=_AZURE,
            )
        changed.append(rule)
    return tuple(changed)


def gpt_oss(models: str, since: str, source: str, *, tags: tuple[str, ...] | None = None) -> ModelRule:
    """OpenAI's open weights: they always think, at three efforts."""
    return ModelRule(
        models=models,
        thinking="always",
        default="on",
        efforts=LOW_TO_HIGH,
        off_as_effort=False,
        tags=tags,
        pictures=False,
        refuses_files=_NO_SOUND,
        since=since,
        source=source,
    )

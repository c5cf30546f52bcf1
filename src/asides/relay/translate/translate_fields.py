"""Fit a caller's request to a target of another dialect: `fit_prompt(served, caller, target) → (Prompt, notices)`.

Nothing that only the caller's dialect has goes into a foreign body. Notices say what is left out; a request whose
answer would be wrong without it is refused (`UntranslatableField`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.relay.state.sealed_summary import drop_foreign_compactions, takes_compactions
from asides.relay.translate.field_rules import SAMPLING_RULES, UNKNOWN, FieldRule, find_rule, split_fields
from asides.relay.translate.fit_sampling import fit_sampling
from asides.relay.translate.foreign_messages import drop_attribution, fit_messages
from asides.relay.translate.tool_names import TOOL_LISTS, ToolMap, map_tools, rename_calls
from asides.values.errors import Unsupported
from asides.values.messages import Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.tools import Tool, read_cache_control

# "Invalid 'user': string too long. Expected a string with maximum length 64" (OpenAI, chat and Responses, 2026).
_LONGEST_USER = 64
# How many fields are reported by name, and how much of a name.
_MOST_NAMED = 50
_MOST_CHARACTERS = 100
_NAMES_USER = ("openai_chat", "openai_responses")
_MAKER_FIELDS = ("openai_chat", "openai_responses")
"""Two dialects of one maker, whose service tiers, verbosity and caches are the same."""
_HAS_METADATA = ("openai_responses", "bedrock")
# "Expected a value >= 16" (Responses, max_output_tokens, 2026).
_LEAST_OUTPUT = {"openai_responses": 16}
_CHOICES = ("auto", "none", "required")
_NO_STATE = ProviderState()
_ENCRYPTED = "reasoning.encrypted_content"


class UntranslatableField(Unsupported):
    """A field of the request without which the answer would be wrong. A server answers 400."""

    def __init__(self, message: str, param: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.param = param
        """The name of the field."""
        self.details = details
        """More about the error, for the dialect whose clients read it."""


def fit_prompt(
    served: ServedRequest, caller: str, target: Target, *, is_passed: bool = False
) -> tuple[Prompt, tuple[Notice, ...]]:
    """Return the prompt for this target, and notices of what is left out or changed. `is_passed`: the reply comes back
    as the provider sends it.

    In the caller's own dialect all fields stay. Raises UntranslatableField.
    """
    prompt = served.prompt
    if not is_passed:
        refuse_fields(prompt, caller, target)
    notices: list[Notice] = []
    if caller == RESPONSES and not takes_compactions(target):
        prompt = msgspec.structs.replace(prompt, messages=drop_foreign_compactions(prompt.messages, notices))
    if caller != target.dialect:
        prompt = _translate(prompt, caller, target, notices)
    elif _is_plain_host(prompt, caller, target):
        prompt = _flatten_tools(prompt, caller, target)
    if prompt.output is not None:
        from asides.relay.translate.fit_output import fit_output

        prompt, changed = fit_output(prompt, caller, target)
        notices += changed
    return prompt, tuple(notices)


def _translate(prompt: Prompt, caller: str, target: Target, notices: list[Notice]) -> Prompt:
    prompt = msgspec.structs.replace(prompt, messages=fit_messages(prompt.messages, target.dialect, notices))
    tools, names, left_out = map_tools(prompt, caller, target.dialect, target)
    notices += left_out
    choice, allowed = _find_choice(prompt, caller, names, notices)
    if allowed is not None:
        notices += [
            Notice("field_not_sent", f"{tool.name} was left out: tool_choice allows only certain functions", "tools")
            for tool in tools
            if tool.native is not None
        ]
        tools = tuple(tool for tool in tools if tool.native is None and tool.name in allowed)
    choice = _check_choice(choice, tools, notices)
    user, metadata = _fit_user(prompt, target, notices)
    sampling, stop = fit_sampling(prompt, target, notices)
    return msgspec.structs.replace(
        prompt,
        messages=rename_calls(prompt.messages, names),
        system=drop_attribution(prompt.system),
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        stop=stop,
        state=_fit_state(prompt.state, notices),
        max_tokens=_fit_limit(prompt.max_tokens, target, notices),
        user=user,
        metadata=metadata,
        cache=prompt.cache or read_cache_control(prompt.extra) if caller == "anthropic" else prompt.cache,
        extra=_translate_extra(prompt.extra, caller, target, notices),
    )


def find_tool_map(served: ServedRequest, caller: str, target: Target) -> ToolMap:
    """Return the names of the tools on both sides, for the reply: as `fit_prompt` has sent them."""
    if caller == target.dialect and not _is_plain_host(served.prompt, caller, target):
        return ToolMap()
    return map_tools(served.prompt, caller, target.dialect)[1]


def _is_plain_host(prompt: Prompt, caller: str, target: Target) -> bool:
    """Whether a host speaks the caller's dialect but does not know its tools in namespaces and with free text: servers
    of open weights take functions alone (vLLM, SGLang, Ollama; 2026-09). They do not encrypt reasoning either.
    """
    listed = prompt.extra.get("tools")
    if caller != "openai_responses" or target.quirks.encrypted_reasoning or not isinstance(listed, list):
        return False
    return any(isinstance(tool, Mapping) and tool.get("type") in ("namespace", "custom") for tool in listed)


def _flatten_tools(prompt: Prompt, caller: str, target: Target) -> Prompt:
    """Return the prompt with functions for such tools. The host's own tools stay."""
    tools, names, _ = map_tools(prompt, caller, target.dialect)
    own = [tool for tool in prompt.extra["tools"] if tool.get("type") not in ("function", "namespace", "custom")]
    natives = tuple(Tool(str(tool.get("type")), native=dict(tool)) for tool in own)
    extra = {name: value for name, value in prompt.extra.items() if name != "tools"}
    messages = rename_calls(prompt.messages, names)
    return msgspec.structs.replace(prompt, messages=messages, tools=(*tools, *natives), extra=extra)


# --- refused ----------------------------------------------------------------------------------------------------------


def refuse_fields(prompt: Prompt, caller: str, target: Target) -> None:
    """Raise UntranslatableField for the first field without which the answer would be wrong."""
    is_foreign = caller != target.dialect
    for name, value, rule in _list_ruled(prompt, caller):
        if rule.action == "refuse" and (rule.everywhere or is_foreign) and not _is_harmless(value, rule):
            raise _make_refusal(name, rule)
    if not is_foreign:
        return
    for name in ("conversation", "previous_response_id"):
        if getattr(prompt.state, name) is not None:
            why = "the conversation is stored only at the caller's provider"
            raise UntranslatableField(_describe_refusal(name, why), name)
    _refuse_hosted_tools(prompt, caller, target)


def _refuse_hosted_tools(prompt: Prompt, caller: str, target: Target) -> None:
    """Raise UntranslatableField if the request depends on a tool that only the caller's provider runs: it has no other
    tool, or demands this one. A model without it would answer from memory, and a person would take that for a search.
    """
    if prompt.tool_choice == "none" or prompt.extra.keys().isdisjoint(TOOL_LISTS):
        return
    left_out = map_tools(prompt, caller, target.dialect)[2]
    # As "web_search", or "search (web_search_20250305)".
    names = [str(notice.asked) for notice in left_out]
    given = prompt.extra.get("tool_choice")
    demanded = {prompt.tool_choice, given.get("type") if isinstance(given, Mapping) else None}
    found = next((name for name in names if demanded.intersection(name.rstrip(")").split(" ("))), None)
    tools, _, left_out = map_tools(prompt, caller, target.dialect, target)
    if found is not None or (left_out and not tools):
        name = found or str(left_out[0].asked)
        raise UntranslatableField(
            f"the model's provider does not run {name!r}. Leave it out, or ask a model whose provider runs it.",
            "tools",
        )


def find_unwritable(prompt: Prompt, caller: str) -> str | None:
    """Return the first field whose answer our events cannot hold; None if there is none."""
    for name, value, rule in _list_ruled(prompt, caller):
        if rule.everywhere and not _is_harmless(value, rule):
            return name
    return None


def _list_ruled(prompt: Prompt, caller: str) -> Iterator[tuple[str, Any, FieldRule]]:
    """List the fields that may be refused, with their rules."""
    for name, value in split_fields(caller, prompt.extra).items():
        yield name, value, find_rule(caller, name)
    for name, rule in SAMPLING_RULES.items():
        if value := getattr(prompt.sampling, name):
            yield name, value, rule


def _is_harmless(value: Any, rule: FieldRule) -> bool:
    return any(type(value) is type(each) and value == each for each in rule.harmless)


def _make_refusal(name: str, rule: FieldRule) -> UntranslatableField:
    if name == "thread":
        # The official tool runner sends its whole history again after this code (anthropic-sdk-python 2.8, 2026-11).
        details = {"error_code": "thread_unsupported_request"}
        return UntranslatableField(_describe_refusal(name, rule.why), name, details)
    return UntranslatableField(_describe_refusal(name, rule.why), name)


def _describe_refusal(name: str, why: str) -> str:
    return (
        f"{name} cannot be translated for this model: {why}. Leave {name} out, or ask a model of a provider "
        "that speaks this dialect itself."
    )


# --- other fields of the caller's dialect -----------------------------------------------------------------------------


def _translate_extra(extra: dict[str, Any], caller: str, target: Target, notices: list[Notice]) -> dict[str, Any]:
    """Return the fields that the target's dialect has too. Each other field becomes a notice."""
    sent: dict[str, Any] = {}
    quiet: list[str] = []
    dropped: list[Notice] = []
    for name, value in split_fields(caller, extra).items():
        rule = find_rule(caller, name)
        if name in ("tools", "tool_choice", "function_call") or name.startswith("toolConfig.") or name == "toolConfig":
            continue  # reported, or translated, with the tools
        if _is_harmless(value, rule):
            continue
        if rule.action == "translate":
            fields = _translate_field(name, value, caller, target)
            if fields is not None:
                sent |= fields
                continue
        if rule.action == "quiet":
            quiet.append(name)
        else:
            shown = name[:_MOST_CHARACTERS]
            dropped.append(Notice("field_not_sent", f"{shown} was left out: {rule.why}", shown))
    notices += dropped[:_MOST_NAMED]
    if len(dropped) > _MOST_NAMED:
        notices.append(Notice("fields_not_sent", f"{len(dropped) - _MOST_NAMED} more fields were left out"))
    if quiet:
        detail = f"fields for the caller's own provider were left out: {', '.join(sorted(quiet))}"
        notices.append(Notice("fields_not_sent", detail))
    return sent


def _translate_field(name: str, value: Any, caller: str, target: Target) -> dict[str, Any] | None:
    """Return a field of the caller's dialect as the target's has it; None if it has none."""
    if name in ("safety_identifier", "cache_control"):
        return {}  # `user` and `cache` of the prompt
    if caller not in _MAKER_FIELDS or target.dialect not in _MAKER_FIELDS:
        return None
    match name:
        case "prompt_cache_key" | "prompt_cache_retention" if target.quirks.cache_key:
            return {name: value}
        case "service_tier" if target.quirks.cache_key:
            return {name: value}
        case "verbosity" | "text.verbosity" if target.quirks.cache_key:
            return {"verbosity": value} if target.dialect == "openai_chat" else {"text": {"verbosity": value}}
        case _:
            return None


# --- settings of the prompt -------------------------------------------------------------------------------------------


def _find_choice(
    prompt: Prompt, caller: str, names: ToolMap, notices: list[Notice]
) -> tuple[str | None, set[str] | None]:
    """Return the choice of a tool by the names that are sent, and the tools that it allows; None: all."""
    choice, allowed = prompt.tool_choice, None
    given: Any = prompt.extra.get("tool_choice")
    config = prompt.extra.get("toolConfig")
    if isinstance(config, Mapping):
        given = config.get("functionCallingConfig")
        notices += [_tell(f"toolConfig.{name}") for name in config if name not in ("functionCallingConfig", "tools")]
    match given:
        case {"type": "allowed_tools", "allowed_tools": {"mode": str() as mode, "tools": list() as listed}} | {
            "type": "allowed_tools",
            "mode": str() as mode,
            "tools": list() as listed,
        }:
            choice, allowed = mode, {_name_choice(each, names) for each in listed}
        case {"mode": str() as mode, "allowedFunctionNames": list() as listed}:
            choice = "required" if mode == "ANY" else "auto"
            allowed = {names.find_sent(str(name)) for name in listed}
        case {"type": "custom"} | {"type": "function"}:
            return _name_choice(given, names), None
        case _:
            if given is not None:
                notices.append(_tell("tool_choice" if caller != "gemini" else "toolConfig.functionCallingConfig"))
            if choice is not None and choice not in _CHOICES:
                choice = names.find_sent(choice)
    return choice, allowed


def _check_choice(choice: str | None, tools: tuple[Tool, ...], notices: list[Notice]) -> str | None:
    """Return the choice, if it can be made: no tool that was left out can be demanded."""
    if choice is None or (choice in _CHOICES and (tools or choice != "auto")):
        return choice
    if any(tool.name == choice for tool in tools) or choice == "auto":
        return choice if tools else None
    notices.append(Notice("setting_dropped", "tool_choice names a tool that was left out", "tool_choice"))
    return None


def _tell(name: str) -> Notice:
    return Notice("field_not_sent", f"{name} was left out: {UNKNOWN.why}", name)


def _name_choice(given: Any, names: ToolMap) -> str:
    """Return the name that is sent for a tool which a choice names."""
    if not isinstance(given, Mapping):
        return ""
    kind = given.get("type")
    inner = given.get(kind) if isinstance(kind, str) else None
    named = inner if isinstance(inner, Mapping) else given
    namespace = named.get("namespace")
    return names.find_sent(str(named.get("name", "")), namespace if isinstance(namespace, str) else "")


def _fit_state(state: ProviderState, notices: list[Notice]) -> ProviderState:
    """No other dialect stores conversations. What the relay does itself needs no notice."""
    lost = [
        name for name in ("truncation", "context", "mode") if getattr(state, name) not in (None, "disabled", "auto")
    ]
    if state.truncation == "auto":
        lost.append("truncation")
    lost += [f"include: {each}" for each in state.include if each != _ENCRYPTED]
    notices += [
        Notice("field_not_sent", f"{name} was left out: only the caller's provider has it", name.partition(":")[0])
        for name in dict.fromkeys(lost)
    ]
    return _NO_STATE


def _fit_user(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[str | None, dict[str, str] | None]:
    user, metadata = prompt.user, prompt.metadata
    identifier = prompt.extra.get("safety_identifier")
    if user is None and isinstance(identifier, str):
        user = identifier
    if user is not None and len(user) > _LONGEST_USER and target.dialect in _NAMES_USER:
        user = sha256(user.encode()).hexdigest()
        notices.append(Notice("user_shortened", "the user's id is too long here; its digest was sent", "user"))
    if metadata is not None and target.dialect not in _HAS_METADATA:
        metadata = None
        notices.append(Notice("fields_not_sent", "fields for the caller's own provider were left out: metadata"))
    return user, metadata


def _fit_limit(limit: int | None, target: Target, notices: list[Notice]) -> int | None:
    least = _LEAST_OUTPUT.get(target.dialect, 1)
    if limit is None or limit >= least:
        return limit
    notices.append(
        Notice("max_tokens_raised", "the least that can be asked for here", "max_tokens", str(limit), str(least))
    )
    return least

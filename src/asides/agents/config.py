"""The configuration of an agent (model, output type, options), and the start of a run with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Protocol, TypeAlias, get_args

import msgspec

from asides.agents.tools.executor import Approval, Runnable
from asides.agents.tools.function_tool import OfferedTool, build_toolset
from asides.flows.agent import Run
from asides.flows.build_call import CallBuilder
from asides.flows.run_config import Approve, Limits, Mode, RunConfig
from asides.history.turns import add_missing_results
from asides.intake.files import attach_files, fill_prompt
from asides.intake.read import read
from asides.options import (
    OPTIONS,
    HasMessages,
    ModelLike,
    Options,
    PromptLike,
    SharedOptions,
    convert_option,
    merge_options,
    suggest_option,
)
from asides.transports.run_state import RunState
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt
from asides.values.usage import Usage

Approvals: TypeAlias = Approval | tuple[tuple[str, Approval], ...]
"""One approval for all tools, or one for each pattern of tool names."""


class ConversationLike(HasMessages, Protocol):
    """The conversation of a run: the run reads its messages at the start and adds each finished step."""

    def extend(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Add messages, and their usage."""
        ...


class AgentOptions(SharedOptions, total=False):
    """Every option of `ask`, and those of a run. A call overrides the agent, the agent the client, the client the
    settings, the settings the model's rule.
    """

    limits: Limits | Mapping[str, Any] | None
    approval: Approval | Mapping[str, Approval] | None
    approve: Approve | None
    tool_timeout: float | None
    parallel: int | None
    mode: Mode | None


# A run corrects an answer in an extra step, so its calls must not.
_RUN_OPTIONS = frozenset(AgentOptions.__annotations__) - OPTIONS | {"attempts"}


def check_client(client: object, kind: type[object]) -> None:
    """Raise for a sync client of an async agent, and for the reverse: it would fail later with an obscure error."""
    if client is not None and not isinstance(client, kind):
        raise ConfigError(f"client= is {_name(type(client))}. Pass {_name(kind)}, or use the other kind of agent.")


def _name(kind: type[object]) -> str:
    return f"{'an' if kind.__name__[:1] in 'AEIOU' else 'a'} {kind.__name__}"


class AgentConfig:
    """The configuration of one agent. Raises ConfigError for invalid options."""

    def __init__(self, model: ModelLike | None, output: object, options: AgentOptions) -> None:
        self.model = model
        self._options = _check_options(options)
        self._output_type = _read_output_type(output)
        self._offers = _offer_tools(self._options)
        _build_run_config(self._options, self._offers, self._output_type)

    def start_run(
        self,
        prompt: PromptLike,
        conversation: ConversationLike | None,
        output: object,
        options: AgentOptions,
        defaults: CallBuilder,
        *,
        stream: bool,
    ) -> RunState[Any]:
        """Build a run that a driver can carry out. Raises before a byte is sent."""
        given = self._options
        if options:
            given = dict(merge_options(Options(**given), Options(**_check_options(options))))  # type: ignore[typeddict-item]
        offers = _offer_tools(given, self._offers)
        if not options:
            self._offers = offers  # the declaration of a function may have changed
        output_type = self._output_type if output is None else _read_output_type(output)
        run_config = _build_run_config(given, offers, output_type)
        call_options = Options(**{name: value for name, value in given.items() if name in OPTIONS})  # type: ignore[typeddict-item]
        if offers:
            call_options["tools"] = [offer.tool for offer in offers.values()]
        # Another process may have changed a stored conversation.
        if callable(refresh := getattr(conversation, "refresh", None)):
            refresh()
        if conversation is None:
            call = defaults.build(self.model, prompt, call_options, stream=stream)
            _check_approvals(run_config)
            return RunState(Run(call, run_config))
        history = _read_history(conversation)
        # Calls of the conversation without a result get one before the question.
        question = _read_question(fill_prompt(prompt, call_options.get("files")), history)
        if (files := call_options.pop("files", None)) is not None:
            question = attach_files(question, files)
        question = add_missing_results(question, after=history) if question else ()
        system = getattr(conversation, "system", None)
        joined = _JoinedPrompt((*history, *question), system if isinstance(system, str) else None)
        model = self.model if self.model is not None else getattr(conversation, "model", None)
        call = defaults.build(model, joined, call_options, stream=stream)
        _check_approvals(run_config)
        return RunState(Run(call, run_config, question=question, save=conversation.extend))

    def start_runs(
        self, prompts: Iterable[PromptLike], output: object, options: AgentOptions, defaults: CallBuilder
    ) -> Iterator[Callable[[], RunState[Any]]]:
        """Return the builder of each prompt's run. Raises errors that concern every prompt."""
        reported = set(defaults.reported)
        self.start_run("?", None, output, options, defaults, stream=False)
        defaults.reported.clear()
        defaults.reported.update(reported)  # The first run reports a default model.
        return (partial(self.start_run, prompt, None, output, options, defaults, stream=False) for prompt in prompts)


def _check_options(options: AgentOptions) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS and name not in _RUN_OPTIONS:
            raise TypeError(f"an agent has no option {name!r}; {suggest_option(name, OPTIONS | _RUN_OPTIONS)}")
    checked: dict[str, Any] = dict(options)
    if isinstance(checked.get("tools"), Iterator):
        checked["tools"] = tuple(checked["tools"])  # they are read more than once
    return checked


def _read_output_type(output: object) -> Any:
    if output is None or output is str:
        return None
    from asides.agents.outputs.output_type import read_output_type

    return read_output_type(output)


# --- the run ----------------------------------------------------------------------------------------------------------


def _offer_tools(given: Mapping[str, Any], earlier: Mapping[str, OfferedTool] | None = None) -> dict[str, OfferedTool]:
    return build_toolset(given.get("tools") or (), earlier)


def _build_run_config(given: Mapping[str, Any], offers: Mapping[str, OfferedTool], output_type: Any) -> RunConfig[Any]:
    tools = {name: offer.runnable for name, offer in offers.items()}
    approval: Approvals = "allow" if given.get("approval") is None else _read_approval(given["approval"])
    approvals: dict[str, Approval] = {
        name: resolve_approval(approval, name, runnable) for name, runnable in tools.items() if runnable is not None
    }
    return RunConfig(tools, approvals, output_type, **_read_run_options(given))


def _check_approvals(config: RunConfig[Any]) -> None:
    for name, approval in config.approvals.items():
        if approval == "ask" and config.approve is None:
            raise ConfigError(f"the tool {name} needs approval, and the agent has no approval handler. Pass approve=.")


def resolve_approval(approval: Approvals, name: str, runnable: Runnable) -> Approval:
    """Decide whether the calls of a tool may run. The tool's own `approval` wins, then the first matching pattern."""
    if runnable.approval is not None:
        return runnable.approval
    if not isinstance(approval, tuple):
        return approval
    for pattern, choice in approval:
        if fnmatchcase(name, pattern):
            return choice
    return "allow"


def _read_approval(approval: object) -> Approvals:
    choices = approval.values() if isinstance(approval, Mapping) else (approval,)
    patterns = approval if isinstance(approval, Mapping) else ()
    known = get_args(Approval)
    if any(choice not in known for choice in choices) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError("approval is allow, deny or ask; or one of them for each pattern of tool names.")
    return tuple(approval.items()) if isinstance(approval, Mapping) else approval  # type: ignore[return-value]


def _read_run_options(given: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if (limits := given.get("limits")) is not None:
        fields = msgspec.structs.asdict(limits) if isinstance(limits, Limits) else limits
        read["limits"] = _check_limits(convert_option("limits", fields, Limits))
    if (approve := given.get("approve")) is not None:
        if not callable(approve):
            raise ConfigError("approve is a function that takes a call and returns whether it may run.")
        read["approve"] = approve
    if (timeout := given.get("tool_timeout")) is not None:
        read["tool_timeout"] = convert_option("tool_timeout", timeout, float)
        if not read["tool_timeout"] > 0:
            raise ConfigError("tool_timeout is not a number of seconds above zero, so no tool could start.")
    if (mode := given.get("mode")) is not None:
        if mode not in get_args(Mode):
            raise ConfigError(f"mode is one of {', '.join(get_args(Mode))}.")
        read["mode"] = mode
    for name in ("parallel", "attempts"):
        if (value := given.get(name)) is not None:
            read[name] = convert_option(name, value, int)
            if read[name] < (1 if name == "parallel" else 0):
                raise ConfigError(f"{name} is {read[name]}, which is too low.")
    return read


def _check_limits(limits: Limits) -> Limits:
    for name, value in msgspec.structs.asdict(limits).items():
        # Not `value <= 0`, since every comparison with NaN is false.
        if value is not None and not (value > 0 or (name == "tool_calls" and value == 0)):
            raise ConfigError(f"limits: {name} is {value}, so no run could start.")
    return limits


# --- the prompt -------------------------------------------------------------------------------------------------------


class _JoinedPrompt(msgspec.Struct, frozen=True):
    """A conversation and the new messages as one prompt."""

    messages: Sequence[Message]
    system: str | None = None


def _read_history(conversation: ConversationLike) -> tuple[Message, ...]:
    if not hasattr(conversation, "messages") or not hasattr(conversation, "extend"):
        raise ConfigError(
            f"conversation must be a Conversation, not {type(conversation).__name__}. Create one, or pass your "
            "messages as the prompt."
        )
    return tuple(conversation.messages)


def _read_question(prompt: PromptLike, history: tuple[Message, ...]) -> tuple[Message, ...]:
    if isinstance(prompt, Prompt) or hasattr(prompt, "messages"):
        raise ConfigError("conversation= already has the history. Pass only the new messages.")
    if isinstance(prompt, (list, tuple)) and not prompt:
        return ()  # the model continues from the last message
    return read(prompt, after=history)

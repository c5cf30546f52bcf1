"""What an agent is, apart from its shell: a model, tools, options, limits; and the run that a call makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, get_args

import msgspec

from asides.agents.outputs.output_type import wanted
from asides.agents.tools.runnable import Approval
from asides.agents.tools.toolset import build_toolset
from asides.flows.agent import Run
from asides.flows.build_call import CallBuilder
from asides.flows.run_config import Approve, Limits, Mode, RunConfig
from asides.options import OPTIONS, HasMessages, Options, PromptLike, SharedOptions, convert_option, merge_options
from asides.transports.run_stream import RunState
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt, user
from asides.values.usage import Usage


class ConversationLike(HasMessages, Protocol):
    """A conversation that a run is part of: it is read at the beginning and gets each step when that is over."""

    def extend(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Take what was said, and what it cost."""
        ...


class AgentOptions(SharedOptions, total=False):
    """Every option of `ask`, and what a run has besides. What a call says wins over the agent, the agent over the
    client, the client over the settings, those over the model's rule.
    """

    limits: Limits | Mapping[str, Any] | None
    approval: Approval | Mapping[str, Approval] | None
    approve: Approve | None
    tool_timeout: float | None
    parallel: int | None
    mode: Mode | None
    attempts: int | None


_OF_RUNS = frozenset(AgentOptions.__annotations__) - OPTIONS


def check_client(client: object, kind: type[object], otherwise: str) -> None:
    """A client of the other shell would fail later, and not say why."""
    if client is not None and not isinstance(client, kind):
        raise ConfigError(f"client= is a {type(client).__name__} here; {otherwise}. To do: give the other one.")


class Recipe:
    """An agent without its shell."""

    def __init__(self, model: str, output: object, options: AgentOptions) -> None:
        self.model = model
        self._output = output
        self._options = _known(options)
        # What is wrong with it is wrong now, and not only when somebody asks.
        _errand(self._options, output)

    def progress(
        self,
        prompt: PromptLike,
        conversation: ConversationLike | None,
        output: object,
        options: AgentOptions,
        defaults: CallBuilder,
        *,
        stream: bool,
    ) -> RunState[Any]:
        """A run that can be driven. Raises before a byte is sent."""
        given = _over(self._options, _known(options))
        errand = _errand(given, self._output if output is None else output)
        of_call = Options(**{name: value for name, value in given.items() if name in OPTIONS})  # type: ignore[typeddict-item]
        # Another process may have gone on with a conversation that is kept in a store.
        if callable(refresh := getattr(conversation, "refresh", None)):
            refresh()
        history = () if conversation is None else _history(conversation)
        call = defaults.call(self.model, _joined(conversation, history, prompt), of_call, stream=stream)
        _check_approvals(errand)
        keep = None if conversation is None else conversation.extend
        return RunState(Run(call, errand, known=len(history)), keep)


def _errand(given: Mapping[str, Any], output: object) -> RunConfig[Any]:
    return RunConfig(
        {name: offer.runnable for name, offer in build_toolset(given.get("tools") or ()).items()},
        None if output is None or output is str else wanted(output),
        **_of_run(given),
    )


def _check_approvals(errand: RunConfig[Any]) -> None:
    for name, runnable in errand.tools.items():
        if runnable is not None and errand.approval_of(name, runnable) == "ask" and errand.approve is None:
            raise ConfigError(f"the tool {name} wants approval and nobody is there to give it. To do: pass approve=.")


def _known(options: AgentOptions) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS and name not in _OF_RUNS:
            raise TypeError(f"{name} is no option of an agent; there are {', '.join(sorted(OPTIONS | _OF_RUNS))}.")
    known: dict[str, Any] = dict(options)
    if isinstance(known.get("tools"), Iterator):
        known["tools"] = tuple(known["tools"])  # they are gone through more than once
    return known


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    return dict(merge_options(Options(**below), Options(**above)))  # type: ignore[typeddict-item]


def _of_run(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the run itself, each as what it has to be."""
    read: dict[str, Any] = {}
    if (limits := given.get("limits")) is not None:
        told = msgspec.structs.asdict(limits) if isinstance(limits, Limits) else limits
        read["limits"] = _positive(convert_option("limits", told, Limits))
    if (approval := given.get("approval")) is not None:
        read["approval"] = _approval(approval)
    if (approve := given.get("approve")) is not None:
        if not callable(approve):
            raise ConfigError("approve is a function that takes a call and says whether it may be run.")
        read["approve"] = approve
    if (timeout := given.get("tool_timeout")) is not None:
        read["tool_timeout"] = convert_option("tool_timeout", timeout, float)
        if not read["tool_timeout"] > 0:
            raise ConfigError("tool_timeout is no number of seconds above zero, with which no tool could begin.")
    if (mode := given.get("mode")) is not None:
        if mode not in get_args(Mode):
            raise ConfigError(f"mode is one of {', '.join(get_args(Mode))}.")
        read["mode"] = mode
    for name in ("parallel", "attempts"):
        if (value := given.get(name)) is not None:
            read[name] = convert_option(name, value, int)
            if read[name] < (1 if name == "parallel" else 0):
                raise ConfigError(f"{name} is {read[name]}, which is too few.")
    return read


def _positive(limits: Limits) -> Limits:
    for name, value in msgspec.structs.asdict(limits).items():
        # Not the other way round, since of NaN nothing is true.
        if value is not None and not (value > 0 or (name == "tool_calls" and value == 0)):
            raise ConfigError(f"limits: {name} is {value}, with which nothing could begin.")
    return limits


def _approval(approval: object) -> Approval | tuple[tuple[str, Approval], ...]:
    words = approval.values() if isinstance(approval, Mapping) else (approval,)
    patterns = approval if isinstance(approval, Mapping) else ()
    known = get_args(Approval)
    if any(word not in known for word in words) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError("approval is allow, deny or ask; or one of them for each pattern of tool names.")
    return tuple(approval.items()) if isinstance(approval, Mapping) else approval  # type: ignore[return-value]


class _Joined(msgspec.Struct, frozen=True):
    """A conversation and what is said next, to be read as one prompt."""

    messages: Sequence[Any]
    system: str | None = None


def _history(conversation: ConversationLike) -> tuple[Message, ...]:
    if not hasattr(conversation, "messages") or not hasattr(conversation, "extend"):
        raise ConfigError(
            f"conversation is a Conversation, not {type(conversation).__name__}. To do: make one; or give messages "
            "that you have as the prompt."
        )
    return tuple(conversation.messages)


def _joined(conversation: ConversationLike | None, history: tuple[Message, ...], prompt: PromptLike) -> Any:
    if conversation is None:
        return prompt
    if isinstance(prompt, Prompt) or hasattr(prompt, "messages"):
        raise ConfigError("conversation= already has the history; say only what is new.")
    said: Any = user(prompt) if isinstance(prompt, str) else prompt
    # What is neither is named where prompts are read.
    news: Sequence[Any] = said if isinstance(said, Sequence) else [said]
    system = getattr(conversation, "system", None)
    return _Joined([*history, *news], system if isinstance(system, str) else None)

"""A reply on its way to people and programs: events as they come, the notes behind them, or one JSON object.

Not here: where the words go and how they look (terminal).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asides.cli.exit_codes import Exit, of_outcome
from asides.cli.progress import Progress
from asides.cli.steps import step_line
from asides.cli.terminal import LiveLine, Terminal
from asides.values.errors import AsidesError, MissingKey, ProviderError
from asides.values.events import TextDelta, ThinkingDelta
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.result import RunEvent, StepStarted

if TYPE_CHECKING:
    # It brings the settings and the table of providers along, which `separate` has no use for.
    from asides.cli.gate import Gate
    from asides.values.result import Result


class Display:
    """One reply as it comes: the answer to stdout; thinking to stderr when it is shown, a live line when it is not."""

    def __init__(
        self, terminal: Terminal, progress: Progress, *, shows_thinking: bool, shows_answer: bool = True
    ) -> None:
        self._terminal = terminal
        self._shows_thinking = shows_thinking
        self.shows_answer = shows_answer
        self._thought: int | None = None
        self._live = LiveLine(terminal, progress.words)

    def begin(self) -> None:
        """The question is on its way."""
        self._live.start()

    def take(self, events: Sequence[RunEvent]) -> None:
        """Show these: events of a reply, or of a run."""
        for event in events:
            if isinstance(event, TextDelta) and self.shows_answer:
                self._live.stop()
                self._thought = None
                self._terminal.answer(event.text)
            elif isinstance(event, ThinkingDelta) and self._shows_thinking:
                self._live.stop()
                if self._thought is not None and event.block != self._thought:
                    self._terminal.end_aside()
                self._thought = event.block
                self._terminal.aside(event.text)
            elif isinstance(event, StepStarted):
                self._thought = None
                self._live.start()
            elif (line := step_line(event)) is not None:
                # Not begun again before the next step: somebody may be asked for approval here.
                self._live.stop()
                self._thought = None
                self._terminal.note(line)
        self._terminal.flush()

    def end(self) -> None:
        """Nothing more comes, for whatever reason: leave a clean terminal."""
        self._live.stop()
        self._terminal.end_answer()


# --- behind the answer ----------------------------------------------------------------------------------------------


def hidden_thinking(reply: Reply) -> str | None:
    """What to say to somebody who wants to see thinking that the provider keeps to itself."""
    thought, tokens = reply.thinking, reply.usage.thinking
    if thought is not None and thought.kind != "hidden":
        return None
    if thought is None and not tokens:
        return None
    return f"(thinking hidden by the provider{'' if tokens is None else f', {tokens} tokens'})"


def outcome_line(reply: Reply) -> str | None:
    """Why there is no answer, or not all of one; None when there is nothing to say."""
    spent = _spent(reply)
    match reply.outcome:
        case "answered":
            cut = reply.stop.reason == "length"
            return "the answer was cut off at the limit of tokens; raise --max-tokens." if cut else None
        case "tool_calls":
            names = ", ".join(call.name or "?" for call in reply.tool_calls)
            return f"the model called tools ({names}); --json has the calls."
        case "starved":
            what = f"the model used up its tokens{spent} while thinking"
            return f"no answer: {what}; raise --max-tokens or ask for less --thinking."
        case "unterminated":
            when = f" after thinking{spent}" if reply.thinking else ""
            return f"no answer: the model stopped{when}; ask again, or ask for less --thinking."
        case "refused":
            return f"the model refused{f': {reply.refusal}' if reply.refusal else '.'}"
        case "filtered":
            return "the provider's filter stopped the answer; change the question."


def _spent(reply: Reply) -> str:
    tokens = reply.usage.thinking or reply.usage.output
    return f" ({tokens})" if tokens else ""


def error_line(error: AsidesError) -> str:
    """An error for somebody at a shell. The library's messages name arguments of Python where ours are options."""
    if isinstance(error, MissingKey):
        variables = " or ".join(error.variables)
        return f"{error.provider} needs an API key: {f'set {variables}' if variables else 'pass --api-key'}."
    text = " ".join(str(error).split())
    for argument, option in _OPTIONS:
        text = argument.sub(option, text)
    return text


_OPTIONS = [
    (re.compile(argument), option)
    for argument, option in (
        (r"\bon_conflict='adjust'", "--on-conflict adjust"),
        (r"\btimeout=Timeout\(\w+=…\)", "--timeout"),
        (r"\bbase_url=(?!…)", "--base-url"),
        (r"\bapi_key=", "--api-key"),
        (r"\bmax_tokens=", "--max-tokens "),
        (r"\bLimits\(turns=…\)", "--max-turns"),
        (r", or go on from \.result\.messages", ""),
        (
            r"begin another one, or keep what is known of it with fork\(name=…\)",
            "write /keep and a name to go on with it",
        ),
        (r"(?:; | \()\.partial has what came\)?", ""),
    )
]


def code_with_reason(reply: Reply, terminal: Terminal) -> Exit:
    """The exit code that a reply is worth, with the reason where that is not 0."""
    code = of_outcome(reply.outcome)
    if code is not Exit.DONE and (line := outcome_line(reply)) is not None:
        terminal.complain(line)
    return code


def tell_about(reply: Reply, gate: Gate, terminal: Terminal) -> Exit:
    """What there is to know about a reply besides the answer, on stderr; the exit code that it is worth."""
    if gate.wanted and not gate.allows and reply.thinking is not None:
        terminal.note(f"the thinking of {gate.model} is not shown: reasoning_allowed_models does not name it")
    elif gate.shows and (hidden := hidden_thinking(reply)):
        terminal.figure(hidden)
    for notice in dict.fromkeys(reply.warnings):
        if notice.code != "max_tokens_chosen":  # A figure where nobody gave one: worth a field, not a line.
            terminal.note(f"warning: {notice}")
    code = code_with_reason(reply, terminal)
    if code is Exit.DONE and (line := outcome_line(reply)) is not None:
        terminal.note(line)
    return code


# --- for programs ---------------------------------------------------------------------------------------------------


def reply_object(reply: Reply, gate: Gate) -> dict[str, Any]:
    """A reply as separate fields. Seals stay inside; thinking too, where its model is not among the allowed ones."""
    thought = reply.thinking
    told = None if thought is None else thought.text or None
    warnings = [msgspec.to_builtins(notice) for notice in reply.warnings]
    if told is not None and not gate.allows:
        told = None
        detail = "reasoning_allowed_models does not name this model; its thinking is left out"
        warnings.append(msgspec.to_builtins(Notice("thinking_withheld", detail)))
    return {
        "text": reply.text,
        "thinking": told,
        "thinking_type": None if thought is None else thought.kind,
        "thinking_source": reply.metadata["thinking_source"],
        "tool_calls": [_call(call) for call in msgspec.to_builtins(reply.tool_calls)],
        "refusal": reply.refusal,
        "usage": msgspec.to_builtins(reply.usage),
        "outcome": reply.outcome,
        "stop": msgspec.to_builtins(reply.stop),
        "model": reply.model,
        "complete": reply.complete,
        "warnings": warnings,
    }


def run_object(result: Result[Any], gate: Gate) -> dict[str, Any]:
    """A run with tools: the fields of its last reply, what it cost in all, and its steps."""
    steps = [
        {
            **{name: said[name] for name in ("text", "thinking", "tool_calls", "usage", "outcome")},
            "results": [
                {"call_id": told.call_id, "text": told.text, "is_error": told.is_error} for told in step.results
            ],
        }
        for step in result.steps
        for said in [reply_object(step.reply, gate)]
    ]
    usage = msgspec.to_builtins(result.usage)
    return {**reply_object(result.reply, gate), "usage": usage, "outcome": result.outcome, "steps": steps}


def broken_object(
    partial: Reply | None, error: dict[str, Any], gate: Gate | None, run: Result[Any] | None = None
) -> dict[str, Any]:
    """What there is of a reply that was not to be, or of a run: the same fields, no outcome, and the error."""
    if gate is None or (partial is None and (run is None or not run.steps)):
        return {"text": "", "thinking": None, "outcome": None, "complete": False, "error": error}
    told = {} if partial is None else reply_object(partial, gate)
    if run is not None and run.steps:
        so_far = run_object(run, gate)
        # What was spent is that of all its steps.
        told = {**so_far, **told, "usage": so_far["usage"]}
    return {**told, "outcome": None, "error": error}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {name: call[name] for name in ("id", "name", "arguments", "raw_arguments")}


def error_object(error: AsidesError) -> dict[str, Any]:
    """An error as fields, its message included and what the provider sent left out."""
    told: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, ProviderError):
        told |= {
            "status": error.status,
            "code": error.code,
            "request_id": error.request_id,
            "retry_after": error.retry_after,
        }
    return told


def print_json(terminal: Terminal, value: Any) -> None:
    """One object on stdout: on one line for programs, indented for people."""
    # Where stdout carries Unicode, what it cannot carry (half a surrogate pair) is escaped in JSON's own way.
    indent = 2 if terminal.out_is_terminal else None
    terminal.answer(json.dumps(value, ensure_ascii=not terminal.carries_unicode, indent=indent))
    terminal.end_answer()

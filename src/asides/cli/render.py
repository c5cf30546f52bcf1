"""Text and JSON for replies, runs, errors and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asides.cli.exit_codes import Exit, code_for_error, code_for_outcome
from asides.cli.markdown import open_answer_writer
from asides.cli.terminal import LiveLine, Stopwatch, Terminal
from asides.flows.reply_fields import ThinkingVisibility, encode_reply, find_problem
from asides.values.errors import AsidesError, UnknownProvider, to_line
from asides.values.events import CommentaryDelta, TextDelta, TextReclassified, ThinkingDelta
from asides.values.json_form import to_json_value
from asides.values.notices import Notice, escape_controls
from asides.values.parts import ToolCall
from asides.values.reply import Reply
from asides.values.result import RunEvent, StepStarted, ToolFinished, ToolStarted
from asides.values.thinking import Thought, ThoughtKind

if TYPE_CHECKING:
    from asides.values.result import Result

NOTHING = "–"
"""An empty cell of a table."""
_LONGEST_CALL = 160


# --- while a reply arrives --------------------------------------------------------------------------------------------


class Display:
    """Shows one reply, or a run, as it arrives: the answer on stdout; commentary, and the thinking or a live line, on
    stderr.
    """

    def __init__(
        self,
        terminal: Terminal,
        stopwatch: Stopwatch,
        *,
        shown: frozenset[ThoughtKind] = frozenset(),
        show_answer: bool = True,
        render: bool = False,
    ) -> None:
        self._terminal = terminal
        self._answer = open_answer_writer(terminal, render=render)
        self._shown = shown
        self.show_answer = show_answer
        self._thought: int | None = None
        self._live = LiveLine(terminal, stopwatch.status_line)

    def start(self) -> None:
        """The request is being sent."""
        self._live.start()

    def show(self, events: Iterable[RunEvent]) -> None:
        """Show these events."""
        for event in events:
            if isinstance(event, TextDelta) and self.show_answer:
                self._live.stop()
                self._thought = None
                self._answer.write(event.text)
            elif (isinstance(event, ThinkingDelta) and event.kind in self._shown) or (
                isinstance(event, CommentaryDelta) and self.show_answer and not self._terminal.quiet
            ):
                self._live.stop()
                self._answer.end()
                if self._thought is not None and event.block != self._thought:
                    self._terminal.end_thought()
                self._thought = event.block
                self._terminal.write_thinking(event.text)
            elif isinstance(event, TextReclassified) and self.show_answer:
                # It is printed and stays; a notice says what it is. The answer begins on a line of its own.
                self._live.stop()
                self._answer.end()
                self._answer.write("\n\n")
            elif isinstance(event, StepStarted):
                self._thought = None
                self._answer.end()
                self._live.start()
            elif (line := _describe_tool_event(event)) is not None:
                # The live line starts again with the next step: until then the user may be asked for approval.
                self._live.stop()
                self._answer.end()
                self._thought = None
                self._terminal.print_note(line)
        self._terminal.flush()

    def end(self) -> None:
        """Nothing more arrives, for whatever reason: leave a clean terminal."""
        self._live.stop()
        self._answer.end()
        self._terminal.end_answer()


def _describe_tool_event(event: RunEvent) -> str | None:
    if isinstance(event, ToolStarted):
        return f"→ {describe_call(event.call)}"
    if isinstance(event, ToolFinished):
        mark = "✗" if event.result.is_error else "←"
        text = _shorten(" ".join(event.result.text.split())) or "(no text)"
        return f"{mark} {escape_controls(f'{event.call.name}: {text}')} ({event.seconds:.1f} s)"
    return None


def describe_call(call: ToolCall, *, whole: bool = False) -> str:
    """A tool call as code, on one line; shortened, unless `whole`. Nothing in it can look like another line or call."""
    if call.raw_arguments is not None:
        arguments = _write_value(call.raw_arguments)
    else:
        arguments = ", ".join(f"{_write_name(name)}={_write_value(value)}" for name, value in call.arguments.items())
    return escape_controls(f"{_write_name(call.name)}({arguments if whole else _shorten(arguments)})")


def _write_name(name: str) -> str:
    return name if name.replace("-", "_").replace(".", "_").isidentifier() else _write_value(name)


def _write_value(value: Any) -> str:
    # Not msgspec, which refuses half a surrogate pair.
    return json.dumps(value, ensure_ascii=False)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_CALL else f"{text[:_LONGEST_CALL]}…"


# --- after the reply --------------------------------------------------------------------------------------------------


def report_reply(
    reply: Reply, visibility: ThinkingVisibility, terminal: Terminal, *, ask_with: str = "add --thinking low"
) -> Exit:
    """Print on stderr: hidden thinking, warnings, why an answer is missing or cut off. Return the exit code.

    `ask_with`: what the user can write to ask for thinking.
    """
    is_explained = bool(reply.thinking.text)
    if visibility.is_requested and not visibility.is_allowed and reply.thinking:
        terminal.print_note(
            f"the thinking of {visibility.model} is not shown: reasoning_allowed_models does not name it"
        )
    elif visibility.is_shown and (withheld := _describe_withheld(reply, visibility)):
        terminal.print_note(withheld)
    elif visibility.is_shown and (missing := _explain_missing_thinking(reply, visibility, ask_with)):
        terminal.print_note(missing)
        is_explained = True
    for notice in dict.fromkeys(reply.warnings):
        if notice.code not in _NOT_PRINTED_AFTER_REPLY and not (is_explained and notice.code == "summary_not_sent"):
            terminal.print_note(f"warning: {describe_notice(notice)}")
    code = report_failure(reply, terminal)
    if code is Exit.DONE and (line := _describe_outcome(reply)) is not None:
        terminal.print_note(line)
    return code


PRINTED_WITH_SETTINGS = frozenset({"untrusted_settings", "unknown_variable"})
"""The notices that are printed when the settings are read: a call that fails, or a command without one, shows none."""
# "max_tokens_chosen" only fills in a missing limit; the stage says once that it answers. --json has them all.
_NOT_PRINTED_AFTER_REPLY = PRINTED_WITH_SETTINGS | {"max_tokens_chosen", "answered_by_stage"}


def describe_notice(notice: Notice) -> str:
    """A notice as one line, with its change: what was asked, and what was sent instead."""
    change = f" ({notice.asked} → {notice.sent})" if notice.asked and notice.sent else ""
    return escape_controls(f"{notice}{change}")


def report_failure(reply: Reply, terminal: Terminal) -> Exit:
    """The exit code of a reply. Unless that is 0, print the reason."""
    code = code_for_outcome(reply.outcome)
    if code is Exit.DONE and (problem := find_problem(reply)) is not None:
        terminal.print_error(describe_error(problem))
        return code_for_error(problem)
    if code is not Exit.DONE and (line := _describe_outcome(reply)) is not None:
        terminal.print_error(line)
    return code


def _explain_missing_thinking(reply: Reply, visibility: ThinkingVisibility, ask_with: str) -> str | None:
    """Why a reply shows no thinking, and what would help; None if it shows some, or if the reason is not known."""
    thought, tokens = reply.thinking, reply.usage.thinking
    if thought.text:
        return None
    if thought or tokens:
        counted = "" if tokens is None else f", {tokens} tokens"
        why = next((f": {notice.detail}" for notice in reply.warnings if notice.code == "summary_not_sent"), "")
        return escape_controls(f"(thinking hidden by the provider{counted}{why})")
    if reply.origin is None or not reply.complete:
        return None
    from asides.providers.find import find_provider  # Some commands print replies and need no providers.

    try:
        row = find_provider(reply.origin.provider, visibility.settings.providers)
    except UnknownProvider:
        return None
    rule, name = row.rule(reply.origin.model), escape_controls(reply.origin.model)
    if rule.thinking == "never":
        return f"({name} does not think)"
    if rule.thinking == "optional" and rule.default == "off" and not reply.effort:
        return f"({name} thinks only when asked; {ask_with})"
    if rule.thinking == "unknown" and row.key == "required" and not reply.effort:
        return f"(no thinking came, and it is not known whether {name} thinks unasked; {ask_with})"
    return None


def _describe_withheld(reply: Reply, visibility: ThinkingVisibility) -> str | None:
    """What is not shown though it was asked for, because of `[visibility]`; None if nothing is."""
    thoughts = [part for part in reply.parts if isinstance(part, Thought) and part.text]
    hidden = sorted({str(thought.kind) for thought in thoughts if not visibility.allows("user", thought.kind)})
    if not hidden:
        return None
    return f"the {' and '.join(hidden)} thinking of {visibility.model} is not shown: [visibility] does not allow it"


def _describe_outcome(reply: Reply) -> str | None:
    """The reason why the answer is missing or incomplete; None when it is complete."""
    tokens = reply.usage.thinking or reply.usage.output
    spent = f" ({tokens})" if tokens else ""
    more = "" if any("recover" in notice.code for notice in reply.warnings) else ", or add --recover"
    match reply.outcome:
        case "answered":
            cut = reply.stop.reason == "length"
            return "the answer was cut off at the token limit; raise --max-tokens." if cut else None
        case "tool_calls":
            names = to_line(", ".join(call.name or "?" for call in reply.tool_calls))
            return f"the model called tools ({names}); --json has the calls."
        case "starved":
            return (
                f"no answer: the model used up its tokens{spent} while thinking; raise --max-tokens or ask for less "
                f"--thinking{more}."
            )
        case "unterminated":
            when = f" after thinking{spent}" if reply.thinking else ""
            return f"no answer: the model stopped{when}; ask again, or ask for less --thinking{more}."
        case "unanswered":
            return f"no answer: the model said what it was doing and stopped; ask again{more}."
        case "refused":
            return f"the model refused{f': {to_line(reply.refusal)}' if reply.refusal else '.'}"
        case "filtered":
            return "the provider's filter stopped the answer; change the question."


def describe_error(error: AsidesError) -> str:
    """An error message for the command line. It names options where the library names Python arguments."""
    return name_options(" ".join(str(error).split()))


def name_options(text: str) -> str:
    """A text of the library with the options of the command line in place of Python arguments."""
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
        (r", or continue from \.result\.messages", ""),
        (
            r"Begin another one, or keep what is known of it with fork\(name=…\)",
            "Write /keep and a name to continue with it",
        ),
        (r"(?:; | \()\.partial has [\w ]+\)?", ""),
    )
]


# --- JSON -------------------------------------------------------------------------------------------------------------


def encode_run(result: Result[Any], visibility: ThinkingVisibility) -> dict[str, Any]:
    """A run with tools as JSON fields: those of its last reply, the usage of the whole run, and its steps."""
    steps = [
        {
            **{name: reply[name] for name in ("text", "thinking", "tool_calls", "usage", "timing", "cost", "outcome")},
            "results": [
                {"call_id": output.call_id, "text": output.text, "is_error": output.is_error} for output in step.results
            ],
        }
        for step in result.steps
        for reply in [encode_reply(step.reply, visibility)]
    ]
    figures = to_json_value({"usage": result.usage, "timing": result.timing, "cost": result.cost})
    return {**encode_reply(result.reply, visibility), **figures, "outcome": result.outcome, "steps": steps}


def encode_failure(
    error: dict[str, Any],
    visibility: ThinkingVisibility | None,
    partial: Reply | None,
    run: Result[Any] | None = None,
) -> dict[str, Any]:
    """A failure as JSON fields: those of the reply or run so far, without an outcome, and the error."""
    if visibility is None or (partial is None and (run is None or not run.steps)):
        return {"text": "", "thinking": None, "outcome": None, "complete": False, "error": error}
    fields = {} if partial is None else encode_reply(partial, visibility)
    if run is not None and run.steps:
        so_far = encode_run(run, visibility)
        # The figures are those of all steps.
        fields = {**so_far, **fields, **{name: so_far[name] for name in ("usage", "timing", "cost")}}
    return {**fields, "outcome": None, "error": error}


def print_json(terminal: Terminal, value: Any) -> None:
    """Print JSON on stdout: on one line for programs, indented on a terminal."""
    # UTF-8 cannot encode half a surrogate pair; the stream escapes it as "\ud83d", which JSON reads back.
    indent = 2 if terminal.out_is_terminal else None
    terminal.write_answer(json.dumps(value, ensure_ascii=not terminal.supports_unicode, indent=indent))
    terminal.end_answer()


# --- tables -----------------------------------------------------------------------------------------------------------


def format_cell(value: object) -> str:
    """A value as the text of one cell."""
    match value:
        case None | "" | () | []:
            return NOTHING
        case bool():
            return "true" if value else "false"
        case msgspec.Struct():
            fields = {name: part for name, part in msgspec.structs.asdict(value).items() if part is not None}
            return ", ".join(f"{name} {part}" for name, part in fields.items())
        case list() | tuple():
            return ", ".join(format_cell(part) for part in value)
        case _:
            return str(value)


def format_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, padded to columns; the last column has no fixed width."""
    if not table:
        return []
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Indent the lines by two spaces."""
    return [f"  {line}" for line in lines]


def print_lines(terminal: Terminal, lines: Iterable[str]) -> None:
    """Print lines on stdout."""
    terminal.write_answer("".join(f"{line}\n" for line in lines))

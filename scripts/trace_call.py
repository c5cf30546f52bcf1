"""Counts the files, and the jumps between files, of one warm call to the offline stage: the path of a reader.

    python scripts/trace_call.py             files, jumps and functions of an ask and of an agent run with a tool
    python scripts/trace_call.py --files     also how often each file is entered
    python scripts/trace_call.py --jumps     also every jump: function → the next one called

It counts Python calls in the calling thread. Files: those under src/asides with a called function. Jumps: calls of a
function in another file than the function called before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import asides
from asides_stage.stage import Say, Stage

_HOME = f"{Path(asides.__file__).parent}{os.sep}"
_MODEL = "openai-compatible:m"


class Trace:
    """The calls of our own functions while `record` runs."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.jumps: Counter[tuple[str, str]] = Counter()
        self.functions: set[CodeType] = set()
        self._last: CodeType | None = None

    def record(self, action: Callable[[], object]) -> None:
        """Run the action and count its calls."""
        sys.setprofile(self._profile)
        try:
            action()
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(_HOME) or code.co_name == "<module>":
            return
        self.files[code.co_filename.removeprefix(_HOME)] += 1
        self.functions.add(code)
        last, self._last = self._last, code
        if last is not None and last.co_filename != code.co_filename:
            self.jumps[_name(last), _name(code)] += 1


def _name(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(_HOME)}:{code.co_name}"


def trace_ask() -> Trace:
    """Trace a sync `ask`, after one that loaded everything."""
    trace = Trace()
    with Stage() as stage, asides.Client() as client:
        url = stage.url

        def ask() -> None:
            client.ask(_MODEL, "?", base_url=url, api_key="k")

        ask()
        trace.record(ask)
    return trace


def trace_agent() -> Trace:
    """Trace an agent's run with one tool call, after one that loaded everything."""

    @asides.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    trace = Trace()
    call = asides.ToolCall("c1", "add", {"a": 1, "b": 2})
    with Stage([Say(tool_calls=(call,)), Say(text="3", thinking="1 + 2 = 3")] * 2) as stage, asides.Client() as client:
        agent = asides.Agent(_MODEL, tools=[add], client=client, base_url=stage.url, api_key="k")
        agent.send("1 + 2?")
        trace.record(lambda: agent.send("1 + 2?"))
    return trace


def main(arguments: list[str] | None = None) -> int:
    """Trace both calls and print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("--jumps", action="store_true", help="list the jumps")
    given = parser.parse_args(arguments)
    for name, trace in (("ask", trace_ask()), ("agent", trace_agent())):
        print(f"{name}: {len(trace.files)} files, {trace.jumps.total()} jumps, {len(trace.functions)} functions")
        if given.files:
            print(*(f"{count:6} {file}" for file, count in sorted(trace.files.items())), sep="\n")
        if given.jumps:
            print(*(f"{count:6} {last} → {called}" for (last, called), count in trace.jumps.items()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

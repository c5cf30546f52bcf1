"""The table of agents: CPU of a step in runs of 10, 40 and 160 steps, with one and with four tool calls a step.

The bare loop sends the list of messages with msgspec and urllib3 or aiohttp, and calls the function itself.
`python -m bench.agent_steps KEY URL` is the process of one contestant.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.environments import find_python
from bench.payloads import QUESTION
from bench.processes import ContestantFailed, Process
from bench.streams import progress, ratio
from bench.tables import Row, Table

STEPS = (10, 40, 160)
CALLS = (1, 4)
MODEL = "deepseek-reasoner"
NO_LIMIT = 100_000
DESCRIPTION = "Search the web."

# The base url of one run → its answer; a coroutine function when the mode is async.
Run = Callable[[str], Any]
_counted = [0]


def search(query: str) -> str:
    """Search the web."""
    _counted[0] += 1
    return f"Nothing new about {query}."


# ── contestants ──


def _bare_tools() -> Any:
    import msgspec

    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    function = {"name": "search", "description": DESCRIPTION, "parameters": schema}
    arguments = msgspec.defstruct("Arguments", [("query", str)])
    return [{"type": "function", "function": function}], msgspec.json.Decoder(arguments).decode


def _answer_calls(messages: list[dict[str, Any]], message: Any, read_arguments: Any) -> bool:
    """Run the calls of an answer and append it with their results; False when it has none."""
    if not message.tool_calls:
        return False
    calls = [
        {"id": call.id, "type": "function", "function": {"name": "search", "arguments": call.function.arguments}}
        for call in message.tool_calls
    ]
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    for call in message.tool_calls:
        found = search(read_arguments(call.function.arguments).query)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    return True


def _bare(base_url: str) -> Run:
    import msgspec

    from bench.floors.bodies import typed_body
    from bench.floors.clients import Urllib3

    client, decode, encode = Urllib3(base_url), typed_body("chat").decode, msgspec.json.Encoder().encode
    tools, read_arguments = _bare_tools()

    def run(profile: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        while True:
            body = encode({"model": MODEL, "messages": messages, "tools": tools})
            message = decode(client.post(f"/{profile}/v1/chat/completions", body)).choices[0].message
            if not _answer_calls(messages, message, read_arguments):
                text: str = message.content
                return text

    return run


def _bare_async(base_url: str) -> Run:
    import msgspec

    from bench.floors.bodies import typed_body
    from bench.floors.clients import Aiohttp

    client, decode, encode = Aiohttp(base_url), typed_body("chat").decode, msgspec.json.Encoder().encode
    tools, read_arguments = _bare_tools()

    async def run(profile: str) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        while True:
            body = encode({"model": MODEL, "messages": messages, "tools": tools})
            message = decode(await client.post(f"/{profile}/v1/chat/completions", body)).choices[0].message
            if not _answer_calls(messages, message, read_arguments):
                text: str = message.content
                return text

    return run


def _asides(base_url: str) -> Run:
    import asides

    agent: Any = asides.Agent(
        f"deepseek:{MODEL}", tools=[search], client=asides.Client(), limits={"turns": NO_LIMIT, "tool_calls": NO_LIMIT}
    )
    return lambda profile: agent.send(QUESTION, base_url=f"{base_url}/{profile}/v1", api_key="x").output


def _asides_async(base_url: str) -> Run:
    import asides

    made: list[Any] = []

    async def run(profile: str) -> Any:
        if not made:
            limits = {"turns": NO_LIMIT, "tool_calls": NO_LIMIT}
            client = asides.AsyncClient()
            made.append(asides.AsyncAgent(f"deepseek:{MODEL}", tools=[search], client=client, limits=limits))
        result = await made[0].send(QUESTION, base_url=f"{base_url}/{profile}/v1", api_key="x")
        return result.output

    return run


def _pydantic_ai(base_url: str) -> Run:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    limits = UsageLimits(request_limit=None)
    agents: dict[str, Any] = {}

    async def run(profile: str) -> Any:
        if profile not in agents:
            provider = OpenAIProvider(api_key="x", base_url=f"{base_url}/{profile}/v1")
            agents[profile] = Agent(OpenAIChatModel(MODEL, provider=provider), tools=[search])
        return (await agents[profile].run(QUESTION, usage_limits=limits)).output

    return run


def _openai_agents(base_url: str) -> Run:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    tool = function_tool(search)
    agents: dict[str, Any] = {}

    async def run(profile: str) -> Any:
        if profile not in agents:
            client = AsyncOpenAI(api_key="x", base_url=f"{base_url}/{profile}/v1", max_retries=0)
            model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
            agents[profile] = Agent(name="bench", model=model, tools=[tool])
        return (await Runner.run(agents[profile], QUESTION, max_turns=NO_LIMIT)).final_output

    return run


BARE = {"sync": "bare loop, sync", "async": "bare loop, async"}
OURS = {"sync": "asides, sync", "async": "asides, async"}
# key → environment, builder
AGENTS: dict[str, tuple[str, Callable[[str], Run]]] = {
    BARE["sync"]: ("floor", _bare),
    OURS["sync"]: ("asides", _asides),
    BARE["async"]: ("floor", _bare_async),
    OURS["async"]: ("asides", _asides_async),
    "pydantic-ai, async": ("pydantic_ai", _pydantic_ai),
    "openai-agents, async": ("openai_agents", _openai_agents),
}

# The others run 160 steps in the first round only, since one run takes them many seconds.
FAST = (*BARE.values(), *OURS.values())


class Agents:
    def __init__(self, key: str, base_url: str) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.run = AGENTS[key][1](base_url)
        self.wait = self.loop.run_until_complete if key.endswith("async") else lambda value: value

    def steps(self, steps: int, calls: int, repeats: int) -> dict[str, Any]:
        """CPU seconds of a step, and the tool calls that a run made."""
        profile = f"steps-{steps}-{calls}"
        gc.collect()
        _counted[0] = 0
        began = time.process_time()
        for _ in range(repeats):
            answer = self.wait(self.run(profile))
        taken = time.process_time() - began
        return {"cpu": taken / repeats / steps, "calls": _counted[0] / repeats, "characters": len(answer or "")}


# ── the table ──


def agents(base_url: str, *, rounds: int, quick: bool) -> Table:
    steps = STEPS[:2] if quick else STEPS
    keys = [key for key, (environment, _) in AGENTS.items() if find_python(environment) is not None]
    if quick:
        keys = [BARE["sync"], OURS["sync"]]
    cpu: dict[tuple[str, int, int], list[float]] = {}
    failures: dict[str, str] = {}
    missed: dict[str, str] = {}
    with ExitStack() as stack:
        processes: dict[str, Process] = {}
        for key in keys:
            try:
                process = Process(AGENTS[key][0], "bench.agent_steps", key, base_url)
                processes[key] = stack.enter_context(process)
                process.ask("steps", steps=10, calls=1, repeats=2)
            except ContestantFailed as error:
                failures[key] = str(error)
                processes.pop(key, None)
        order = list(processes)
        for number in range(rounds):
            shift = number * len(order) // rounds
            for calls in CALLS:
                for length in steps:
                    for key in order[shift:] + order[:shift]:
                        slow = key not in FAST
                        if slow and number and length == STEPS[-1]:
                            continue
                        repeats = 1 if slow else max(1, 80 // length)
                        answer = processes[key].ask("steps", steps=length, calls=calls, repeats=repeats)
                        cpu.setdefault((key, length, calls), []).append(answer["cpu"])
                        if answer["calls"] != (length - 1) * calls or not answer["characters"]:
                            missed[key] = f"{answer['calls']:g} calls of {(length - 1) * calls}"
            progress(f"  round {number + 1} of {rounds}")
    rows: list[Row] = []
    for key in order:
        name, _, mode = key.rpartition(", ")
        for calls in CALLS:
            row: Row = {"name": name, "mode": mode, "calls": calls, "delivered": missed.get(key, "all")}
            for length in steps:
                taken = cpu[key, length, calls]
                row[f"{length}"] = median(taken) * 1e6
                for column, keys_by_mode in (("bare", BARE), ("asides", OURS)):
                    others = cpu.get((keys_by_mode[mode], length, calls), [])[: len(taken)]
                    row[f"{length} / {column}"] = ratio(taken, others)
            longest = cpu[key, steps[-1], calls]
            row["growth"] = ratio(longest, cpu[key, steps[0], calls][: len(longest)])
            rows.append(row)
    rows += [{"name": key, "delivered": f"failed: {error[:100]}"} for key, error in failures.items()]
    columns = {"name": "contestant", "mode": "mode", "calls": "calls a step"}
    for length in steps:
        columns |= {f"{length}": f"µs a step, {length}", f"{length} / bare": "÷ bare", f"{length} / asides": "÷ asides"}
    columns |= {"growth": "longest ÷ shortest", "delivered": "calls made"}
    note = "Each step is a request with all messages so far, and the calls of its answer. The last step has no calls."
    return Table("agents", f"a step of an agent, {rounds} rounds", columns, rows, [note])


def main() -> None:
    from bench.worker import serve

    key, base_url = sys.argv[1:3]
    serve(key, lambda: Agents(key, base_url))


if __name__ == "__main__":
    main()

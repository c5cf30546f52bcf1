"""One refusal over real sockets: healed once, and never again in the conversation, the process or another process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

import asides
from asides.providers.learned_rules import forget
from asides.values.messages import Message, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides.values.tools import Tool
from tests.strict_servers import Body, Refuse, Strict, message_of, refusing

KEY = "sk-heal-123456"
CLAUDE = "anthropic:claude-sonnet-4-5"
NEW_CLAUDE = "anthropic:claude-opus-5-5"
OTHER_CLAUDE = "anthropic:made-up-1"
GPT = "openai-responses:gpt-5"
CHAT = "openai-compatible:m"
LOOK = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})


def signed(*numbers: int) -> list[Message]:
    """Turns with signed thinking, as an import has them: nobody knows who made it."""
    turns = [
        [
            user(f"{number}?"),
            assistant(Thought(f"t{number}", source="block", seals=(Seal("signature", f"s{number}"),)), "ok"),
        ]
        for number in numbers
    ]
    return [message for turn in turns for message in turn]


def encrypted(*names: str, value: bool = True) -> list[Message]:
    turns: list[Message] = []
    for name in names:
        item: Body = {"type": "reasoning", "id": f"rs_{name}", "summary": []}
        if value:
            item["encrypted_content"] = f"gAAA{name}wXBV"
        seal = Seal("encrypted" if value else "item", f"gAAA{name}wXBV" if value else "", None, json.dumps(item))
        said = Text("ok", seals=(Seal("item", "", None, json.dumps({"type": "message", "id": f"msg_{name}"})),))
        turns += [user("?"), assistant(Thought("", "hidden", "responses_summary", seals=(seal,)), said)]
    return turns


def called(*seals: Seal, thought: Thought | None = None) -> list[Message]:
    call = ToolCall("call_1", "look", {"at": "sky"}, seals=seals)
    turn = assistant(*([thought] if thought else []), call)
    return [user("?"), turn, Message("tool", (ToolResult("call_1", "blue", "look"),))]


class Case(NamedTuple):
    """A server that refuses, and a call that it refuses."""

    kind: str
    model: str
    refuse: Refuse
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    history: Sequence[Message] = ()
    notice: str = "request_repaired"
    check: Callable[[Strict], bool] | None = None
    repairs: int = 1
    is_fact: bool = True
    """Whether it is remembered: not what depends on the length of one request."""
    ends_with: Message | None = user("And now?")


def show(body: Body) -> str:
    return json.dumps(body)


def if_has(*words: str, said: Any) -> Refuse:
    return lambda body: said if all(word in show(body) for word in words) else None


def show_second(served: Strict) -> str:
    return show(served.bodies[1])


def ask(served: Strict, case: Case, messages: Sequence[Message]) -> asides.Reply:
    return asides.ask(
        case.model, list(messages), base_url=_address(served, case), api_key=KEY, retries=0, **_options(case)
    )


def ask_async(served: Strict, case: Case, messages: Sequence[Message]) -> asides.Reply:
    async def run() -> asides.Reply:
        return await asides.aio.ask(
            case.model, list(messages), base_url=_address(served, case), api_key=KEY, retries=0, **_options(case)
        )

    return asyncio.run(run())


def _options(case: Case) -> dict[str, Any]:
    return {"stream": False, **case.options}


def _address(served: Strict, case: Case) -> str:
    return served.base if case.model.startswith(("ollama:", "gemini:", "bedrock:")) else served.url


def _save_and_load(messages: Sequence[Message]) -> list[Message]:
    return msgspec.json.decode(msgspec.json.encode(messages), type=list[Message])


Ask: TypeAlias = "Callable[[Strict, Case, Sequence[Message]], asides.Reply]"


def check_healed_once(case: Case, ask: Ask) -> None:
    """Fail unless the refusal of a case takes as many more requests as it says, once."""
    forget()
    with refusing(case.refuse) as served:
        begun = [*case.history, *([case.ends_with] if case.ends_with else [])]
        reply = ask(served, case, begun)
        assert reply.text == "42"
        assert served.count() == 1 + case.repairs, [json.dumps(body) for body in served.bodies]
        if case.check is not None:
            assert case.check(served), show_second(served)
        codes = [notice.code for notice in reply.warnings]
        assert case.notice in codes, codes
        if not case.is_fact:
            assert reply.learned == ()
            return
        assert reply.learned, "nothing would be remembered"
        assert {fact.kind for fact in reply.learned} == {case.kind.partition(" ")[0].partition(",")[0]}
        count = served.count()
        # The next turn of the same conversation.
        after = [*begun, message_of(reply), user("And then?")]
        again = ask(served, case, after)
        assert served.count() == count + 1, [json.dumps(body) for body in served.bodies]
        # Another conversation in the same process.
        other = ask(served, case, begun)
        assert served.count() == count + 2
        # The saved conversation in another process.
        forget()
        loaded = _save_and_load([*after, message_of(again), user("Go on.")])
        ask(served, case, loaded)
        assert served.count() == count + 3
        # And the other one, which never saw the refusal.
        forget()
        ask(served, case, _save_and_load([*begun, message_of(other), user("Go on.")]))
        assert served.count() == count + 4
    forget()

"""The laws of the relay: whatever a client speaks, keeps, drops and switches to, each question is answered as the
model said it, its thinking apart, and every provider gets back its own state and nothing else.

The clients are written by hand (relay_clients), the stages are strict. `ASIDES_TURNS=100000` runs more; `-s` shows what
was repaired.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

import msgspec
import pytest

from asides.dialects.dialect import ServedRequest
from asides.history.finish import finish_turn
from asides.providers.learned_rules import forget
from asides.relay.state.turn_state import StateMode
from asides.values.messages import Message, user
from asides.values.parts import Part, Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thought
from asides_stage.stage import Scene
from tests.laws.conversations import ID_STYLES, REDACTED
from tests.laws.relay_clients import (
    ALL_CLIENTS,
    CLIENTS,
    ECHOES,
    Amount,
    Ask,
    ChatClient,
    Echo,
    StoredResponsesClient,
    WireClient,
)
from tests.laws.relay_theatre import RelayAct, RelayTheatre, find_tokens, relays_opened, replace_model
from tests.laws.theatre import ALL_HOUSES, HOUSES, Target, scene_of

TURNS = int(os.environ.get("ASIDES_TURNS", "400"))
BATCHES = 5
_AMOUNTS: tuple[Amount | None, ...] = (None, "low", "high", "high", "off")
_CHANGES = ("nothing",) * 9 + ("fork", "rewind", "rewrite")
_ENVELOPE = b"asd1."
# The houses that speak a client's own dialect, at its maker's.
_OWN_HOUSES = {
    "anthropic": [name for name in sorted(ALL_HOUSES) if name.startswith("messages")],
    "bedrock": [name for name in sorted(ALL_HOUSES) if name.startswith("converse")],
    "gemini": ["gemini 2.5", "gemini 3", "gemini 3 flash"],
    "gemini_interactions": ["interactions"],
    "openai_responses": ["responses", "responses, o3", "responses, 5.6"],
    "openai_chat": ["plain chat", "chat, 5.4"],
    "ollama": ["chat lines"],
    "cohere": ["chat with plans", "cohere, plain"],
}
_LEARNED = (
    "Reasoning is mandatory for this endpoint and cannot be disabled.",
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
)
"""What a gateway tells of a model behind it with its first refusal, and nobody knows before."""
_REPAIRED = "its provider refused it as it was"
_ONLY_TOLD = re.compile(r"reasoning came back without its reasoning_details|reasoning_details must come back whole")
"""What no real server refuses: it goes on with less, where state is lost."""
_STATE = re.compile(r"signature|Expected `thinking`|reasoning_content|encrypted|following item|thought")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


class Choices(NamedTuple):
    """What a conversation is made of."""

    targets: list[Target]
    mode: StateMode
    restarts: bool
    varies: bool
    """Whether the amount of thinking changes between turns."""
    awaits: bool


class Branch:
    """A client, and the same history as we would keep it ourselves: nothing is lost in that."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.shadow: list[tuple[Message, ...]] = []
        """Our messages of each turn of the client's."""
        self.is_edited = False
        """Somebody changed the words of a turn, so that its state may fit no more."""

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for turn in self.shadow for message in turn)

    def say(self, text: str) -> None:
        self.client.say(text)
        self.shadow.append((user(text),))

    def answer(self, results: list[str]) -> None:
        calls = self.shadow[-1][0].tool_calls
        heard = self.client.open_calls
        self.client.answer({call.id: result for call, result in zip(heard, results, strict=True)})
        answered = [ToolResult(call.id, result, call.name) for call, result in zip(calls, results, strict=True)]
        self.shadow.append((Message("tool", tuple(answered)),))

    def keep(self, message: Message | None) -> None:
        """Keep a reply that the client has kept."""
        if len(self.client.turns) > len(self.shadow):
            self.shadow.append((message or Message("assistant", ()),))

    def fork(self, place: int) -> Branch:
        other = Branch(self.client.fork(place))
        other.shadow = self.shadow[:place]
        other.is_edited = self.is_edited
        return other

    def rewrite(self, place: int, text: str) -> None:
        self.client.rewrite(place, text)
        self.is_edited = True
        changed = [
            msgspec.structs.replace(
                message, parts=tuple(Text(text) if isinstance(part, Text) else part for part in message.parts)
            )
            for message in self.shadow[place]
        ]
        self.shadow[place] = tuple(changed)


class Conversation:
    """One random conversation, with its forks. `say` takes the next turn of one of them."""

    def __init__(self, theatre: RelayTheatre, seed: int, tally: Counter[str]) -> None:
        self.seed = seed
        self.random = chance = random.Random(seed)
        self.theatre = theatre
        self.tally = tally
        client = chance.choice(sorted(ALL_CLIENTS))
        houses = chance.sample(sorted(ALL_HOUSES), chance.choice([1, 1, 2, 3]))
        if chance.random() < 0.3 and (own := _OWN_HOUSES.get(ALL_CLIENTS[client].dialect)):
            houses[0] = chance.choice(own)
        mode: StateMode = chance.choice(["store", "store", "memory", "carry-only", "off"])
        if ALL_CLIENTS[client] is StoredResponsesClient:
            mode = "store"  # what the server shall keep has to be kept somewhere
            # What a provider stores itself stays there.
            houses = [name for name in houses if name in _OWN_HOUSES["openai_responses"]][:1] or houses
        self.choices = Choices(
            [Target(house, chance.randrange(3)) for house in houses],
            mode,
            chance.random() < 0.5,
            chance.random() < 0.5,
            chance.random() < 0.3,
        )
        theatre.use(mode)
        echo: Echo = chance.choice(ECHOES)
        self.branches = [Branch(ALL_CLIENTS[client](echo))]
        self.number = 0
        self.amount: Amount | None = chance.choice(_AMOUNTS)
        self.origins: dict[bytes, Target] = {}
        """Who made each seal."""
        self.marks: dict[str, Target] = {}
        """Who thought each word that occurs only in thoughts."""
        self.has_lost = False
        """Whether a relay that alone knew some state is gone."""
        self.act: RelayAct | None = None

    def __repr__(self) -> str:
        client = self.branches[0].client
        return f"{client.dialect} ({client.echo}) → {self.choices}"

    def say(self) -> None:
        """Take one turn of one branch."""
        chance = self.random
        branch = self._change(chance.choice(self.branches))
        self._continue(branch)
        if self.choices.restarts and chance.random() < 0.3:
            self.theatre.restart()
            self.has_lost = self.has_lost or (self.number > 0 and self.theatre.mode == "memory")
        if self.choices.varies:
            self.amount = chance.choice(_AMOUNTS)
        target = chance.choice(self.choices.targets)
        house = ALL_HOUSES[target.house]
        self.number += 1
        parts = self._make_reply(house.redacts)
        ask = Ask(house.model, chance.random() < 0.6, self.amount, True)
        scene = scene_of(parts, chance.randrange(1, 30))
        awaited = self.choices.awaits and chance.random() < 0.5
        history = branch.messages
        act = self.act = self.theatre.ask(branch.client, target, ask, scene, awaited=awaited)
        if act.outcome.mode == "forward" and act.refusals:
            self._check_forwarded_refusal(act, branch, target, ask)
            return
        if act.start.status == 400 and not self._keeps_all(branch) and _ONLY_TOLD.search(act.refusals[-1]):
            self.tally["told by the stage alone"] += 1
            return
        self._check_reply(act, parts)
        self._check_request(act, branch, target, ask, history)
        self._remember(act, branch, target)

    # --- the laws -----------------------------------------------------------------------------------------------------

    def _check_reply(self, act: RelayAct, parts: tuple[Part, ...]) -> None:
        """The answer is the model's, apart from its thinking, in the words of the client's dialect."""
        assert act.start.status == 200, f"{act.start.status}: {act.body[:500]!r} after {act.refusals}"
        heard = act.heard
        assert heard is not None
        assert heard.text == "".join(part.text for part in parts if isinstance(part, Text))
        calls = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
        assert [(call.name, call.arguments) for call in heard.calls] == calls
        assert b"mull-" not in heard.text.encode()
        reply = act.outcome.reply
        assert reply is not None
        shown = reply.thinking.text if reply.thinking else ""
        if act.outcome.mode == "translate" and not _asks_for_thinking(self.branches[0].client, act.sent):
            assert not _find_marks(act.body.decode(errors="replace"))
            shown = ""
        assert _find_marks(heard.thinking) == _find_marks(shown)
        if shown.strip() and act.outcome.mode == "translate" and isinstance(self.branches[0].client, ChatClient):
            assert b'"reasoning_content"' in act.body  # the usual field, whatever the provider calls it

    def _check_foreign(self, act: RelayAct, target: Target) -> None:
        """No provider gets what another has sealed, whether the relay changed the request or not."""
        foreign = [token for token, maker in self.origins.items() if maker.origin != target.origin]
        assert [token for token in foreign for received in act.received if token in received.body] == []

    def _check_forwarded_refusal(self, act: RelayAct, branch: Branch, target: Target, ask: Ask) -> None:
        """What a client asks of its own provider is between the two, unless state is missing that the relay has, or the
        refusal is one that can be repaired.
        """
        if self._keeps_all(branch) or not self.choices.restarts:
            self._check_foreign(act, target)
        received = act.received[0]
        assert received.refusal is not None
        assert act.start.status == 200 or act.body == received.refusal.body
        assert received.body == replace_model(act.sent, ask.model, ask.model.partition(":")[2])
        said = [message for message in branch.messages if message.role == "assistant"]
        dropped = branch.client.echo in ("unthinking", "unsigned") and bool(said) and bool(find_tokens(said[-1]))
        is_lost = dropped and _STATE.search(received.refusal.text) is not None
        assert not (is_lost and self._keeps_all(branch)), received.refusal
        self.tally["forwarded refusal"] += 1

    def _check_request(
        self, act: RelayAct, branch: Branch, target: Target, ask: Ask, history: tuple[Message, ...]
    ) -> None:
        """The provider took it; it holds what a conversation of ours would have sent back, and nothing of others."""
        problems = [received.problem for received in act.received]
        assert problems[-1:] == [None], problems
        for received in act.received:
            assert _ENVELOPE not in received.body
            assert b"asides" not in received.body.lower()
            assert b"of-the-client" not in str(received.headers).encode()
        self.tally[act.outcome.mode] += 1
        self.tally.update(f"repaired: {refusal[:90]}" for refusal in act.refusals)
        body = act.received[-1].body
        if self._keeps_all(branch) or not self.choices.restarts:
            self._check_foreign(act, target)
        if act.outcome.mode == "forward":
            assert body == replace_model(act.sent, ask.model, ask.model.partition(":")[2])
            return
        if act.outcome.reason == _REPAIRED:
            first = replace_model(act.sent, ask.model, ask.model.partition(":")[2])
            assert act.received[0].body == first
            assert act.refusals
            self.tally[_REPAIRED] += 1
            return
        if self._keeps_all(branch) or "another dialect" in act.outcome.reason:
            # In its own dialect, a relay that forgot takes seals for its provider's own until that refuses them.
            self._check_foreign(act, target)
        mine = {token for message in history for token in find_tokens(message) if self.origins[token] == target}
        direct = self.theatre.encode_directly(branch.client, target, act.sent, ask, history, act.received[-1].path)
        due = {token for token in mine if token in direct}
        sent = {token for token in mine if token in body}
        if self._keeps_all(branch):
            thoughts = [mark for mark, maker in self.marks.items() if maker.origin != target.origin]
            assert [mark for mark in thoughts for received in act.received if mark.encode() in received.body] == []
            assert [refusal for refusal in act.refusals if refusal not in _LEARNED] == []
            missing, more = due - sent, sent - due
            assert not missing, f"{len(missing)} of {len(due)} seals did not go back"
            # What binds a seal to the words before it is the request as it went out, which the stage checks.
            assert not more or ALL_HOUSES[target.house].bound, f"{len(more)} seals went back that should not"
        self.tally["seals due"] += len(due)
        self.tally["seals sent"] += len(sent)

    def _keeps_all(self, branch: Branch) -> bool:
        """Whether nothing may be lost between the client and the relay."""
        if branch.is_edited or branch.client.echo == "blank":
            return False
        return self.theatre.mode == "store" or (self.theatre.mode == "memory" and not self.has_lost)

    # --- what comes between -------------------------------------------------------------------------------------------

    def _remember(self, act: RelayAct, branch: Branch, target: Target) -> None:
        message = finish_turn(act.outcome.reply)
        branch.keep(message)
        if message is not None:
            self.origins |= dict.fromkeys(find_tokens(message), target)
            thoughts = [part.text for part in message.parts if isinstance(part, Thought)]
            self.marks |= dict.fromkeys(_find_marks(" ".join(thoughts)), target)

    def _change(self, branch: Branch) -> Branch:
        """What a person does to a history by hand: another branch, back to an earlier place, or other words."""
        client, chance = branch.client, self.random
        change = chance.choice(_CHANGES)
        if change == "nothing" or not client.turns:
            return branch
        if change == "rewrite":
            branch.rewrite(chance.randrange(len(client.turns)), f"rewritten {self.number}")
            return branch
        other = branch.fork(chance.choice(client.find_forks()))
        if change == "rewind":
            self.branches[self.branches.index(branch)] = other
        else:
            self.branches.append(other)
        return other

    def _continue(self, branch: Branch) -> None:
        """Answer the calls of the last turn, or say something, or both."""
        chance = self.random
        if calls := branch.client.open_calls:
            branch.answer([chance.choice(["fine", "{}", f"seen {self.number}"]) for _ in calls])
            if chance.random() < 0.7:
                return
        branch.say(f"question {self.number}")

    def _make_reply(self, redacts: bool) -> tuple[Part, ...]:
        chance, number = self.random, self.number
        parts: list[Part] = []
        for place in range(chance.choice([1, 1, 2, 2, 3, 4])):
            kind = chance.choice(["thought", "thought", "text", "redacted" if redacts else "text"])
            if kind == "redacted":
                seal = Seal(REDACTED, f"cmVkYWN0ZWQ{self.seed:08d}{number:04d}{place:02d}")
                parts.append(Thought("", "hidden", "block", seals=(seal,)))
            elif kind == "thought":
                mark = f"mull-{self.seed}-{number}-{place}-mull"
                parts.append(Thought(chance.choice([mark, f" {mark} é\n", f"{mark}\n\n so <b> 日 "])))
            else:
                parts.append(
                    Text(
                        chance.choice([f"words {number}.{place} ", f" said {number}{place} \n", f"ok {place}.{number}"])
                    )
                )
        style = f"{chance.choice(ID_STYLES)}-{self.seed}"
        calls = chance.choice([0, 0, 1, 1, 1, 2, 3])
        for place in range(calls):
            name = chance.choice(["look", "feel"])
            parts.append(ToolCall(style.format(number=number, place=place), name, {"at": number * 10 + place}))
        if not calls and not any(isinstance(part, Text) for part in parts):
            parts.append(Text(f"so {number}"))
        return tuple(parts)


def _asks_for_thinking(client: WireClient, body: bytes) -> bool:
    """Whether thinking may stand in the body of the reply: where its first block is the answer, only if it was asked
    for.
    """
    asked = msgspec.json.decode(body)
    match client.dialect:
        case "anthropic":
            return asked.get("thinking", {}).get("type") in ("enabled", "adaptive")
        case "gemini":
            return asked.get("generationConfig", {}).get("thinkingConfig", {}).get("includeThoughts") is True
        case "ollama":
            return asked.get("think") is not False
        case _:
            return True


def _find_marks(text: str) -> list[str]:
    return re.findall(r"mull-\d+-\d+-\d+-mull", text)


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@pytest.mark.timeout(60 + TURNS // 5)
@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(2, BATCHES))])
def test_law_each_question_is_relayed(batch: int) -> None:
    """Random conversations of clients in their own words."""
    tally: Counter[str] = Counter()
    turns = seed = 0
    while turns < TURNS // BATCHES:
        with relays_opened() as theatre:
            for _ in range(200):
                seed += 1
                turns += converse(theatre, 1_000_000 * batch + seed, tally)
                if turns >= TURNS // BATCHES:
                    break
    _report(f"{turns} turns: {tally.most_common(20)}")


def converse(theatre: RelayTheatre, seed: int, tally: Counter[str]) -> int:
    """Hold one conversation; return how many turns it had."""
    chat = Conversation(theatre, seed, tally)
    turns = chat.random.randrange(2, 9)
    for _ in range(turns):
        try:
            chat.say()
        except BaseException as problem:
            problem.add_note(f"seed {seed}, turn {chat.number}: {chat!r}")
            raise
    return turns


# --- laws with a plan -------------------------------------------------------------------------------------------------


class Loop(Conversation):
    """A conversation of a planned kind: one client, one house, and tools at every step."""

    def __init__(self, theatre: RelayTheatre, client: WireClient, house: str, mode: StateMode = "store") -> None:
        super().__init__(theatre, _number(client.dialect, house), Counter())
        self.choices = Choices([Target(house, 0)], mode, restarts=False, varies=False, awaits=False)
        self.amount = "high"
        self.branches = [Branch(client)]
        theatre.use(mode)

    def _change(self, branch: Branch) -> Branch:
        return branch

    def _make_reply(self, redacts: bool) -> tuple[Part, ...]:
        number, seed = self.number, self.seed
        hidden = Thought("", "hidden", "block", seals=(Seal(REDACTED, f"cmVkYWN0ZWQ{seed:08d}{number:04d}00"),))
        return (
            Thought(f" mull-{seed}-{number}-0-mull "),
            *((hidden,) if redacts else ()),
            Text(f"Step {number}. "),
            ToolCall(f"call_{number}_1-{seed}", "look", {"at": number}),
            ToolCall(f"call_{number}_2-{seed}", "feel", {"at": number}),
        )


def _number(*words: str) -> int:
    """A number of these words, the same in every run."""
    return zlib.crc32(" ".join(words).encode()) % 90_000_000


@pytest.fixture(scope="module")
def theatre() -> Iterator[RelayTheatre]:
    with relays_opened() as theatre:
        yield theatre


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("number", range(len(HOUSES)), ids=sorted(HOUSES))
def test_law_a_client_that_strips_everything_finishes_five_steps(theatre: RelayTheatre, number: int, step: int) -> None:
    """Every third client without a word of thinking, before every strict house, with a restart between any two steps;
    another third at the next house, and all of them with the marker `thorough`.
    """
    house = sorted(HOUSES)[number]
    for client in list(CLIENTS.values())[number % step :: step]:
        loop = Loop(theatre, client("unthinking"), house)
        for _ in range(5):
            loop.say()
            theatre.restart()
        answered = [turn for turn in loop.branches[0].client.turns if turn.role == "assistant"]
        assert len(answered) == 5, f"{client.dialect} → {house}: {loop.tally}"


def test_laws_hold_on_a_server_too(postgres_url: str) -> None:
    """The same five steps with a vault in PostgreSQL, and conversations of all kinds."""
    with relays_opened(store=postgres_url) as theatre:
        for client in CLIENTS.values():
            loop = Loop(theatre, client("unthinking"), "messages with a budget")
            for _ in range(5):
                loop.say()
                theatre.restart()
            answered = [turn for turn in loop.branches[0].client.turns if turn.role == "assistant"]
            assert len(answered) == 5, f"{client.dialect}: {loop.tally}"
        for seed in range(6):
            converse(theatre, 7_000_000 + seed, Counter())


@pytest.mark.parametrize("dialect", sorted(CLIENTS))
def test_law_no_tenant_gets_the_state_of_another(theatre: RelayTheatre, dialect: str) -> None:
    """Somebody has the whole history of another tenant: ids, texts and envelopes. It is answered, without the state."""
    for house in ("messages with a budget", "responses", "gemini 3", "a gateway to signed text", "converse"):
        if house in _OWN_HOUSES[dialect]:
            continue  # what a provider makes itself is in the client's hands
        for echo in ("faithful", "unthinking"):
            loop = Loop(theatre, CLIENTS[dialect](echo), house)
            loop.say()
            branch, target = loop.branches[0], loop.choices.targets[0]
            loop._continue(branch)
            mine = [token for message in branch.messages for token in find_tokens(message)]
            assert mine, f"{house} seals nothing"
            thief = branch.client.fork()
            ask = Ask(ALL_HOUSES[house].model, thinking="high")
            act = theatre.ask(thief, target, ask, scene_of((Text("So be it."),)), tenant="another")
            assert act.start.status == 200 or _ONLY_TOLD.search(act.refusals[-1]), f"{act.body!r} after {act.refusals}"
            assert [token for token in mine for received in act.received if token in received.body] == []
            again = theatre.ask(branch.client, target, ask, scene_of((Text("So be it."),)))
            assert again.refusals == []
            assert [token for token in mine if token not in again.received[-1].body] == []


@pytest.mark.parametrize("dialect", sorted(CLIENTS))
def test_law_agents_beside_each_other_do_not_mix(dialect: str) -> None:
    """Forks of one history in threads of their own, all at once: each agent gets its own state back at every step."""
    house = "messages with a budget" if dialect not in ("anthropic", "bedrock") else "responses"
    agents, steps = 4, 3

    def play(served: ServedRequest) -> Scene:
        name = [message.text for message in served.prompt.messages if message.role == "user"][-1].split()[-1]
        step = sum(message.role == "assistant" for message in served.prompt.messages)
        call = ToolCall(f"call_{step}-{name}", "look", {"at": step})
        return scene_of((Thought(f"mull-{name}-{step}-mull"), Text(f"step {step}"), call))

    with relays_opened(play) as theatre:
        theatre.use("store")
        target, ask = Target(house, 0), Ask(ALL_HOUSES[house].model, thinking="high")
        origin = CLIENTS[dialect]("unthinking")
        origin.say("begin everybody")
        origin.hear(theatre.relay(origin, target, ask).body, ask)
        origin.answer({})

        def run(number: int) -> list[tuple[RelayAct, list[bytes]]]:
            client = origin.fork()
            client.say(f"go on agent{number}")
            acts: list[tuple[RelayAct, list[bytes]]] = []
            for _ in range(steps):
                before = [token for act, _ in acts for token in act.tokens]
                act = theatre.relay(client, target, ask)
                client.hear(act.body, ask)
                acts.append((act, before))
                client.answer({})
            return acts

        with ThreadPoolExecutor(agents) as pool:
            done = list(pool.map(run, range(agents)))
        bodies = [received.body for received in theatre.list_received(target)]
        for number, acts in enumerate(done):
            others = [token for other in done[:number] + done[number + 1 :] for act, _ in other for token in act.tokens]
            own = [body for body in bodies if f"go on agent{number}".encode() in body]
            assert len(own) == steps
            for body, (act, due) in zip(own, acts, strict=True):
                assert act.start.status == 200, act.body
                assert [token for token in due if token not in body] == []
                assert [token for token in others if token in body] == []
        assert [received.problem for received in theatre.list_received(target) if received.problem] == []


class _SameWords:
    """A model that says the same whenever it is asked, and thinks something else each time."""

    def __init__(self, dialect: str, *, calls: bool) -> None:
        """`dialect`: that of the clients, which is not the model's."""
        self._numbers = count()
        self._calls = calls
        house = "messages with a budget" if dialect not in ("anthropic", "bedrock") else "responses"
        self.target, self.ask = Target(house, 0), Ask(ALL_HOUSES[house].model, thinking="high")

    def play(self, served: ServedRequest) -> Scene:
        step = sum(message.role == "assistant" for message in served.prompt.messages)
        calls = [ToolCall(f"call_{secrets.token_hex(8)}", "look", {"at": step})] if self._calls else []
        text = Text(f"this is the answer to step {step}")
        return scene_of((Thought(f"mull-{next(self._numbers)}-mull"), text, *calls))

    def go_on(self, client: WireClient, act: RelayAct) -> None:
        """Let a client take an answer, and prepare its next question."""
        client.hear(act.body, self.ask)
        if self._calls:
            client.answer({})
        else:
            client.say("go on")


@pytest.mark.parametrize("session", ["", "mine"])
@pytest.mark.parametrize("calls", [True, False])
@pytest.mark.parametrize("dialect", sorted(CLIENTS))
def test_law_a_turn_that_was_cut_off_and_asked_again_has_its_state(dialect: str, calls: bool, session: str) -> None:
    """The record of the first attempt was stored, and the end of its response never arrived. Without the ids of calls,
    only a session shows that the second attempt is of the same conversation.
    """
    model = _SameWords(dialect, calls=calls)
    with relays_opened(model.play) as theatre:
        theatre.use("store")
        client = CLIENTS[dialect]("unthinking")
        client.say("begin")
        cut = theatre.relay(client, model.target, model.ask, is_cut=True, session=session)
        theatre.restart()
        time.sleep(0.06)  # as long as a response may be on its way
        again = theatre.relay(client, model.target, model.ask, session=session)
        model.go_on(client, again)
        theatre.relay(client, model.target, model.ask, session=session)
        body = theatre.list_received(model.target)[-1].body
        is_known = bool(session) or (calls and dialect != "ollama")
        assert again.tokens
        assert all((token in body) is is_known for token in again.tokens)
        assert [token for token in cut.tokens if token in body] == []


@pytest.mark.parametrize("calls", [True, False])
@pytest.mark.parametrize("dialect", sorted(CLIENTS))
@pytest.mark.parametrize("crashes", [False, True])
def test_law_clients_that_heard_the_same_words_do_not_mix(dialect: str, calls: bool, crashes: bool) -> None:
    """Both have the whole response. `crashes`: the relay of the first one ended before it could say so, and its client
    went on. Who has no ids of calls gets nothing.
    """
    model = _SameWords(dialect, calls=calls)
    with relays_opened(model.play) as theatre:
        theatre.use("store")
        clients = [CLIENTS[dialect]("unthinking") for _ in range(2)]
        first: list[RelayAct] = []
        for client in clients:
            client.say("begin")
            first.append(theatre.relay(client, model.target, model.ask, is_cut=crashes and client is clients[0]))
            model.go_on(client, first[-1])
            if crashes and client is clients[0]:
                theatre.relay(client, model.target, model.ask)
            theatre.restart()
            time.sleep(0.06)
        has_ids = calls and dialect != "ollama"
        for client, own, other in zip(clients, first, reversed(first), strict=True):
            theatre.relay(client, model.target, model.ask)
            body = theatre.list_received(model.target)[-1].body
            assert [token for token in other.tokens if token in body] == []
            assert all((token in body) is has_ids for token in own.tokens)


@pytest.mark.parametrize("differs", ["session", "settings"])
@pytest.mark.parametrize("dialect", sorted(CLIENTS))
def test_law_a_reply_that_came_is_not_taken_for_one_that_is_asked_again(dialect: str, differs: str) -> None:
    """The relay of the first client ended before it could say that all had arrived. Another conversation with the same
    words follows, and only then does the first client go on.
    """
    model = _SameWords(dialect, calls=False)
    other = Ask(model.ask.model, stream=not model.ask.stream, thinking="high")
    asks = (model.ask, model.ask if differs == "session" else other)
    with relays_opened(model.play) as theatre:
        theatre.use("store")
        clients = [CLIENTS[dialect]("unthinking") for _ in range(2)]
        first: list[RelayAct] = []
        for number, (client, ask) in enumerate(zip(clients, asks, strict=True)):
            client.say("begin")
            session = f"{number}" if differs == "session" else ""
            first.append(theatre.relay(client, model.target, ask, is_cut=number == 0, session=session))
            theatre.restart()
            time.sleep(0.06)
        for client, ask, act, others in zip(clients, asks, first, reversed(first), strict=True):
            client.hear(act.body, ask)
            client.say("go on")
            theatre.relay(client, model.target, ask)
            body = theatre.list_received(model.target)[-1].body
            assert others.tokens
            assert [token for token in others.tokens if token in body] == []

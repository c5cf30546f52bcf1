"""Which messages Claude's servers refuse: order of blocks, calls and results, and thinking in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, takewhile
from typing import NamedTuple

from asides.dialects.anthropic.encode_messages import BLOCK_FIELDS
from asides.dialects.anthropic.rules import words
from asides.dialects.anthropic.rules.settings import ClaudeRequest
from asides.dialects.rulebook import BrokenRule, Wire, as_object

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
THOUGHTS = ("thinking", "redacted_thinking")


class Turn(NamedTuple):
    """A message of the user or the model, with its place in the request."""

    place: int
    role: str
    blocks: list[Wire]

    def write_place(self, number: int) -> str:
        """Write the place of a block as the servers do."""
        return f"messages.{self.place}.content.{number}"

    def path(self, number: int) -> str:
        """Write the path of a block."""
        return f"messages[{self.place}].content[{number}]"


def check_history(request: ClaudeRequest) -> Iterator[BrokenRule]:
    """Yield every rule that the messages of a request break. The server alone can check the content of signatures."""
    turns = list_turns(request)
    # Newer models take a conversation that begins with the model's words (recorded: Sonnet 4.5).
    is_old = request.rule is not None and request.rule.thinking == "never"
    if is_old and turns and turns[0].role != "user":
        yield words.FIRST_ROLE.broken(f"messages[{turns[0].place}]")
    for turn in turns:
        yield from _check_fields(turn)
        yield from _check_content(turn, is_last=turn.place == len(request.messages) - 1)
    yield from _check_server_tools(turns)
    yield from _check_tools(turns, request)
    yield from _check_prefill(turns, request)
    yield from _check_thoughts(turns, request)


def list_turns(request: ClaudeRequest) -> list[Turn]:
    """Return the messages other than system messages, which may occur between them."""
    return [
        Turn(place, str(message.get("role")), message["content"])
        for place, message in enumerate(request.messages)
        if message.get("role") != "system"
    ]


# --- blocks -----------------------------------------------------------------------------------------------------------


def _begins_with_summary(blocks: list[Wire]) -> bool:
    return bool(blocks) and blocks[0].get("type") == "compaction"


def _check_fields(turn: Turn) -> Iterator[BrokenRule]:
    for number, block in enumerate(turn.blocks):
        kind, where, path = str(block.get("type")), turn.write_place(number), turn.path(number)
        if kind == "thinking" and not isinstance(block.get("thinking"), str):
            yield words.TEXT_MISSING.broken(path, place=where)
        field = "data" if kind == "redacted_thinking" else "signature"
        if kind in THOUGHTS and not isinstance(block.get(field), str):
            yield words.SIGNATURE_MISSING.broken(path, place=where, type=kind, field=field)
        if kind == "tool_use" and not _CALL_ID.fullmatch(str(block.get("id"))):
            yield words.CALL_ID.broken(path, place=where)
        if kind == "tool_use" and not isinstance(block.get("input"), dict):
            yield words.INPUT_INVALID.broken(path, place=where)
        known = BLOCK_FIELDS.get(kind)
        for name in block if known is not None else ():
            if known is not None and name not in known:
                yield words.EXTRA_INPUT.broken(f"{path}.{name}", field=f"{where}.{kind}.{name}")


def _check_content(turn: Turn, *, is_last: bool) -> Iterator[BrokenRule]:
    is_assistant, message = turn.role == "assistant", f"messages.{turn.place}"
    if not turn.blocks and not (is_assistant and is_last):
        yield words.EMPTY_MESSAGE.broken(f"messages[{turn.place}]", message=message)
    for number, block in enumerate(turn.blocks):
        kind, text = block.get("type"), str(block.get("text", ""))
        if kind == "text" and not text.strip():
            yield (words.BLANK_TEXT if text else words.EMPTY_TEXT).broken(turn.path(number))
        if kind in THOUGHTS and not is_assistant:
            yield words.THOUGHT_OF_USER.broken(turn.path(number), place=turn.write_place(number), type=kind)
    if is_assistant and turn.blocks and turn.blocks[-1].get("type") in THOUGHTS:
        yield words.FINAL_BLOCK.broken(turn.path(len(turn.blocks) - 1), message=message)


# --- calls and results ------------------------------------------------------------------------------------------------


def _check_server_tools(turns: list[Turn]) -> Iterator[BrokenRule]:
    """Check that each call of a server tool has its result, unless its turn is the last, and each result its call."""
    blocks = [(turn, number, block) for turn in turns for number, block in enumerate(turn.blocks)]
    results = {str(block.get("tool_use_id")) for _, _, block in blocks if _is_server_result(block)}
    last = max((turn.place for turn in turns if _is_question(turn)), default=-1)
    called: set[str] = set()
    for turn, number, block in blocks:
        if block.get("type") == "server_tool_use":
            called.add(str(block.get("id")))
            if str(block.get("id")) not in results and turn.place < last:
                yield words.SERVER_RESULT_MISSING.broken(
                    turn.path(number), place=turn.place, name=block.get("name"), id=block.get("id")
                )
        elif _is_server_result(block) and str(block.get("tool_use_id")) not in called:
            yield words.SERVER_RESULT_ORPHANED.broken(
                turn.path(number), place=turn.write_place(number), type=block.get("type"), id=block.get("tool_use_id")
            )


def _is_server_result(block: Wire) -> bool:
    """Whether a block is the result of a tool that Anthropic runs."""
    kind = str(block.get("type"))
    return kind.endswith("_tool_result") and kind != "mcp_tool_result"


def _is_question(turn: Turn) -> bool:
    return turn.role == "user" and any(block.get("type") != "tool_result" for block in turn.blocks)


def _check_tools(turns: list[Turn], request: ClaudeRequest) -> Iterator[BrokenRule]:
    called: set[str] = set()
    # The server joins neighbouring messages of one role (recorded).
    runs = [list(run) for _, run in groupby(turns, key=lambda turn: turn.role)]
    for index, run in enumerate(runs):
        results = _list_leading_results(runs[index + 1] if index + 1 < len(runs) else [])
        for turn in run:
            for number, block in enumerate(turn.blocks):
                if block.get("type") == "tool_use":
                    if str(block.get("id")) in called:
                        yield words.IDS_REPEATED.broken(turn.path(number), place=turn.write_place(number))
                    called.add(str(block.get("id")))
            missing = [name for name in _list_calls([turn]) if name not in results]
            if missing:
                ids = ", ".join(map(str, missing))
                yield words.RESULT_MISSING.broken(f"messages[{turn.place}]", message=f"messages.{turn.place}", ids=ids)
        yield from _check_orphans(run, _list_calls(runs[index - 1]) if index else [])
    uses_tools = any(block.get("type") in ("tool_use", "tool_result") for turn in turns for block in turn.blocks)
    if uses_tools and not request.body.get("tools"):
        yield words.TOOLS_UNDEFINED.broken("tools")
    if _has_pending_code_calls(runs) and not request.body.get("container"):
        yield words.CONTAINER_MISSING.broken("container")


def _list_calls(run: list[Turn]) -> list[object]:
    return [block.get("id") for turn in run for block in turn.blocks if block.get("type") == "tool_use"]


def _has_pending_code_calls(runs: list[list[Turn]]) -> bool:
    """Return whether the last message holds results of calls that code of the server made."""
    if len(runs) < 2 or not _list_leading_results(runs[-1]):
        return False
    callers = [as_object(block.get("caller")).get("type") for turn in runs[-2] for block in turn.blocks]
    return any(str(caller).startswith("code_execution") for caller in callers)


def _list_leading_results(run: list[Turn]) -> list[object]:
    """Return the ids of the results at the beginning of the user's turn. Results behind other content do not count."""
    blocks = [block for turn in run if turn.role == "user" for block in turn.blocks]
    leading = takewhile(lambda block: block.get("type") == "tool_result", blocks)
    return [block.get("tool_use_id") for block in leading]


def _check_orphans(run: list[Turn], asked: list[object]) -> Iterator[BrokenRule]:
    for turn in run:
        for number, block in enumerate(turn.blocks):
            if block.get("type") == "tool_result":
                name = block.get("tool_use_id")
                if name not in asked:
                    yield words.RESULT_ORPHANED.broken(turn.path(number), place=turn.write_place(number), id=name)
                else:
                    asked.remove(name)


# --- thinking ---------------------------------------------------------------------------------------------------------


def _check_prefill(turns: list[Turn], request: ClaudeRequest) -> Iterator[BrokenRule]:
    last = turns[-1] if turns and turns[-1].place == len(request.messages) - 1 else None
    if last is None or last.role != "assistant" or not last.blocks:
        return
    # A turn that the server paused continues, and so does one after a summary.
    is_paused = any(str(block.get("type")).startswith("server_tool") for block in last.blocks)
    if is_paused or _begins_with_summary(last.blocks) or request.body.get("fallback_credit_token"):
        return
    if request.rule is not None and request.rule.prefill == "never":
        yield words.PREFILL.broken(f"messages[{last.place}]")


def _check_thoughts(turns: list[Turn], request: ClaudeRequest) -> Iterator[BrokenRule]:
    if request.rule is not None and request.rule.begins_with_thinking:
        yield from _check_order(turns)
        if request.thinking.get("type") == "enabled":
            yield from _check_turn_start(turns)
    if request.is_off and request.thinking.get("type") != "between_tools":
        yield from _check_final_position(turns)


def _check_order(turns: list[Turn]) -> Iterator[BrokenRule]:
    for turn in turns:
        kinds = [str(block.get("type")) for block in turn.blocks]
        if turn.role == "assistant" and kinds and kinds[0] not in THOUGHTS and set(kinds) & set(THOUGHTS):
            yield words.ORDER.broken(turn.path(0), quoted=kinds[0], place=turn.write_place(0), found=kinds[0])


def _check_turn_start(turns: list[Turn]) -> Iterator[BrokenRule]:
    """Check that the first assistant message of an open turn begins with a thought, if the turn has calls."""
    open_turn = _list_open_turn(turns)
    has_calls = any(block.get("type") == "tool_use" for turn in open_turn for block in turn.blocks)
    ends_with_model = bool(turns) and turns[-1].role == "assistant"
    if not open_turn or not (has_calls or ends_with_model) or not open_turn[0].blocks:
        return
    first = open_turn[0]
    found = first.blocks[0].get("type")
    if found not in THOUGHTS:
        yield words.MUST_LEAD.broken(first.path(0), place=first.write_place(0), found=found)


def _check_final_position(turns: list[Turn]) -> Iterator[BrokenRule]:
    """Check that the last assistant message has no thought, if nothing but results follows it."""
    for turn in [turn for turn in _list_open_turn(turns) if turn.role == "assistant"][-1:]:
        for number, block in enumerate(turn.blocks):
            if block.get("type") in THOUGHTS:
                yield words.WHILE_DISABLED.broken(turn.path(number), place=turn.write_place(number))


def _list_open_turn(turns: list[Turn]) -> list[Turn]:
    """Return the messages from the first assistant message after the user's last words on."""
    first = len(turns)
    for number in range(len(turns) - 1, -1, -1):
        if turns[number].role == "assistant":
            first = number
        elif any(block.get("type") != "tool_result" for block in turns[number].blocks):
            break
    return turns[first:]

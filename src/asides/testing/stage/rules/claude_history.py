"""Which messages Claude's servers refuse: order of blocks, calls and results, and thinking that was changed.

Not here: the settings (claude_settings), the words (claude_texts), and what a signature says (claude_seals).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from asides.dialects.anthropic.server.write_reply import write_error
from asides.testing.stage.rules import DetailedRefusal, Wire
from asides.testing.stage.rules import claude_texts as texts
from asides.testing.stage.rules.claude_generations import READABLE, find_generation, name_model
from asides.testing.stage.rules.claude_seals import THOUGHTS, ClaudeSeals, Fault, Issued, Prefix, read_seal
from asides.testing.stage.rules.claude_settings import BINDING_CONTROLS, ClaudeRequest

_BLOCK_FIELDS = {
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
}
_BETA_SENTENCE = (
    " That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
)
_SYSTEM_SENTENCE = " The `system` prompt differs from the one this block was created with."


class Dropped(msgspec.Struct, frozen=True):
    """A thinking block that the server leaves out in silence, and why."""

    path: str
    reason: str


def check_history(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    """Yield every rule that the messages of a request break, but for those about signatures."""
    messages = request.messages
    turns = [(place, message) for place, message in enumerate(messages) if message.get("role") != "system"]
    if turns and turns[0][1].get("role") != "user" and not _begins_with_summary(turns[0][1]):
        yield texts.FIRST_ROLE.refuse()
    for place, message in turns:
        yield from _check_fields(message, place)
        yield from _check_content(message, place, is_last=place == len(messages) - 1)
    yield from _check_tools(turns, request)
    yield from _check_prefill(request)
    yield from _check_thoughts(turns, request)


# --- blocks -----------------------------------------------------------------------------------------------------------


def _begins_with_summary(message: Wire) -> bool:
    return bool(message["content"]) and message["content"][0].get("type") == "compaction"


def _check_fields(message: Wire, place: int) -> Iterator[DetailedRefusal]:
    for number, block in enumerate(message["content"]):
        kind, where = str(block.get("type")), f"messages.{place}.content.{number}"
        if kind == "thinking" and not isinstance(block.get("thinking"), str):
            yield texts.TEXT_MISSING.refuse(place=where)
        field = "data" if kind == "redacted_thinking" else "signature"
        if kind in THOUGHTS and not isinstance(block.get(field), str):
            yield texts.SIGNATURE_MISSING.refuse(place=where, type=kind, field=field)
        if kind == "tool_use" and not isinstance(block.get("input"), dict):
            yield texts.INPUT_INVALID.refuse(place=where)
        known = _BLOCK_FIELDS.get(kind)
        for name in block if known is not None else ():
            if known is not None and name not in known:
                yield texts.EXTRA_INPUT.refuse(field=f"{where}.{kind}.{name}")


def _check_content(message: Wire, place: int, *, is_last: bool) -> Iterator[DetailedRefusal]:
    blocks, is_assistant = message["content"], message.get("role") == "assistant"
    if not blocks and not (is_assistant and is_last):
        yield texts.EMPTY_MESSAGE.refuse(message=f"messages.{place}")
    for block in blocks:
        if block.get("type") == "text":
            text = str(block.get("text", ""))
            if not text:
                yield texts.EMPTY_TEXT.refuse()
            elif not text.strip():
                yield texts.BLANK_TEXT.refuse()
    if is_assistant and blocks and blocks[-1].get("type") in THOUGHTS:
        yield texts.FINAL_BLOCK.refuse(message=f"messages.{place}")
    if not is_assistant:
        for number, block in enumerate(blocks):
            if block.get("type") in THOUGHTS:
                yield texts.THOUGHT_OF_USER.refuse(place=f"messages.{place}.content.{number}", type=block["type"])


# --- calls and results ------------------------------------------------------------------------------------------------


def _check_tools(turns: list[tuple[int, Wire]], request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    called: set[object] = set()
    uses_tools = False
    for number, (place, message) in enumerate(turns):
        calls = [block.get("id") for block in message["content"] if block.get("type") == "tool_use"]
        for index, block in enumerate(message["content"]):
            uses_tools = uses_tools or block.get("type") in ("tool_use", "tool_result")
            if block.get("type") == "tool_use":
                if block.get("id") in called:
                    yield texts.IDS_REPEATED.refuse(place=f"messages.{place}.content.{index}")
                called.add(block.get("id"))
        following = turns[number + 1][1] if number + 1 < len(turns) else None
        results = _list_leading_results(following)
        if missing := [call for call in calls if call not in results]:
            yield texts.RESULT_MISSING.refuse(message=f"messages.{place}", ids=", ".join(map(str, missing)))
        yield from _check_orphans(place, message, turns[number - 1][1] if number else None)
    if uses_tools and not request.body.get("tools"):
        yield texts.TOOLS_UNDEFINED.refuse()


def _list_leading_results(message: Wire | None) -> list[object]:
    """Return the ids of the results at the beginning of a message. Results behind other content do not count."""
    results: list[object] = []
    for block in message["content"] if message is not None and message.get("role") == "user" else ():
        if block.get("type") != "tool_result":
            break
        results.append(block.get("tool_use_id"))
    return results


def _check_orphans(place: int, message: Wire, before: Wire | None) -> Iterator[DetailedRefusal]:
    asked = [block.get("id") for block in before["content"] if block.get("type") == "tool_use"] if before else []
    for number, block in enumerate(message["content"]):
        if block.get("type") == "tool_result":
            name = block.get("tool_use_id")
            if name not in asked:
                yield texts.RESULT_ORPHANED.refuse(place=f"messages.{place}.content.{number}", id=name)
            else:
                asked.remove(name)


# --- thinking ---------------------------------------------------------------------------------------------------------


def _check_prefill(request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    last = request.messages[-1] if request.messages else None
    if last is None or last.get("role") != "assistant" or not last["content"]:
        return
    # A turn that the server paused goes on, and so does one after a summary.
    paused = any(str(block.get("type")).startswith("server_tool") for block in last["content"])
    if paused or _begins_with_summary(last) or request.body.get("fallback_credit_token"):
        return
    if request.generation is not None and not request.generation.prefill:
        yield texts.PREFILL.refuse()


def _check_thoughts(turns: list[tuple[int, Wire]], request: ClaudeRequest) -> Iterator[DetailedRefusal]:
    generation = request.generation
    leads = generation is None or generation.leads_with_thinking
    if leads:
        yield from _check_order(turns)
    if leads and request.thinking.get("type") == "enabled":
        yield from _check_turn_start(turns)


def _check_order(turns: list[tuple[int, Wire]]) -> Iterator[DetailedRefusal]:
    for place, message in turns:
        kinds = [str(block.get("type")) for block in message["content"]]
        if message.get("role") == "assistant" and kinds and kinds[0] not in THOUGHTS and set(kinds) & set(THOUGHTS):
            yield texts.ORDER.refuse(place=f"messages.{place}.content.0", found=kinds[0])


def _check_turn_start(turns: list[tuple[int, Wire]]) -> Iterator[DetailedRefusal]:
    """Check that the first assistant message of an open turn begins with a thought, if the turn has calls."""
    first = _find_open_turn(turns)
    open_turn = turns[first:]
    has_calls = any(block.get("type") == "tool_use" for _, message in open_turn for block in message["content"])
    ends_with_model = bool(turns) and turns[-1][1].get("role") == "assistant"
    if not open_turn or not (has_calls or ends_with_model) or not open_turn[0][1]["content"]:
        return
    place, message = open_turn[0]
    found = message["content"][0].get("type")
    if found not in THOUGHTS:
        yield texts.MUST_LEAD.refuse(place=f"messages.{place}.content.0", found=found)


def _find_open_turn(turns: list[tuple[int, Wire]]) -> int:
    """Return the number of the first assistant message after the user's last words."""
    first = len(turns)
    for number in range(len(turns) - 1, -1, -1):
        message = turns[number][1]
        if message.get("role") == "assistant":
            first = number
        elif any(block.get("type") != "tool_result" for block in message["content"]):
            break
    return first


# --- signatures -------------------------------------------------------------------------------------------------------


class SealCheck:
    """Checks the signatures of one request. What the server would leave out in silence is in `dropped`."""

    def __init__(self, request: ClaudeRequest, seals: ClaudeSeals) -> None:
        self._request = request
        self._seals = seals
        self._prefix: Prefix = seals.read_prefix(
            request.body.get("system") or [], request.body.get("tools"), request.messages
        )
        self.dropped: list[Dropped] = []

    def check(self) -> Iterator[DetailedRefusal]:
        """Yield every rule that the seals of a request break."""
        messages = self._request.messages
        if not self._request.thinks and self._request.thinking.get("type") != "between_tools":
            yield from self._check_final_position()
        latest = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
        for place, message in enumerate(messages):
            earlier: list[str] = []
            drops_rest = False
            for number, block in enumerate(message["content"]):
                where = f"messages.{place}.content.{number}"
                if block.get("type") == "compaction":
                    yield from self._check_summary(block, where)
                if block.get("type") not in THOUGHTS:
                    drops_rest = False
                    continue
                if drops_rest:
                    self.dropped.append(Dropped(where, "prefix_binding_mismatch"))
                else:
                    dropped = len(self.dropped)
                    yield from self._check_thought(block, where, earlier, place, is_latest=place == latest)
                    drops_rest = any(drop.reason.startswith("prefix") for drop in self.dropped[dropped:])
                earlier.append(read_seal(block)[1])

    def _check_final_position(self) -> Iterator[DetailedRefusal]:
        """Check that the last assistant message has no thought, if nothing but results follows it."""
        turns = [turn for turn in enumerate(self._request.messages) if turn[1].get("role") != "system"]
        open_turn = [turn for turn in turns[_find_open_turn(turns) :] if turn[1].get("role") == "assistant"]
        for place, message in open_turn[-1:]:
            for number, block in enumerate(message["content"]):
                if block.get("type") in THOUGHTS:
                    issued = self._seals.read(*read_seal(block))
                    if issued is None or issued.asked:
                        yield texts.WHILE_DISABLED.refuse(place=f"messages.{place}.content.{number}")

    def _check_thought(
        self, block: Wire, where: str, earlier: list[str], place: int, *, is_latest: bool
    ) -> Iterator[DetailedRefusal]:
        request = self._request
        kind, value = read_seal(block)
        issued = self._seals.read(kind, value)
        names = {"place": where, "field": "data" if kind == "redacted" else "signature", "type": block["type"]}
        if issued is None:
            yield texts.SIGNATURE_INVALID.refuse(**names)
            return
        faults = self._seals.find_faults(
            issued,
            text="" if kind == "redacted" else str(block.get("thinking", "")),
            earlier=earlier,
            model=request.model,
            account=request.account,
            prefix=self._prefix,
            place=place,
        )
        if (reason := self._find_silent_drop(issued, faults)) is not None:
            self.dropped.append(Dropped(where, reason))
            return
        if "model" in faults and not self._can_read(issued.model):
            yield texts.SIGNATURE_INVALID.refuse(**names)
        checks_text = not (request.is_old_account and request.generation and request.generation.prefix_bound)
        if "text" in faults and checks_text:
            yield (texts.BLOCK_MODIFIED if is_latest else texts.SIGNATURE_INVALID).refuse(**names)
        if is_latest and "sequence" in faults:
            yield texts.BLOCK_MODIFIED.refuse(**names)
        if request.checks_prefix and faults & {"system", "tools", "messages"}:
            if request.drops_unbound and BINDING_CONTROLS in request.betas:
                self.dropped.append(Dropped(where, "prefix_binding_mismatch"))
                return
            beta = "" if BINDING_CONTROLS in request.betas else _BETA_SENTENCE
            cause = _SYSTEM_SENTENCE if "system" in faults else ""
            yield texts.PREFIX_MISMATCH.refuse(**names, beta=beta, cause=cause)

    def _find_silent_drop(self, issued: Issued, faults: set[Fault]) -> str | None:
        """Return why the server leaves a block out without a word; None if it does not."""
        made_by = find_generation(issued.model)
        if "account" in faults and made_by is not None and made_by.account_bound:
            return "organization_binding_mismatch"
        generation = self._request.generation
        if (
            "model" in faults
            and generation is not None
            and generation.prefix_bound
            and not self._can_read(issued.model)
        ):
            return "model_binding_mismatch"
        return None

    def _can_read(self, model: str) -> bool:
        """Return whether the requested model reads the thinking of this one: itself, under any name, and a few."""
        made_by, asked = name_model(model), name_model(self._request.model)
        if made_by is None or asked is None:
            return model == self._request.model
        return made_by == asked or made_by in READABLE.get(asked, ())

    def _check_summary(self, block: Wire, where: str) -> Iterator[DetailedRefusal]:
        signature, content = block.get("signature"), block.get("content")
        if signature is None or content is None:
            return
        issued = self._seals.read("compaction", signature)
        if issued is None or not self._seals.has_text(issued, str(content)):
            details = {"error_code": "compaction_content_mismatch"}
            yield texts.COMPACTION_MISMATCH.refuse(
                lambda status, text: write_error(status, text, details=details), place=where
            )

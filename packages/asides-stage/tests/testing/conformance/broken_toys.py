"""The toy, broken in one way for each check of the suite, to prove the suite itself.

Each breaks as real adapters do: a thought leaks, a text is doubled, a signature is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.dialects.document_decoder import DocumentDecoder
from asides.providers.provider import ModelRule, Provider, Quirks, ReplayRule, Target
from asides.values.errors import BadRequest, ConnectionLost, ProviderError
from asides.values.events import (
    Event,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import Prompt, Sampling
from asides.values.model_info import ModelPage
from asides.values.notices import Notice
from asides.values.parts import Text, ToolResult
from asides.values.thinking import Thought
from asides_stage import Example
from tests.testing.conformance.toy import LINES, TOY, Line, ToyDecoder, ToyDialect, ToyWriter


def row(**changes: Any) -> Provider:
    """Return the toy's row with changes."""
    return msgspec.structs.replace(TOY, **changes)


def with_decoder(decoder: type[DocumentDecoder]) -> ToyDialect:
    """Return the toy's dialect with another decoder."""

    class ResponseReader(ToyDialect):
        def decoder(self, target: Target) -> DocumentDecoder:
            return decoder(target)  # type: ignore[call-arg]

    return ResponseReader()


class ChangedRequest(ToyDialect):
    """Changes the request."""

    def encode(self, prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
        request, notices = super().encode(self.prompt(prompt), target)
        body = self.body(msgspec.json.decode(request.body), prompt)
        return msgspec.structs.replace(request, body=msgspec.json.encode(body)), notices

    def prompt(self, prompt: Prompt) -> Prompt:
        return prompt

    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        del prompt
        return body


class ChangedEvents(ToyDecoder):
    """Changes the events."""

    def feed(self, data: bytes) -> list[Event]:
        return self.changed(super().feed(data))

    def finish(self) -> list[Event]:
        return self.changed(super().finish())

    def changed(self, events: list[Event]) -> list[Event]:
        return [event for one in events for event in self.change(one)]

    def change(self, event: Event) -> list[Event]:
        return [event]


# --- asking -----------------------------------------------------------------------------------------------------------


class ForgetsTheSystemPrompt(ChangedRequest):
    def prompt(self, prompt: Prompt) -> Prompt:
        return msgspec.structs.replace(prompt, system=None)


class AlwaysStreams(ChangedRequest):
    def prompt(self, prompt: Prompt) -> Prompt:
        return msgspec.structs.replace(prompt, stream=True)


class ForgetsSettings(ChangedRequest):
    def prompt(self, prompt: Prompt) -> Prompt:
        return msgspec.structs.replace(prompt, sampling=Sampling())


class NeverAsks(ChangedRequest):
    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        if prompt.thinking.wanted:
            body.pop("ponder", None)
        return body


class AsksInAnotherForm(ChangedRequest):
    """Its row names a switch, but it sends an effort, which the server half understands too."""

    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        if prompt.thinking.wanted:
            body["ponder"] = prompt.thinking.effort or True
        return body


class NeverStops(ChangedRequest):
    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        if prompt.thinking.mode == "off":
            del body["ponder"]
        return body


class KnowsOneEffort(ChangedRequest):
    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        return {**body, "ponder": "medium"} if prompt.thinking.effort else body


class ListsNothing(ToyDialect):
    def read_models(self, body: bytes) -> ModelPage:
        del body
        return ModelPage(())


class SendsANumber(ChangedRequest):
    numbers = count()

    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        return {**body, "number": next(self.numbers)}


# --- reading ----------------------------------------------------------------------------------------------------------


class DropsThinking(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [] if isinstance(event, ThinkingDelta) else [event]


class LeaksThinkingIntoText(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [event, TextDelta(event.text, 1)] if isinstance(event, ThinkingDelta) else [event]


class NumbersEveryDelta(ChangedEvents):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._last = -1000

    def change(self, event: Event) -> list[Event]:
        if not isinstance(event, ThinkingDelta):
            return [event]
        self._last += 1
        return [msgspec.structs.replace(event, block=self._last)]


class QuotesThinkingInAWarning(ToyDecoder):
    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        super().decode_document(payload, events)
        if ponder := LINES.decode(payload).ponder:
            self.warn("pondered", f"the model pondered {ponder}", events)


class LeaksThinkingAtACut(ToyDecoder):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._pondered = ""

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        super().decode_document(payload, events)
        self._pondered += LINES.decode(payload).ponder or ""

    def finish(self) -> list[Event]:
        last = super().finish()
        return last if self.failure is None else [*last, TextDelta(self._pondered, 1000)]


class DoublesTextOfAStream(ToyDecoder):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._text = ""

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        super().decode_document(payload, events)
        self._text += LINES.decode(payload).says or ""
        if self.ended and self.streamed:
            events.append(TextDelta(self._text, 1))


class CountsOnlyStreams(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [] if isinstance(event, UsageReported) and not self.streamed else [event]


class TakesAPieceForALine(ToyDecoder):
    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for line in filter(None, data.split(b"\n")):
            try:
                self.decode_payload(line, events)
            except Exception:  # noqa: BLE001 - which is what such decoders do
                continue
        return events


class WritesNoReason(ToyDialect):
    def writer(self, *, model: str, stream: bool, include_usage: bool = True) -> ToyWriter:
        class Writer(ToyWriter):
            def _write_end(self, stop: StopReason) -> bytes:
                del stop
                return super()._write_end(StopReason("stop"))

        return Writer(model, stream=stream, shows_usage=include_usage)


class ForgetsUsage(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [] if isinstance(event, UsageReported) else [event]


# --- the next turn ----------------------------------------------------------------------------------------------------


class PutsThinkingIntoText(ChangedRequest):
    def prompt(self, prompt: Prompt) -> Prompt:
        return msgspec.structs.replace(
            prompt,
            messages=tuple(
                msgspec.structs.replace(
                    message,
                    parts=tuple(Text(part.text) if isinstance(part, Thought) else part for part in message.parts),
                )
                for message in prompt.messages
            ),
        )


class ForgetsAnswers(ChangedRequest):
    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        for turn in body["turns"]:
            if turn["role"] == "model":
                turn["says"] = ""
        return body


class MixesResultsUp(ChangedRequest):
    def prompt(self, prompt: Prompt) -> Prompt:
        def turned(parts: tuple[Any, ...]) -> tuple[Any, ...]:
            return parts[::-1] if any(isinstance(part, ToolResult) for part in parts) else parts

        messages = tuple(msgspec.structs.replace(one, parts=turned(one.parts)) for one in prompt.messages)
        return msgspec.structs.replace(prompt, messages=messages)


class LosesTheMark(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [] if isinstance(event, ThoughtSealed) else [event]


class SendsNoMark(ChangedRequest):
    def body(self, body: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
        for turn in body["turns"]:
            turn.pop("mark", None)
        return body


# --- surprises --------------------------------------------------------------------------------------------------------


class _StrictLine(Line, forbid_unknown_fields=True):
    pass


class CrashesOnUnknownFields(ToyDecoder):
    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        msgspec.json.decode(payload, type=_StrictLine)
        super().decode_document(payload, events)


class ReportsNothingUnknown(ToyDecoder):
    def warn(self, code: str, detail: str, events: list[Event]) -> None:
        pass


class TrustsTypes(ToyDecoder):
    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        super().decode_document(payload, events)
        for want in msgspec.json.decode(payload).get("wants", []):
            want["do"].strip()


class TakesAnythingForAReply(ToyDecoder):
    def _check_complete(self) -> None:
        pass


class NeverMissesTheEnd(ToyDecoder):
    def is_complete(self) -> bool:
        return True


class FailsOnTrailingBytes(ToyDecoder):
    def feed(self, data: bytes) -> list[Event]:
        if self.ended:
            self.failure = ConnectionLost("something followed the end.")
        return super().feed(data)


class KnowsOneError(ToyDialect):
    def error(self, status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
        del headers, body
        return BadRequest(f"{target.provider.name} said no.", status=status)


class WaitsForTheEnd(ToyDecoder):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._waiting: list[Event] = []

    def feed(self, data: bytes) -> list[Event]:
        self._waiting += super().feed(data)
        return []

    def finish(self) -> list[Event]:
        last = super().finish()
        return [] if self.failure is not None else self._waiting + last


class ReadsNoCalls(ToyDialect):
    def read(self, body: bytes, path: str = "") -> ServedRequest:
        served = super().read(body, path)
        messages = tuple(
            msgspec.structs.replace(one, parts=tuple(part for part in one.parts if part not in one.tool_calls))
            for one in served.prompt.messages
        )
        return msgspec.structs.replace(served, prompt=msgspec.structs.replace(served.prompt, messages=messages))


class ForgetsArguments(ChangedEvents):
    def change(self, event: Event) -> list[Event]:
        return [msgspec.structs.replace(event, arguments="")] if isinstance(event, ToolCallDelta) else [event]


_GOOD = b'{"by":"pondering-1","ponder":"p","says":"42","over":"done"}'
_EXAMPLES = (
    Example(whole=_GOOD, text="43"),
    Example(whole=_GOOD, stream=_GOOD.replace(b"42", b"43") + b"\n"),
    Example(whole=_GOOD[:-2]),
    Example(),
)
_CONTRADICTION = ModelRule(models="*", thinking="never", efforts=("low",))

# What is broken, the check that must find it, and the provider.
BROKEN: tuple[tuple[str, str, Provider, ToyDialect, tuple[Example, ...]], ...] = (
    ("a name that cannot be written", "the_row_is_valid", row(name="My Host"), ToyDialect(), ()),
    ("an address that is none", "the_row_is_valid", row(base_url="toy.example"), ToyDialect(), ()),
    ("efforts of one that never thinks", "the_capability_is_declared", row(models=(_CONTRADICTION,)), ToyDialect(), ()),
    ("no system prompt", "a_request_is_read_by_the_server_half", TOY, ForgetsTheSystemPrompt(), ()),
    ("a stream in any case", "a_request_is_read_by_the_server_half", TOY, AlwaysStreams(), ()),
    ("settings dropped in silence", "a_request_is_read_by_the_server_half", TOY, ForgetsSettings(), ()),
    ("other bytes each time", "a_request_is_read_by_the_server_half", TOY, SendsANumber(), ()),
    ("thinking is not asked for", "thinking_can_be_asked_for", TOY, NeverAsks(), ()),
    (
        "another form than the row's",
        "thinking_can_be_asked_for",
        row(quirks=Quirks(path="/talk", ask_by="enable_thinking")),
        AsksInAnotherForm(),
        (),
    ),
    ("thinking is not switched off", "thinking_can_be_switched_off", TOY, NeverStops(), ()),
    ("one effort for all", "an_amount_is_sent_or_reported", TOY, KnowsOneEffort(), ()),
    ("an empty list", "models_can_be_listed", TOY, ListsNothing(), ()),
    ("no thinking", "thinking_is_extracted", TOY, with_decoder(DropsThinking), ()),
    ("thinking in the text", "thinking_is_filtered_from_the_answer", TOY, with_decoder(LeaksThinkingIntoText), ()),
    ("a block for each delta", "thinking_is_in_the_metadata", TOY, with_decoder(NumbersEveryDelta), ()),
    ("thinking in the text too", "nothing_leaks", TOY, with_decoder(LeaksThinkingIntoText), ()),
    ("thinking for want of an answer", "nothing_leaks", TOY, with_decoder(LeaksThinkingAtACut), ()),
    ("thinking in a warning", "nothing_leaks", TOY, with_decoder(QuotesThinkingInAWarning), ()),
    ("text twice in a stream", "deltas_add_up", TOY, with_decoder(DoublesTextOfAStream), ()),
    ("text twice, not when whole", "streamed_is_whole", TOY, with_decoder(DoublesTextOfAStream), ()),
    ("counts in streams only", "streamed_is_whole", TOY, with_decoder(CountsOnlyStreams), ()),
    ("pieces taken for lines", "any_chunking_is_the_same", TOY, with_decoder(TakesAPieceForALine), ()),
    ("no reason for stopping", "the_server_half_inverts", TOY, WritesNoReason(), ()),
    ("no arguments", "the_server_half_inverts", TOY, with_decoder(ForgetsArguments), ()),
    ("no counts", "usage_is_normalised", TOY, with_decoder(ForgetsUsage), ()),
    ("thinking goes back as text", "the_next_turn_follows_the_replay_rule", TOY, PutsThinkingIntoText(), ()),
    ("answers do not go back", "foreign_thinking_is_not_sent", TOY, ForgetsAnswers(), ()),
    ("results in another order", "a_call_and_its_result_go_back", TOY, MixesResultsUp(), ()),
    ("calls that are not read", "a_call_and_its_result_go_back", TOY, ReadsNoCalls(), ()),
    ("the signature is lost", "seals_return", TOY, with_decoder(LosesTheMark), ()),
    ("the signature is not sent", "seals_return", TOY, SendsNoMark(), ()),
    ("thinking that has to go back does not", "seals_return", row(replay=()), ToyDialect(), ()),
    ("a crash on unknown fields", "unknown_fields_change_nothing", TOY, with_decoder(CrashesOnUnknownFields), ()),
    ("silence about the unknown", "unknown_events_are_reported", TOY, with_decoder(ReportsNothingUnknown), ()),
    ("a crash on other types", "values_of_other_types_crash_nothing", TOY, with_decoder(TrustsTypes), ()),
    ("a page is a reply", "broken_bodies_are_typed_errors", TOY, with_decoder(TakesAnythingForAReply), ()),
    ("a cut is not seen", "a_cut_stream_is_never_silently_short", TOY, with_decoder(NeverMissesTheEnd), ()),
    ("a blank line is an error", "bytes_after_the_end_change_nothing", TOY, with_decoder(FailsOnTrailingBytes), ()),
    ("one error for all", "errors_are_typed", TOY, KnowsOneError(), ()),
    *(("an example", "examples_are_read", TOY, ToyDialect(), (example,)) for example in _EXAMPLES),
    ("different bytes in each client", "sync_is_async", TOY, SendsANumber(), ()),
    ("a turn that is refused", "a_server_accepts_the_next_turn", row(replay=()), ToyDialect(), ()),
    ("nothing before the end", "errors_carry_the_partial_reply", TOY, with_decoder(WaitsForTheEnd), ()),
    (
        "thinking does not go back",
        "the_next_turn_follows_the_replay_rule",
        row(replay=(ReplayRule(when="all"),)),
        ForgetsAnswers(),
        (),
    ),
)

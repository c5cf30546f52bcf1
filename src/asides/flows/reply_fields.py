"""A reply or an error as JSON fields for programs and files, with as much of the thinking as the settings allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from asides.values.errors import AsidesError, InvalidOutput, ProviderError, to_line
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.thinking import ThoughtKind
from asides.values.visibility import Sink

if TYPE_CHECKING:
    # They load the providers, which `separate` does not need.
    from asides.settings import Settings


class ThinkingVisibility(NamedTuple):
    """Whether the thinking of a model is shown: the user must request it, and the settings must allow the model."""

    settings: Settings
    model: str
    """As provider:model."""

    @property
    def is_requested(self) -> bool:
        """Whether `-t` or `show_reasoning_thinking` asks to show thinking."""
        return self.settings.show_reasoning_thinking

    @property
    def is_allowed(self) -> bool:
        """Whether `reasoning_allowed_models` names this model."""
        return msgspec.structs.replace(self.settings, show_reasoning_thinking=True).shows_thinking(self.model)

    def allows(self, sink: Sink, kind: ThoughtKind) -> bool:
        """Whether thinking of this kind may go there: `reasoning_allowed_models` and `[visibility]` allow it."""
        return self.is_allowed and self.settings.visibility.allows(sink, kind)

    @property
    def kinds(self) -> frozenset[ThoughtKind]:
        """The kinds of thinking that are shown to the user."""
        return frozenset(self.settings.visibility.user) if self.is_shown else frozenset()

    @property
    def is_shown(self) -> bool:
        """Requested and allowed."""
        return self.settings.shows_thinking(self.model)


def encode_reply(reply: Reply, visibility: ThinkingVisibility) -> dict[str, Any]:
    """A reply as JSON fields, without seals, and without thinking that the settings do not allow to show."""
    thought = reply.thinking
    is_allowed = visibility.allows("app", thought.kind)
    fields = reply.to_dict(thinking=is_allowed)
    del fields["metadata"]  # the other fields already contain it
    if not is_allowed and thought.text:
        detail = "reasoning_allowed_models does not name this model; its thinking is left out"
        if visibility.is_allowed:
            detail = f"[visibility] does not allow {thought.kind} thinking for app; it is left out"
        fields["warnings"].append(Notice("thinking_withheld", detail).to_dict())
    return fields


def encode_answer(reply: Reply, visibility: ThinkingVisibility, *, option: str = "--schema") -> dict[str, Any]:
    """A reply as the fields of a row: its thinking only if it is to be shown, and what is wrong with its form."""
    fields = encode_reply(reply, visibility)
    thought = reply.thinking
    if not visibility.is_shown or (thought and not visibility.allows("user", thought.kind)):
        fields.pop("thinking")
    if (problem := find_problem(reply, option)) is not None:
        fields |= {"outcome": None, "error": encode_error(problem)}
    return fields


def encode_failed(error: AsidesError) -> dict[str, Any]:
    """An error as the fields of a row."""
    return {"text": "", "outcome": None, "error": encode_error(error)}


_WITHOUT_ANSWER = ("starved", "unterminated", "unanswered", None)


def is_answered(row: dict[str, Any]) -> bool:
    """Whether a row has a final reply. Rows that failed or ended before an answer are asked again."""
    return row.get("error") is None and row.get("outcome") not in _WITHOUT_ANSWER


def find_problem(reply: Reply, option: str = "--schema") -> AsidesError | None:
    """What is wrong with an answer that does not fit the form that an option asked for; None if it fits, or if none was
    asked for.
    """
    if reply.expected is None or reply.outcome != "answered":
        return None
    try:
        reply.output  # noqa: B018 - reading it checks it
    except InvalidOutput as error:
        # The first lines say what is wrong, and where; the last ones are for the model.
        lines = (error.feedback or "").splitlines()
        place = to_line((lines[1:] or lines or [""])[0])
        return InvalidOutput(f"the answer does not fit {option} ({place}). Ask again, or ask another model.")
    except AsidesError as error:
        return error
    return None


def encode_error(error: AsidesError) -> dict[str, Any]:
    """An error as JSON fields: its message, but not the body that the provider sent."""
    fields: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, ProviderError):
        fields |= {
            "status": error.status,
            "code": error.code,
            "kind": error.kind,
            "request_id": error.request_id,
            "retry_after": error.retry_after,
        }
    return fields

"""Replace the older turns of a conversation by a summary: which they are, and the change of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from asides.conversations.message_history import MessageHistory
from asides.history.redact import drop_stored_responses, invalidate_seals
from asides.history.summary import LABEL, build_summary_request, make_summary_message
from asides.history.trim import TokenCounter, lighten
from asides.history.turns import count_system_head, split_turns
from asides.options import ModelLike, Options
from asides.values.errors import ConfigError, NoAnswer
from asides.values.messages import Message
from asides.values.reply import Reply
from asides.values.usage import Usage, estimate_usage

if TYPE_CHECKING:
    from asides.flows.compact_history import CompactedHistory

# The other options concern answers: tools, output formats, what the provider stores.
_OPTIONS_FOR_SUMMARY = frozenset(
    "base_url api_key family endpoint openai_responses_enabled thinking reasoning_effort reasoning thinking_field tags "
    "starts_inside heuristics keep_raw timeout retries max_wait on_conflict".split()
)


class Compaction:
    """One summary: its `request`, and `finish`, which puts it into the history. The caller holds the history."""

    def __init__(self, history: MessageHistory, older: range, model: ModelLike | None, options: Options) -> None:
        self._history = history
        self._older = older
        self._before = history.messages
        self.model = model
        self.options = options
        self.request = build_summary_request(self._before[older.start : older.stop])

    def finish(self, reply: Reply) -> None:
        """Replace the older turns by the summary. A reply without an answer changes no message and raises."""
        history, older = self._history, self._older
        spent = reply.usage if reply.usage != Usage() else estimate_usage(self.request.messages, reply)
        try:
            summary = reply.require_answer().text.strip()
        except NoAnswer:
            history.append((), spent)
            raise
        rest = drop_stored_responses(invalidate_seals(self._before[older.stop :], 0, rows=history.rows))
        history.replace((*self._before[: older.start], make_summary_message(summary), *rest), spent)


CompactBy: TypeAlias = Literal["model", "provider"]
"""What compacts: a model that writes a summary, or the provider itself."""


def check_compact_by(by: CompactBy) -> CompactBy:
    """Return it unchanged. Raises ConfigError for any other value."""
    if by not in get_args(CompactBy):
        raise ConfigError(f"by is one of {', '.join(get_args(CompactBy))}, not {by!r}.")
    return by


def replace_compacted(history: MessageHistory, compacted: CompactedHistory) -> None:
    """Replace the messages by the provider's compacted ones. The caller holds the history."""
    messages = history.messages
    head = messages[: count_system_head(messages)]
    history.replace((*head, *(each for each in compacted.messages if each.role != "system")), compacted.usage)


def build_compacted_reply(compacted: CompactedHistory) -> Reply:
    """The provider's compacted messages and their usage as a reply without text."""
    made = [part for message in compacted.messages if message.role == "assistant" for part in message.parts]
    return Reply(tuple(made), compacted.usage)


def reduce_thinking(history: MessageHistory, over: int, count: TokenCounter) -> bool:
    """Whether the history costs no more than this many tokens, perhaps after the seals and the readable thoughts of
    finished turns were dropped. Nothing is dropped if that is not enough. The caller holds the history.
    """
    if count(history.messages) <= over:
        return True
    lighter = lighten(history.messages, over, count, rows=history.rows)
    if lighter == history.messages:
        return False
    history.replace(drop_stored_responses(lighter))
    return True


def select_summary_options(options: Options) -> Options:
    """Select the options of a conversation that also apply to the request for a summary."""
    chosen = {name: value for name, value in options.items() if name in _OPTIONS_FOR_SUMMARY}
    return cast("Options", chosen)


def find_older_turns(messages: tuple[Message, ...], keep_turns: int) -> range:
    """Find the messages to sum up: after the system messages, before the last turns. May be empty."""
    start = count_system_head(messages)
    end = len(messages) - sum(map(len, split_turns(messages[start:])[-keep_turns:]))
    # A single earlier summary cannot become shorter.
    is_summary = end - start == 1 and messages[start].text.startswith(LABEL)
    return range(start, start if is_summary else end)

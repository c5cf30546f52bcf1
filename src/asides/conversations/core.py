"""`ConversationCore`: the methods that `Conversation` and `AsyncConversation` share. All but those that ask a model.

It holds a `MessageHistory` and the options of all questions.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, get_args

from asides.conversations.compact import Compaction, find_older_turns, reduce_thinking, select_summary_options
from asides.conversations.message_history import (
    MessageHistory,
    MessageLike,
    Question,
    check_model,
    check_system,
    find_message,
    open_messages,
    open_stored,
    read_question,
    replace_text,
)
from asides.conversations.serialise import read_file, read_json, split_system, write_file, write_json
from asides.conversations.store import Store
from asides.conversations.turn import Turn
from asides.database import StoreError
from asides.flows.build_call import CallBuilder
from asides.flows.fallback import raise_for_no_model
from asides.history.export import MessageFormat, export_messages
from asides.history.redact import drop_stored_responses, invalidate_seals, redact
from asides.history.trim import Strip, TokenCounter, TrimmedHistory, build_token_counter, strip_thinking, trim
from asides.intake.files import attach_files, fill_prompt
from asides.intake.read import read
from asides.options import ModelLike, Options, merge_options, reject_unknown
from asides.values.errors import ConfigError
from asides.values.messages import Message, system
from asides.values.usage import Usage
from asides.values.visibility import ALL_VISIBLE

if TYPE_CHECKING:
    from asides.aio import AsyncClient
    from asides.client import Client
    from asides.flows.call import Call
    from asides.flows.offline import Explanation

_ARGUMENTS = ("client", "keep_thinking", "messages", "model", "name", "store", "system")
"""The arguments of a conversation that are not options of a question, for errors."""

AnyClient = TypeVar("AnyClient", bound="Client | AsyncClient")


class ConversationCore(Generic[AnyClient]):
    """Messages that can be sent at any time, with the system prompt, the usage and the options of all questions.

    With a `store`, every change is stored under `name` before its method returns; a name that exists in the store is
    loaded. Readable thinking is saved only with `keep_thinking`; the seals that providers require always are. One task
    at a time: a change while a question is in progress raises a ConfigError.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        system: str | None = None,
        client: AnyClient | None = None,
        store: Store | None = None,
        name: str | None = None,
        keep_thinking: bool | None = None,
        messages: Sequence[MessageLike] = (),
        **options: Any,
    ) -> None:
        self._client = client
        self._asked: tuple[Turn, ModelLike | None, Options] | None = None
        self._options = reject_unknown(Options(**options), type(self).__name__, _ARGUMENTS)  # type: ignore[typeddict-item]
        if self._options.get("files") is not None:
            raise ConfigError("files= would go with every question again. Pass it to ask or stream, once.")
        self._call_builder = CallBuilder() if client is None else client._call_builder
        self._history = MessageHistory(
            self._call_builder,
            open_stored(store, name),
            model=check_model(model),
            system=check_system(system),
            keep_thinking=keep_thinking,
        )
        if messages:
            if self.messages:
                raise ConfigError(
                    f"the conversation {name!r} is in the store already. Omit messages= to continue it, or pass "
                    "another name."
                )
            self.extend(messages)

    # --- content ------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages in order, with thoughts and seals in their places."""
        return self._history.messages

    @property
    def model(self) -> str | None:
        """The default model of questions, as provider:model. None: the model of the settings."""
        return self._history.model

    @model.setter
    def model(self, name: str | None) -> None:
        self._history.model = check_model(name)

    @property
    def system(self) -> str | None:
        """The system prompt. It may be changed at any time."""
        return self._history.system

    @system.setter
    def system(self, text: str | None) -> None:
        if check_system(text) != self.system:
            with self._history.exclusive():
                self._history.set_system(text)

    @property
    def usage(self) -> Usage:
        """The tokens used so far, thinking counted separately; `origin` shows whether the sum has an estimate."""
        return self._history.usage

    @property
    def name(self) -> str | None:
        """Its name in its store; None without a store."""
        return None if self._history.stored is None else self._history.stored.name

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __bool__(self) -> bool:
        # Without this, an empty conversation would be false.
        return True

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"{type(self).__name__}({self.model!r}, messages={len(self)}{name})"

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, message: MessageLike) -> Message | None:
        """Add a message at the end; plain text is a user message. None: a reply had nothing to store."""
        added = self.extend((message,))
        return added[0] if added else None

    def extend(
        self, messages: Iterable[MessageLike] | MessageLike, *, usage: Usage | None = None
    ) -> tuple[Message, ...]:
        """Add messages at the end; in a store, all of them or none. `usage` is added to that of replies among them."""
        given, spent = open_messages(messages)
        if spent is not None:
            usage = spent if usage is None else usage + spent
        with self._history.exclusive():
            added = read_question(given, after=self.messages, each=True)
            self._history.append(added, usage)
        return added

    def edit(self, place: int, message: MessageLike) -> Message:
        """Replace the message at this index; plain text keeps the role of the old message."""
        with self._history.exclusive():
            messages = self.messages
            if not -len(messages) <= place < len(messages):
                raise ConfigError(f"there is no message {place}; the conversation has {len(messages)}.")
            place %= len(messages)
            if isinstance(message, str):
                edited = replace_text(messages[place], message)
            else:
                (edited,) = read_question((message,), each=True)
            changed = (*messages[:place], edited, *drop_stored_responses(messages[place + 1 :]))
            self._history.replace(invalidate_seals(changed, place + 1, rows=self._call_builder.rows))
        return edited

    def truncate(self, end: int | Message) -> tuple[Message, ...]:
        """Cut after this many messages, or before a message; returns the rest. -2 removes the last two."""
        with self._history.exclusive():
            place = find_message(end, self.messages) if isinstance(end, Message) else end
            removed = self.messages[place:]
            if removed:
                self._history.replace(self.messages[:place])
        return removed

    def clear(self) -> None:
        """Remove all messages. The usage and the system prompt stay."""
        self.truncate(0)

    def forget_thinking(self, strip: Strip = "all") -> None:
        """Remove the thoughts and their seals: all of them, or all but those of the last turn that has any.

        Text, calls and results stay, and the conversation can be sent as before.
        """
        if strip not in get_args(Strip):
            raise ConfigError(f"strip is one of {', '.join(get_args(Strip))}, not {strip!r}.")
        with self._history.exclusive():
            stripped = strip_thinking(self.messages, strip, rows=self._call_builder.rows)
            if stripped != self.messages:
                self._history.replace(drop_stored_responses(stripped))

    def trim_to(self, tokens: int, *, model: str | None = None, count: TokenCounter | None = None) -> TrimmedHistory:
        """Drop the oldest messages until the conversation costs no more than this many tokens.

        The system prompt and the last message stay, and calls stay with their results. The cost is that of the request
        to the model, system prompt and tools included. It is estimated, or counted by `count`, which takes messages
        and returns tokens.
        """
        with self._history.exclusive():
            self._history.refresh()
            if not self.messages:
                return TrimmedHistory((), 0)
            trimmed = trim(
                self.messages, tokens, count or self._build_token_counter(model), rows=self._call_builder.rows
            )
            if trimmed.messages != self.messages:
                self._history.replace(drop_stored_responses(trimmed.messages))
            return trimmed

    def fork(self, end: int | Message | None = None, *, name: str | None = None) -> Self:
        """Copy the conversation: all messages, this many, or those before a message.

        The copy is in the store only if it gets a `name`. The two share nothing from then on.
        """
        place = find_message(end, self.messages) if isinstance(end, Message) else end
        other = copy.copy(self)
        other._history = self._history.fork(place, name)
        return other

    def refresh(self) -> bool:
        """Read changes of other processes from the store; returns whether there were any. Questions do so first."""
        with self._history.exclusive():
            return self._history.refresh()

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._history = copy.copy(self._history)
        return other

    # --- files and other formats --------------------------------------------------------------------------------------

    def to_json(self, *, keep_thinking: bool | None = None) -> str:
        """Encode the conversation as a JSON document with a version: messages, the seals that providers require, and
        readable thinking only with `keep_thinking` (None: as set for the conversation).
        """
        return write_json(self._history, keep_thinking=keep_thinking)

    @classmethod
    def from_json(cls, document: str | bytes, **given: Any) -> Self:
        """Read a conversation that `to_json` wrote. `given` are arguments of a new one; they win over the document."""
        saved = read_json(document)
        model = given.pop("model", None) or saved.model
        text = given.pop("system", None)
        made = cls(model, system=saved.system if text is None else text, **given)
        made._start_with(saved.messages, saved.usage)
        return made

    def save(self, path: str | os.PathLike[str], *, keep_thinking: bool | None = None) -> None:
        """Write it to a file, atomically: a crash leaves the old file or the new one. Only its owner may read it."""
        write_file(path, self.to_json(keep_thinking=keep_thinking).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], **given: Any) -> Self:
        """Read a conversation that `save` wrote. `given` are arguments of a new one; they win over the document."""
        document = read_file(path)
        try:
            return cls.from_json(document, **given)
        except StoreError:
            raise
        except ConfigError as problem:
            raise ConfigError(f"{os.fspath(path)}: {problem}") from None

    @classmethod
    def from_openai(cls, messages: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from a list of chat completions' messages, or from a request that holds one."""
        return cls._import(messages, "openai_chat", given)

    @classmethod
    def from_anthropic(cls, messages: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from the turns of Anthropic's Messages, or from a request with its system prompt."""
        return cls._import(messages, "anthropic", given)

    @classmethod
    def from_responses(cls, items: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from the items of OpenAI's Responses, or from a request or a response that holds them."""
        return cls._import(items, "openai_responses", given)

    def to_openai(self, *, thinking: bool = False) -> list[dict[str, Any]]:
        """The messages as chat completions have them. Thinking is left out unless it is asked for."""
        exported: list[dict[str, Any]] = self._export("openai_chat", thinking)
        return exported

    def to_anthropic(self, *, thinking: bool = False) -> dict[str, Any]:
        """`messages` and `system` as Anthropic's Messages have them. Thinking is left out unless it is asked for."""
        exported: dict[str, Any] = self._export("anthropic", thinking)
        return exported

    def to_responses(self, *, thinking: bool = False) -> list[dict[str, Any]]:
        """The items as OpenAI's Responses have them. Thinking is left out unless it is asked for."""
        exported: list[dict[str, Any]] = self._export("openai_responses", thinking)
        return exported

    @classmethod
    def _import(cls, value: object, format_name: MessageFormat, given: dict[str, Any]) -> Self:
        messages = read(value, format_name=format_name)
        if given.get("system") is None:
            given["system"], messages = split_system(messages)
        made = cls(**given)
        made._start_with(messages, None)
        return made

    def _export(self, format_name: MessageFormat, thinking: bool) -> Any:
        first = (system(self.system),) if self.system else ()
        rows, keep = self._call_builder.rows, frozenset(self._call_builder.visibility.app)
        shown = self.messages if keep == ALL_VISIBLE else redact(self.messages, rows=rows, keep=keep)
        return export_messages((*first, *shown), format_name, thinking=thinking, rows=rows)

    def _start_with(self, messages: tuple[Message, ...], spent: Usage | None) -> None:
        if self.messages and self.name is None:
            raise ConfigError("the document already has messages. Omit messages=, and call extend() afterwards.")
        if self.messages:
            raise ConfigError(
                f"the conversation {self.name!r} is in the store already. Pass another name, or delete it first."
            )
        with self._history.exclusive():
            self._history.append(messages, spent)

    # --- asking -------------------------------------------------------------------------------------------------------

    def turn(self, prompt: Question = None, *, files: object = None) -> Turn:
        """Make a question that the caller sends as a prompt. Call `begin` before sending, and `end` with the reply.
        `files` go into its last user message.
        """
        with self._history.exclusive():
            self._history.refresh()
        question = read_question(fill_prompt(prompt, files), after=self.messages)
        return Turn(self._history, question if files is None else attach_files(question, files))

    def _prepare(
        self, prompt: Question, model: ModelLike | None, options: Options
    ) -> tuple[Turn, ModelLike | None, Options]:
        """Make a question; returns it with the model and the options. None: the model of the settings."""
        given, name = merge_options(self._options, reject_unknown(options)), self._choose_model(model)
        turn = self.turn(prompt, files=given.pop("files", None))
        last, self._asked = self._asked, (turn, name, given)
        if last is not None and given.get("cache"):
            from asides.conversations.last_request import report_break

            turn.notices = report_break(last, self._asked, self._asking_builder)
        return turn, name, given

    def explain(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> Explanation:
        """The request that `ask` would send with these arguments, and the reasons for its content. Sends nothing, adds
        nothing, and compares with the latest request of this conversation (`cache_break_at`).
        """
        from asides.conversations.last_request import explain_next

        given, name = merge_options(self._options, reject_unknown(options)), self._choose_model(model)
        turn = self.turn(prompt, files=given.pop("files", None))
        return explain_next((turn, name, given), self._asked, self._asking_builder)

    def _prepare_compaction(
        self, over: int, keep_turns: int, model: ModelLike | None, options: Options
    ) -> Compaction | None:
        """Build the request for a summary; None if there is nothing to summarize. The caller holds the history."""
        if keep_turns < 1:
            raise ConfigError("keep_turns is below one; the conversation needs its last turn to continue.")
        self._history.refresh()
        given = merge_options(select_summary_options(self._options), reject_unknown(options))
        older = find_older_turns(self.messages, keep_turns)
        if not older:
            return None
        # The cost at the conversation's own model. Without one, use the model that summarizes.
        counting_model = self.model or (None if self._call_builder.settings.model else model)
        if reduce_thinking(self._history, over, self._build_token_counter(counting_model)):
            return None
        return Compaction(self._history, older, self._choose_model(model), given)

    def _prepare_provider_compaction(
        self, over: int, model: ModelLike | None, options: Options
    ) -> Callable[[CallBuilder], Call] | None:
        """Return the builder of the provider's call; None if there is nothing to do. The caller holds the history."""
        self._history.refresh()
        given = merge_options(select_summary_options(self._options), reject_unknown(options))
        name = self._choose_model(model)
        counting_model = self.model or (None if self._call_builder.settings.model else model)
        if not self.messages or reduce_thinking(self._history, over, self._build_token_counter(counting_model)):
            return None
        return lambda builder: builder.build(name, self, given, stream=False)

    def _choose_model(self, model: ModelLike | None) -> ModelLike | None:
        """The model of a question. None: that of the settings, which the client chooses and reports."""
        chosen = model or self.model
        if chosen is not None:
            return chosen
        default = self._call_builder.settings.model
        if default is None:
            raise_for_no_model()
        return None if self._asking_builder.settings.model == default else default

    @property
    def _asking_builder(self) -> CallBuilder:
        """The call builder of the client that asks."""
        return self._call_builder

    def _build_token_counter(self, model: ModelLike | None) -> TokenCounter:
        """Build a counter of tokens, for requests with the conversation's system prompt and options."""
        name = self._choose_model(model) or self._call_builder.settings.model
        call = self._call_builder.build(name, self, self._options, stream=True, needs_key=False)
        return build_token_counter(call.prompt, call.target)

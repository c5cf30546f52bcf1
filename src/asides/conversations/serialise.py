"""Conversations as files and in other people's forms: saved and loaded, imported and exported.

Not here: the forms themselves (history), and stores, which need no saving.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from asides.conversations.files import home_known, read_whole, write_whole
from asides.conversations.history import Transcript
from asides.conversations.store.protocol import StoreError
from asides.history.document import from_document, to_document
from asides.history.import_export import MessageFormat, export_messages, import_messages
from asides.values.errors import ConfigError
from asides.values.messages import Message, Text, system
from asides.values.usage import Usage


class Portable(Transcript):
    """A history that can be taken elsewhere."""

    # --- our own form -------------------------------------------------------------------------------------------------

    def to_json(self, *, keep_thinking: bool | None = None) -> str:
        """The conversation as a JSON document, whose form has a version: messages, what their providers want back, and
        readable thinking only if it is to be kept (None: as the conversation has it).
        """
        kept = self._keeps_thinking if keep_thinking is None else keep_thinking
        about: dict[str, Any] = {}
        if self.model is not None:
            about["model"] = self.model
        if self.usage != Usage():
            about["usage"] = {
                name: value for name, value in msgspec.structs.asdict(self.usage).items() if value is not None
            }
        return to_document(
            self.messages, system=self.system, keep_thinking=kept, metadata=about, rows=self._rows
        ).decode()

    @classmethod
    def from_json(cls, document: str | bytes, **given: Any) -> Self:
        """The conversation that `to_json` wrote. `given` is as for a new one, and wins over what was written."""
        read = from_document(document)
        try:
            about = msgspec.convert(read.metadata, _About)
        except msgspec.ValidationError:
            raise ConfigError(
                "the head of the saved conversation does not read. To do: look whether the file was edited."
            ) from None
        model = given.pop("model", None) or about.model
        words = given.pop("system", None)
        made = cls(model, system=read.system if words is None else words, **given)
        made._taken(read.messages, about.usage)
        return made

    def save(self, path: str | os.PathLike[str], *, keep_thinking: bool | None = None) -> None:
        """Write it to a file, in one step: a crash leaves the old file or the new one. Only its owner may read it."""
        write_whole(home_known(path), self.to_json(keep_thinking=keep_thinking).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], **given: Any) -> Self:
        """The conversation that `save` wrote. `given` is as for a new one, and wins over what was written."""
        document = read_whole(home_known(path))
        try:
            return cls.from_json(document, **given)
        except StoreError:
            raise
        except ConfigError as problem:
            raise ConfigError(f"{os.fspath(path)}: {problem}") from None

    # --- other people's -----------------------------------------------------------------------------------------------

    @classmethod
    def from_openai(cls, messages: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from a list of chat completions' messages, or from a request that holds one."""
        return cls._imported(messages, "openai_chat", given)

    @classmethod
    def from_anthropic(cls, messages: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from the turns of Anthropic's Messages, or from a request with its system prompt."""
        return cls._imported(messages, "anthropic", given)

    @classmethod
    def from_responses(cls, items: Sequence[Any] | Mapping[str, Any], **given: Any) -> Self:
        """A conversation from the items of OpenAI's Responses, or from a request or a response that holds them."""
        return cls._imported(items, "openai_responses", given)

    def to_openai(self, *, thinking: bool = False) -> list[dict[str, Any]]:
        """The messages as chat completions have them. Thinking is left out unless it is asked for."""
        exported: list[dict[str, Any]] = self._exported("openai_chat", thinking)
        return exported

    def to_anthropic(self, *, thinking: bool = False) -> dict[str, Any]:
        """`messages` and `system` as Anthropic's Messages have them. Thinking is left out unless it is asked for."""
        exported: dict[str, Any] = self._exported("anthropic", thinking)
        return exported

    def to_responses(self, *, thinking: bool = False) -> list[dict[str, Any]]:
        """The items as OpenAI's Responses have them. Thinking is left out unless it is asked for."""
        exported: list[dict[str, Any]] = self._exported("openai_responses", thinking)
        return exported

    @classmethod
    def _imported(cls, value: object, shape: MessageFormat, given: dict[str, Any]) -> Self:
        messages = import_messages(value, shape)
        if given.get("system") is None:
            words, messages = _without_preamble(messages)
            given["system"] = words
        made = cls(**given)
        made._taken(messages, None)
        return made

    def _exported(self, shape: MessageFormat, thinking: bool) -> Any:
        preamble = (system(self.system),) if self.system else ()
        return export_messages((*preamble, *self.messages), shape, thinking=thinking, rows=self._rows)

    def _taken(self, messages: tuple[Message, ...], spent: Usage | None) -> None:
        """Begin with these."""
        if self.messages and self.name is None:
            raise ConfigError("there are messages in what is read already. To do: leave messages= away, and extend it.")
        if self.messages:
            raise ConfigError(
                f"the conversation {self.name!r} is in the store already. To do: give another name, or delete it first."
            )
        with self._alone():
            self._keep(messages, spent)


class _About(msgspec.Struct):
    model: str | None = None
    usage: Usage | None = None


def _without_preamble(messages: tuple[Message, ...]) -> tuple[str | None, tuple[Message, ...]]:
    """System words in front of everything are the conversation's own; the rest of the messages."""
    if not messages or messages[0].role != "system" or not all(isinstance(part, Text) for part in messages[0].parts):
        return None, messages
    return messages[0].text, messages[1:]

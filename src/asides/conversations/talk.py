"""What both conversations share above their history: whom they ask and with which options, and how much that is.

Not here: the asking itself, which is the one thing that differs between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

from asides.conversations.history import Said, read_said, unstored
from asides.conversations.serialise import Portable
from asides.conversations.store.protocol import Store
from asides.conversations.turn import Turn
from asides.flows.build_call import CallBuilder
from asides.history.estimate_tokens import Measure, estimator_for
from asides.history.trim import Trimmed, trimmed
from asides.options import Options, merge_options, reject_unknown
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.values.errors import UnknownModel

Question: TypeAlias = Said | Sequence[Said] | None
"""What is asked: words, a message, several of them such as the results of tools, or nothing new."""


class Talk(Portable):
    """A history, and what is needed to ask with it."""

    def __init__(
        self,
        model: str | None = None,
        *,
        system: str | None = None,
        store: Store | None = None,
        name: str | None = None,
        keep_thinking: bool | None = None,
        messages: Sequence[Said] = (),
        options: dict[str, Any] | None = None,
    ) -> None:
        self._options = reject_unknown(Options(**(options or {})))  # type: ignore[typeddict-item]
        super().__init__(model, system=system, store=store, name=name, keep_thinking=keep_thinking, messages=messages)

    def trim_to(self, tokens: int, *, model: str | None = None, count: Measure | None = None) -> Trimmed:
        """Leave out the oldest, as much as it takes to send no more than so many tokens; what became of it.

        The system prompt and the last message stay, calls stay with their results. Counted is what would really be sent
        to the model, system prompt and tools included: about, or by `count`, which takes messages and gives tokens.
        """
        with self._alone():
            self._refresh()
            if not self._messages:
                return Trimmed((), 0)
            result = trimmed(self._messages, tokens, count or self._measure(model), rows=self._rows)
            if result.messages != self._messages:
                self._rewrite(unstored(result.messages))
            return result

    def turn(self, prompt: Question = None) -> Turn:
        """A question that somebody else asks: a prompt, to be begun before it is sent and ended with what came."""
        with self._alone():
            self._refresh()
        return Turn(self, read_said(prompt))

    def _question(self, prompt: Question, model: str | None, options: Options) -> tuple[Turn, str, Options]:
        """A question, who is asked, and how."""
        given, name = self._given(options), self._model(model)
        return self.turn(prompt), name, given

    def _given(self, options: Options) -> Options:
        return merge_options(self._options, reject_unknown(options))

    def _model(self, model: str | None) -> str:
        named = model or self.model or self._settings.model
        if named is None:
            raise UnknownModel(
                "no model was named. To do: name one as provider:model, in the question (model=), for the "
                "conversation, or in the settings (ASIDES_MODEL)."
            )
        return named

    def _measure(self, model: str | None) -> Measure:
        """What a history costs when it goes to the model with all that this conversation sends along."""
        call = self._call_builder.call(self._model(model), self, self._options, stream=True, needs_key=False)
        return estimator_for(call.prompt, call.target)

    @cached_property
    def _call_builder(self) -> CallBuilder:
        """What holds where nothing is said; a client has its own."""
        return CallBuilder()

    @property
    def _settings(self) -> Settings:
        return self._call_builder.settings

    @property
    def _rows(self) -> tuple[Provider, ...]:
        return self._call_builder.rows

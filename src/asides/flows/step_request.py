"""One question of a run: an exchange, read as its mode wants it. A flow: it asks, the shells do.

Not here: the exchange itself (exchange), and the text protocol (react).
"""

from __future__ import annotations

import msgspec

from asides.agents.react.encode_prompt import dressed
from asides.agents.react.translator import Translator
from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.flows.run_config import Mode
from asides.flows.steps import Done, Emit, Flow, advance
from asides.values.errors import TransportError
from asides.values.fold import Fold
from asides.values.reply import Reply


class Asking:
    """A question under way; `partial` may be asked at any time."""

    __slots__ = ("_exchange", "_fold", "_translator")

    def __init__(self, call: Call, mode: Mode) -> None:
        self._translator: Translator | None = None
        if mode == "react":
            self._translator = Translator(call.prompt.tools)
            call = msgspec.structs.replace(call, prompt=dressed(call.prompt, call.target))
        self._exchange = Exchange(call)
        self._fold = Fold()

    @property
    def partial(self) -> Reply | None:
        """What has arrived; None when nothing had started."""
        arrived = self._exchange.partial
        return arrived if arrived is None or self._translator is None else self._translated(arrived)

    def steps(self) -> Flow[Reply]:
        """The flow of the exchange; in a text protocol, with its events translated."""
        if self._translator is None:
            return (yield from self._exchange.steps())
        return (yield from self._translating(self._translator))

    def _translating(self, translator: Translator) -> Flow[Reply]:
        flow = self._exchange.steps()
        try:
            step = advance(flow)
            while not isinstance(step, Done):
                value = None
                error: TransportError | None = None
                if isinstance(step, Emit):
                    events = translator.feed(step.events)
                    self._fold.feed(events)
                    if events:
                        yield Emit(events)
                else:
                    try:
                        value = yield step
                    except TransportError as problem:
                        error = problem
                step = advance(flow, value, error)
            return self._translated(step.result)
        finally:
            flow.close()

    def _translated(self, arrived: Reply) -> Reply:
        return msgspec.structs.replace(
            self._fold.reply(arrived.payloads, streamed=arrived.streamed), revealed=arrived.revealed
        )

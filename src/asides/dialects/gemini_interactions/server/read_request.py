"""Read a client's interaction as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

from typing import Literal

from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini_interactions.encode import MODES
from asides.dialects.gemini_interactions.import_steps import import_input, read_system_instruction
from asides.dialects.gemini_interactions.wire import DIALECT, SAMPLING
from asides.dialects.server_half import RequestFields
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import OutputSchema, Prompt, ProviderState


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request. Raises ConfigError with a message for the client."""
    return _Request.parse_body(body).keep(DIALECT).read()


class _Request(RequestFields):
    """A request while it is parsed: readers remove the fields they understand; the others stay in `extra`."""

    def read(self) -> ServedRequest:
        agent = self.remaining.get("agent")
        model = agent if isinstance(agent, str) and agent else self.take_model()
        state = self._take_state()
        given = self.remaining.pop("input", None)
        if given in (None, "", []) and not (state.continues and "continuation_token" in self.remaining):
            raise ConfigError("input is missing: a text, a content, or a list of steps.")
        stream = self.take("stream", bool) or False
        thinking = read_switches(DIALECT, self.remaining)
        config = self.take_object("generation_config")
        tools = self.take_functions()
        prompt = Prompt(
            import_input(given) if given else (),
            system=self._take_system(),
            thinking=thinking,
            tools=tools,
            tool_choice=_take_tool_choice(config),
            output=self._take_output(),
            max_tokens=config.take("max_output_tokens", int),
            sampling=config.take_sampling(SAMPLING),
            stop=tuple(config.take("stop_sequences", list[str]) or ()),
            stream=stream,
            metadata=self.take("labels", dict[str, str]),
            state=state,
            source=self.source,
        )
        self.put_back("generation_config", config)
        prompt.extra.update(self.remaining)
        return ServedRequest(prompt, model.removeprefix("models/"), stream, include_usage=True)

    def _take_state(self) -> ProviderState:
        store = self.take("store", bool)
        previous = self.take("previous_interaction_id", str)
        if previous == "":
            raise ConfigError(
                "previous_interaction_id is empty: that interaction was not stored. Send the steps of the conversation."
            )
        # Servers of this dialect store by default.
        return ProviderState(store=store is not False, previous_response_id=previous)

    def _take_system(self) -> str | None:
        return read_system_instruction(self.remaining.pop("system_instruction", None))

    def _take_output(self) -> OutputSchema | Literal["json"] | None:
        match self.remaining.get("response_format"):
            case {"type": "text", "mime_type": "application/json", **beside} if beside.keys() <= {"schema"}:
                del self.remaining["response_format"]
                schema = beside.get("schema")
                return OutputSchema("answer", schema) if isinstance(schema, dict) else "json"
            case _:
                return None


def _take_tool_choice(config: RequestFields) -> str | None:
    match config.remaining.get("tool_choice"):
        case str() as mode:
            choice = next((ours for ours, theirs in MODES.items() if theirs == mode), None)
        case {"allowed_tools": {"mode": "any", "tools": [str() as name]}}:
            choice = name
        case _:
            choice = None
    if choice is not None:
        del config.remaining["tool_choice"]
    return choice

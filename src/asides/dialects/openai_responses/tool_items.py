"""Items of tools while they arrive: calls that the caller runs, and tools that the provider runs.

Some tools of the provider are run by the caller: a patch, a shell, a computer, a search for tools. Each has an item
type of its own, and its result goes back as the item type that belongs to it: here too. Not here: other items (items).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.media import make_image_url
from asides.dialects.message_encoder import Wire, add_notice
from asides.dialects.openai_responses.items import ENTRY, ItemState
from asides.dialects.openai_responses.wire import Entry, Item
from asides.values.events import Event, PartArrived, ThoughtSealed, ToolCallDelta
from asides.values.notices import Notice
from asides.values.parts import Image, ServerTool, ToolResult
from asides.values.thinking import Origin, Seal
from asides.wire.lenient import to_json_text

# Items of tools that the provider runs itself, as documented up to 2026-11.
SERVER_TOOLS = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "mcp_approval_request", "tool_search_output", "x_search_call",
    "program", "program_output", "shell_call_output", "code_execution_call",
})  # fmt: skip


class CallState(ItemState):
    """A call of one of the caller's tools: a function with JSON arguments, or a custom tool with free text."""

    __slots__ = ("_custom", "_has_id", "_has_name", "_received", "call_id")

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self.is_call = True
        self._custom = kind == "custom_tool_call"
        self._received: list[str] = []
        self.call_id: str | None = None
        self._has_name = self._has_id = False

    @property
    def sent(self) -> str:
        """The arguments that have come."""
        return "".join(self._received)

    def has_begun(self, item: Item) -> bool | None:
        """Whether this is the item of the call: by the call's id, else by its arguments."""
        if self.call_id and item.call_id:
            return self.call_id == item.call_id
        return super().has_begun(item)

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Emit the id and the name. Arguments that some servers send here come again."""
        self._emit_identity(item.call_id, item.name, events)

    def _emit_identity(self, call_id: str | None, name: str | None, events: list[Event]) -> None:
        self.call_id = self.call_id or call_id
        call_id, name = None if self._has_id else call_id, None if self._has_name else name
        if call_id or name:
            self._has_id, self._has_name = self._has_id or bool(call_id), self._has_name or bool(name)
            events.append(ToolCallDelta(self.block, call_id or None, name or None, custom=self._custom))

    def feed(self, arguments: str, events: list[Event]) -> None:
        """Add text of the arguments."""
        self._received.append(arguments)
        if arguments:
            events.append(ToolCallDelta(self.block, arguments=arguments, custom=self._custom))

    def feed_whole(self, arguments: Any, events: list[Event]) -> None:
        """Add the whole arguments: the text that their deltas did not have."""
        if rest := _find_rest(self._received or None, to_json_text(arguments)):
            self.feed(rest, events)

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the call, and the item as a seal."""
        # Some proxies omit the call's id; then the item's is used.
        self._emit_identity(item.call_id or item.id, item.name, events)
        self.feed_whole(item.input if self._custom else item.arguments, events)
        if not self._has_name and not self._has_id:
            events.append(ToolCallDelta(self.block, custom=self._custom))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry.text), self.block))


class CustomCallState(CallState):
    """A call of a custom tool, which the caller runs, or the provider. Its events are held until that is known."""

    __slots__ = ("_held", "_part", "name", "runs_here")

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self.runs_here: bool | None = None
        """Whether the caller runs it; None while that is not known."""
        self.name: str | None = None
        self._held: list[Event] = []
        self._part: PartArrived | None = None

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the id and the name."""
        self.name = item.name or self.name
        super().begin(item, entry, self._choose(events))

    def feed(self, arguments: str, events: list[Event]) -> None:
        """Add text of the arguments."""
        super().feed(arguments, self._choose(events))

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the call, or the item of a call that the provider ran."""
        self.name = item.name or self.name
        part = ServerTool(self.name or self.kind, item.call_id or item.id, item.status, entry.text, self.origin)
        self._part = PartArrived(part, self.block)
        if self.runs_here is False:
            events.append(self._part)
        else:
            super().end(item, entry, self._choose(events))

    def decide(self, runs_here: bool, events: list[Event]) -> None:
        """Emit the held events: it is known who runs the call."""
        self.runs_here = self.is_call = runs_here
        if runs_here:
            events += self._held
        elif self._part is not None:
            events.append(self._part)
        self._held = []

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: the whole item did not come."""
        events += self._held
        self._held = []

    def _choose(self, events: list[Event]) -> list[Event]:
        return events if self.runs_here else self._held


class ServerToolState(ItemState):
    """A tool that the provider runs: its item, replaced with each progress event."""

    __slots__ = ("_part",)

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._part: ServerTool | None = None

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the item as it is now."""
        self._part = ServerTool(self.kind, item.id, item.status, entry.text, self.origin)
        events.append(PartArrived(self._part, self.block))

    end = begin

    def emit_progress(self, status: str, events: list[Event]) -> None:
        """Emit a new status."""
        part = self._part or ServerTool(self.kind, self.id, origin=self.origin)
        if part.status != status:
            self._part = msgspec.structs.replace(part, status=status)
            events.append(PartArrived(self._part, self.block))


class ToolItemState(ServerToolState):
    """A call of a tool of the provider which the caller may have to run: only the whole item shows it."""

    __slots__ = ()

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the item if the provider runs it."""
        if not is_client_call(msgspec.json.decode(entry.raw)):
            super().begin(item, entry, events)

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the call, or the item of a tool that the provider ran."""
        fields = msgspec.json.decode(entry.raw)
        if self._part is not None or not is_client_call(fields):
            super().begin(item, entry, events)
            return
        self.is_call = True
        name, arguments = read_call(fields)
        call_id = item.call_id or item.id or None
        events.append(ToolCallDelta(self.block, call_id, name, msgspec.json.encode(arguments).decode()))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry.text), self.block))

    def emit_progress(self, status: str, events: list[Event]) -> None:
        """Emit a new status of a tool that the provider runs."""
        if self._part is not None:
            super().emit_progress(status, events)


def _find_rest(received: list[str] | None, whole: str) -> str:
    """Return the part of a whole text that its deltas did not have; "" if it contradicts them."""
    if not received:
        return whole
    sent = "".join(received)
    return whole[len(sent) :] if len(whole) > len(sent) and whole.startswith(sent) else ""


# --- tools of the provider that the caller runs -------------------------------------------------------------------

# The item type of a call, the name of its tool, the fields that are its arguments, and the item type of its result, as
# the official client has them (openai 3.49, 2026-11).
_TOOLS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "apply_patch_call": ("apply_patch", ("operation",), "apply_patch_call_output"),
    "local_shell_call": ("local_shell", ("action",), "local_shell_call_output"),
    "shell_call": ("shell", ("action",), "shell_call_output"),
    "computer_call": ("computer", ("action", "actions", "pending_safety_checks"), "computer_call_output"),
    "tool_search_call": ("tool_search", ("arguments",), "tool_search_output"),
}
CLIENT_CALLS = frozenset(_TOOLS)
CLIENT_OUTPUTS = frozenset(output for _, _, output in _TOOLS.values())

# One white pixel: a computer's result must hold a picture.
_BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)


def is_client_call(item: Mapping[str, Any]) -> bool:
    """Whether the caller runs this call. The provider runs plain searches, and shells in containers."""
    match item.get("type"):
        case "tool_search_call":
            return item.get("execution") == "client"
        case "shell_call":
            environment = item.get("environment")
            kind = environment.get("type") if isinstance(environment, Mapping) else None
            return not (isinstance(kind, str) and kind.startswith("container"))
        case kind:
            return kind in _TOOLS


def read_call(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the tool and the arguments of a call."""
    name, fields, _ = _TOOLS[str(item["type"])]
    given = {field: value for field in fields if (value := item.get(field)) not in (None, [])}
    only = given.get(fields[0])
    # A call with one object of arguments has that object's fields.
    return name, dict(only) if len(given) == 1 and isinstance(only, Mapping) else given


def encode_output(call: Wire, result: ToolResult, notices: list[Notice]) -> Wire:
    """Encode the result of a call as the item that belongs to it. `call` is the item of the call."""
    kind = str(call["type"])
    encoded: Wire = {"type": _TOOLS[kind][2], "call_id": result.call_id}
    match kind:
        case "apply_patch_call":
            encoded |= {"status": "failed" if result.is_error else "completed", "output": result.text}
        case "local_shell_call":
            encoded["output"] = result.text
        case "shell_call":
            encoded["output"] = _encode_shell_output(result)
            action = call.get("action")
            most = action.get("max_output_length") if isinstance(action, Mapping) else None
            encoded |= {} if most is None else {"max_output_length": most}
        case "computer_call":
            encoded["output"] = {"type": "computer_screenshot", "image_url": _find_screenshot(result, notices)}
            if checks := call.get("pending_safety_checks"):
                encoded["acknowledged_safety_checks"] = checks
        case _:
            encoded |= {"execution": "client", "status": "completed", "tools": _find_tools(result, notices)}
    caller = call.get("caller")
    return encoded if caller is None or kind in ("computer_call", "tool_search_call") else {**encoded, "caller": caller}


def _encode_shell_output(result: ToolResult) -> list[Any]:
    written = _parse(result.text)
    if isinstance(written, Mapping) and "stdout" in written:
        written = [written]
    if (
        isinstance(written, list)
        and written
        and all(isinstance(each, Mapping) and "stdout" in each for each in written)
    ):
        return [{"stderr": "", "outcome": _exit(0), **each} for each in written]
    out, err = ("", result.text) if result.is_error else (result.text, "")
    return [{"stdout": out, "stderr": err, "outcome": _exit(int(result.is_error))}]


def _exit(code: int) -> Wire:
    return {"type": "exit", "exit_code": code}


def _find_screenshot(result: ToolResult, notices: list[Notice]) -> str:
    pictures = [part for part in result.content if isinstance(part, Image)]
    if pictures:
        return make_image_url(pictures[-1])
    add_notice(notices, "result_without_picture", "the result of a computer call is a picture; a blank one was sent")
    return _BLANK


def _find_tools(result: ToolResult, notices: list[Notice]) -> list[Any]:
    found = _parse(result.text)
    if isinstance(found, Mapping):
        found = found.get("tools")
    if isinstance(found, list) and all(isinstance(tool, Mapping) for tool in found):
        return found
    add_notice(notices, "result_without_tools", "the result of a tool search is a JSON list of tools; none were sent")
    return []


def _parse(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def read_output(item: Mapping[str, Any]) -> ToolResult | None:
    """Read the item of a result; None if it names no call."""
    call_id = item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        return None
    output = item.get("tools") if item["type"] == "tool_search_output" else item.get("output")
    if item["type"] == "computer_call_output" and isinstance(output, Mapping):
        url = output.get("image_url")
        return ToolResult(call_id, (Image(url=url),) if isinstance(url, str) else "")
    text = output if isinstance(output, str) else "" if output is None else msgspec.json.encode(output).decode()
    return ToolResult(call_id, text, is_error=item.get("status") == "failed")


# The tools behind x_search, which come as custom calls (docs.x.ai, tools, and recorded, 2026-11).
_SEARCH_NAMES = ("x_", "view_x_")
_SEARCH_CALLS = "xs_"


def may_be_server_run(item: Item) -> bool:
    """Whether a call of a custom tool looks like one that a provider makes and runs itself."""
    return (item.name or "").startswith(_SEARCH_NAMES) or (item.call_id or "").startswith(_SEARCH_CALLS)


def find_tool_names(tools: Any) -> set[str]:
    """Return the names of the tools in a request, also of those inside a namespace."""
    names: set[str] = set()
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, Mapping):
            names |= {str(tool.get("name") or tool.get("type"))} | find_tool_names(tool.get("tools"))
    return names

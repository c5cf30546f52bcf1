"""Items of tools: which ones the provider runs, which ones the caller runs, and how a result goes back.

Some tools of the provider are run by the caller: a patch, a shell, a computer, a search for tools. Each has an item
type of its own, and its result goes back as the item type that belongs to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.dialects.media import make_image_url
from asides.dialects.message_encoder import Wire, add_notice
from asides.dialects.openai_responses.wire import Item
from asides.values.notices import Notice
from asides.values.parts import Image, ToolResult

# Items of tools that the provider runs itself, as documented up to 2026-11.
SERVER_TOOLS = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "mcp_approval_request", "tool_search_output", "x_search_call",
    "program", "program_output", "shell_call_output", "code_execution_call",
})  # fmt: skip

# Other items that the provider's own tools and agents leave in an output: results beside the calls that it ran itself
# (openai 3.51, 2026-11-18). In a request some of them are the caller's.
SERVER_OUTPUTS = frozenset({
    "mcp_approval_response", "additional_tools", "multi_agent_call", "multi_agent_call_output", "function_call_output",
    "custom_tool_call_output", "apply_patch_call_output", "computer_call_output", "local_shell_call_output",
})  # fmt: skip


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

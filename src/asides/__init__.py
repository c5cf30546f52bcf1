"""Ask any language model: the answer in one place, its thinking in another, streamed or whole.

This is the public API and nothing else: one table of names, each loaded from its module when it is first used, so that
`import asides` costs next to nothing, opens no socket and reads no environment.
"""

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides import aio
    from asides.agents.async_ import AsyncAgent
    from asides.agents.mcp.server import McpServer
    from asides.agents.sync import Agent
    from asides.agents.tools.executor import BadArguments
    from asides.agents.tools.function_tool import FunctionTool, tool
    from asides.agents.tools.toolset import ToolLike
    from asides.aio import AsyncClient, AsyncStream
    from asides.client import Client, Stream, ask, stream
    from asides.conversations.async_ import AsyncConversation, AsyncConversationStream
    from asides.conversations.store.protocol import Store, StoreConflict, StoreError
    from asides.conversations.store.sqlite import SqliteStore
    from asides.conversations.sync import Conversation, ConversationStream
    from asides.dialects import register_dialect
    from asides.flows.offline import Explanation, decode, explain
    from asides.flows.run_config import Limits
    from asides.options import Timeout
    from asides.providers.find import find_provider, list_providers
    from asides.providers.provider import Capabilities, ModelRule, ModelVariant, Provider, Quirks, ReplayRule
    from asides.settings import Settings, load_settings
    from asides.transports.run_stream import AsyncRunStream, RunStream
    from asides.values.errors import (
        AgentError,
        AnswerInThinking,
        AsidesError,
        AuthError,
        BadRequest,
        ConfigError,
        ConnectionLost,
        ConnectTimeout,
        ContentFiltered,
        ContextTooLong,
        IdleTimeout,
        InvalidOutput,
        InvalidThinking,
        LimitReached,
        MissingKey,
        NoAnswer,
        NotFound,
        Overloaded,
        ProtocolError,
        ProviderError,
        RateLimited,
        ReplayRejected,
        ToolFailed,
        TooManyTools,
        TooManyTurns,
        TransportError,
        UnknownModel,
        UnknownProvider,
        Unsupported,
    )
    from asides.values.events import (
        Event,
        PartArrived,
        RefusalDelta,
        ReplyEnded,
        ReplyStarted,
        StopReason,
        TextDelta,
        ThinkingDelta,
        ThoughtSealed,
        ToolCallDelta,
        UsageReported,
        Warned,
        blocks,
    )
    from asides.values.fold import fold
    from asides.values.messages import (
        File,
        Image,
        Message,
        OutputSchema,
        Prompt,
        ProviderState,
        Refusal,
        ServerTool,
        StoredResponse,
        Text,
        ToolCall,
        ToolResult,
        UnknownPart,
        assistant,
        system,
        user,
    )
    from asides.values.model_info import ModelInfo, ThinkingInfo
    from asides.values.notices import Notice
    from asides.values.reply import Reply
    from asides.values.result import Result, RunEnded, RunEvent, Step, StepEnded, StepStarted, ToolFinished, ToolStarted
    from asides.values.simulate import simulate
    from asides.values.thinking import Origin, Seal, Thinking, Thought
    from asides.values.tools import Tool
    from asides.values.usage import Usage
    from asides.values.version import VERSION as __version__  # noqa: N811 - a dunder is how a package says it
    from asides.wire.inline_tags import Separated, Separator, separate
    from asides.wire.partial_json import PartialJson
else:
    # The module that each name lives in; a test holds this table, the imports above and __all__ together.
    _HOMES = {
        "asides.aio": ("AsyncClient", "AsyncStream"),
        "asides.client": ("Client", "Stream", "ask", "stream"),
        "asides.values.errors": (
            "AgentError",
            "AnswerInThinking",
            "AsidesError",
            "AuthError",
            "BadRequest",
            "ConfigError",
            "ConnectTimeout",
            "ConnectionLost",
            "ContentFiltered",
            "ContextTooLong",
            "IdleTimeout",
            "InvalidOutput",
            "InvalidThinking",
            "LimitReached",
            "MissingKey",
            "NoAnswer",
            "NotFound",
            "Overloaded",
            "ProtocolError",
            "ProviderError",
            "RateLimited",
            "ReplayRejected",
            "TooManyTools",
            "TooManyTurns",
            "ToolFailed",
            "TransportError",
            "UnknownModel",
            "UnknownProvider",
            "Unsupported",
        ),
        "asides.values.events": (
            "Event",
            "PartArrived",
            "RefusalDelta",
            "ReplyEnded",
            "ReplyStarted",
            "StopReason",
            "TextDelta",
            "ThinkingDelta",
            "ThoughtSealed",
            "ToolCallDelta",
            "UsageReported",
            "Warned",
            "blocks",
        ),
        "asides.options": ("Timeout",),
        "asides.providers.find": ("find_provider", "list_providers"),
        "asides.values.messages": (
            "File",
            "Image",
            "Message",
            "OutputSchema",
            "Prompt",
            "Refusal",
            "ServerTool",
            "ProviderState",
            "StoredResponse",
            "Text",
            "ToolCall",
            "ToolResult",
            "UnknownPart",
            "assistant",
            "system",
            "user",
        ),
        "asides.values.model_info": ("ModelInfo", "ThinkingInfo"),
        "asides.values.notices": ("Notice",),
        "asides.flows.offline": ("Explanation", "decode", "explain"),
        "asides.providers.provider": ("Capabilities", "ModelRule", "Provider", "Quirks", "ReplayRule", "ModelVariant"),
        "asides.values.fold": ("fold",),
        "asides.values.reply": ("Reply",),
        "asides.values.simulate": ("simulate",),
        "asides.settings": ("Settings", "load_settings"),
        "asides.values.thinking": ("Origin", "Seal", "Thinking", "Thought"),
        "asides.values.tools": ("Tool",),
        "asides.values.usage": ("Usage",),
        "asides.wire.inline_tags": ("Separated", "Separator", "separate"),
        "asides.wire.partial_json": ("PartialJson",),
        "asides.agents.sync": ("Agent",),
        "asides.agents.async_": ("AsyncAgent",),
        "asides.values.result": ("Result", "Step"),
        "asides.flows.run_config": ("Limits",),
        "asides.values.run_events": ("RunEnded", "RunEvent", "StepEnded", "StepStarted", "ToolFinished", "ToolStarted"),
        "asides.agents.tools.function_tool": ("FunctionTool", "tool"),
        "asides.transports.run_stream": ("AsyncRunStream", "RunStream"),
        "asides.conversations.sync": ("Conversation", "ConversationStream"),
        "asides.conversations.async_": ("AsyncConversation", "AsyncConversationStream"),
        "asides.conversations.store.sqlite": ("SqliteStore",),
        "asides.conversations.store.protocol": ("Store", "StoreConflict", "StoreError"),
        "asides.agents.mcp.server": ("McpServer",),
        "asides.agents.tools.executor": ("BadArguments",),
        "asides.agents.tools.toolset": ("ToolLike",),
        "asides.dialects": ("register_dialect",),
    }
    _HOME_OF = {name: (module, name) for module, names in _HOMES.items() for name in names}
    _HOME_OF["__version__"] = ("asides.values.version", "VERSION")

    def __getattr__(name):
        from importlib import import_module

        if name == "aio":
            return import_module("asides.aio")
        if name not in _HOME_OF:
            raise AttributeError(f"module 'asides' has no attribute {name!r}")
        module, attribute = _HOME_OF[name]
        value = globals()[name] = getattr(import_module(module), attribute)  # the next use does not come here
        return value

    def __dir__():
        return __all__


__all__ = [
    "Agent",
    "AgentError",
    "AnswerInThinking",
    "AsidesError",
    "AsyncAgent",
    "AsyncClient",
    "AsyncConversation",
    "AsyncConversationStream",
    "AsyncRunStream",
    "AsyncStream",
    "AuthError",
    "BadArguments",
    "BadRequest",
    "Capabilities",
    "Client",
    "ConfigError",
    "ConnectTimeout",
    "ConnectionLost",
    "ContentFiltered",
    "ContextTooLong",
    "Conversation",
    "ConversationStream",
    "Event",
    "Explanation",
    "File",
    "FunctionTool",
    "IdleTimeout",
    "Image",
    "InvalidOutput",
    "InvalidThinking",
    "LimitReached",
    "Limits",
    "McpServer",
    "Message",
    "MissingKey",
    "ModelInfo",
    "ModelRule",
    "ModelVariant",
    "NoAnswer",
    "NotFound",
    "Notice",
    "Origin",
    "OutputSchema",
    "Overloaded",
    "PartArrived",
    "PartialJson",
    "Prompt",
    "ProtocolError",
    "Provider",
    "ProviderError",
    "ProviderState",
    "Quirks",
    "RateLimited",
    "Refusal",
    "RefusalDelta",
    "ReplayRejected",
    "ReplayRule",
    "Reply",
    "ReplyEnded",
    "ReplyStarted",
    "Result",
    "RunEnded",
    "RunEvent",
    "RunStream",
    "Seal",
    "Separated",
    "Separator",
    "ServerTool",
    "Settings",
    "SqliteStore",
    "Step",
    "StepEnded",
    "StepStarted",
    "StopReason",
    "Store",
    "StoreConflict",
    "StoreError",
    "StoredResponse",
    "Stream",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ThinkingInfo",
    "Thought",
    "ThoughtSealed",
    "Timeout",
    "TooManyTools",
    "TooManyTurns",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolFailed",
    "ToolFinished",
    "ToolLike",
    "ToolResult",
    "ToolStarted",
    "TransportError",
    "UnknownModel",
    "UnknownPart",
    "UnknownProvider",
    "Unsupported",
    "Usage",
    "UsageReported",
    "Warned",
    "__version__",
    "aio",
    "ask",
    "assistant",
    "blocks",
    "decode",
    "explain",
    "find_provider",
    "fold",
    "list_providers",
    "load_settings",
    "register_dialect",
    "separate",
    "simulate",
    "stream",
    "system",
    "tool",
    "user",
]

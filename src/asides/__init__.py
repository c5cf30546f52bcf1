"""Ask any language model: the answer in one place, its thinking in another, streamed or whole.

This is the public API and nothing else: one table of names, each loaded from its module when it is first used, so that
`import asides` costs next to nothing, opens no socket and reads no environment.
"""

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides import aio
    from asides.agent.awaiting import AsyncAgent
    from asides.agent.blocking import Agent
    from asides.aio import AsyncClient, AsyncStream
    from asides.client import Client, Stream, ask, stream
    from asides.conversation.awaiting import AsyncConversation, AsyncConversationStream
    from asides.conversation.blocking import Conversation, ConversationStream
    from asides.dialects import register_dialect
    from asides.errors import (
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
    from asides.events import (
        Event,
        PartArrived,
        RefusalDelta,
        ReplyEnded,
        ReplyStarted,
        Stop,
        TextDelta,
        ThinkingDelta,
        ThoughtSealed,
        ToolCallDelta,
        UsageReported,
        Warned,
        blocks,
    )
    from asides.flows.call import Timeout
    from asides.flows.errand import Limits
    from asides.folding import fold
    from asides.mcp.server import McpServer
    from asides.messages import (
        File,
        Image,
        Message,
        OutputSchema,
        Prompt,
        Refusal,
        ServerTool,
        State,
        Stored,
        Text,
        ToolCall,
        ToolResult,
        Unknown,
        assistant,
        system,
        user,
    )
    from asides.model_info import ModelInfo, ThinkingInfo
    from asides.network.run_streams import AsyncRunStream, RunStream
    from asides.notices import Notice
    from asides.offline import Explanation, decode, explain
    from asides.providers.find import lookup as find_provider
    from asides.providers.find import providers as list_providers
    from asides.providers.provider import Capabilities, ModelRule, Provider, Quirks, ReplayRule, Variant
    from asides.reply import Reply
    from asides.result import Result, Step
    from asides.run_events import RunEnded, RunEvent, StepEnded, StepStarted, ToolFinished, ToolStarted
    from asides.settings import Settings, load_settings
    from asides.simulation import simulate
    from asides.store.sqlite import SqliteStore
    from asides.store.store import Store, StoreConflict, StoreError
    from asides.thinking import Origin, Seal, Thinking, Thought
    from asides.toolbox.function_tool import FunctionTool, tool
    from asides.toolbox.runnable import BadArguments
    from asides.toolbox.toolset import ToolLike
    from asides.tools import Tool
    from asides.usage import Usage
    from asides.version import VERSION as __version__  # noqa: N811 - a dunder is how a package says it
    from asides.wire.inline_tags import Separated, Separator, separate
    from asides.wire.partial_json import PartialJson
else:
    # The module that each name lives in; a test holds this table, the imports above and __all__ together.
    _HOMES = {
        "asides.aio": ("AsyncClient", "AsyncStream"),
        "asides.client": ("Client", "Stream", "ask", "stream"),
        "asides.errors": (
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
        "asides.events": (
            "Event",
            "PartArrived",
            "RefusalDelta",
            "ReplyEnded",
            "ReplyStarted",
            "Stop",
            "TextDelta",
            "ThinkingDelta",
            "ThoughtSealed",
            "ToolCallDelta",
            "UsageReported",
            "Warned",
            "blocks",
        ),
        "asides.flows.call": ("Timeout",),
        "asides.messages": (
            "File",
            "Image",
            "Message",
            "OutputSchema",
            "Prompt",
            "Refusal",
            "ServerTool",
            "State",
            "Stored",
            "Text",
            "ToolCall",
            "ToolResult",
            "Unknown",
            "assistant",
            "system",
            "user",
        ),
        "asides.model_info": ("ModelInfo", "ThinkingInfo"),
        "asides.notices": ("Notice",),
        "asides.offline": ("Explanation", "decode", "explain"),
        "asides.providers.provider": ("Capabilities", "ModelRule", "Provider", "Quirks", "ReplayRule", "Variant"),
        "asides.folding": ("fold",),
        "asides.reply": ("Reply",),
        "asides.simulation": ("simulate",),
        "asides.settings": ("Settings", "load_settings"),
        "asides.thinking": ("Origin", "Seal", "Thinking", "Thought"),
        "asides.tools": ("Tool",),
        "asides.usage": ("Usage",),
        "asides.wire.inline_tags": ("Separated", "Separator", "separate"),
        "asides.wire.partial_json": ("PartialJson",),
        "asides.agent.blocking": ("Agent",),
        "asides.agent.awaiting": ("AsyncAgent",),
        "asides.result": ("Result", "Step"),
        "asides.flows.errand": ("Limits",),
        "asides.run_events": ("RunEnded", "RunEvent", "StepEnded", "StepStarted", "ToolFinished", "ToolStarted"),
        "asides.toolbox.function_tool": ("FunctionTool", "tool"),
        "asides.network.run_streams": ("AsyncRunStream", "RunStream"),
        "asides.conversation.blocking": ("Conversation", "ConversationStream"),
        "asides.conversation.awaiting": ("AsyncConversation", "AsyncConversationStream"),
        "asides.store.sqlite": ("SqliteStore",),
        "asides.store.store": ("Store", "StoreConflict", "StoreError"),
        "asides.mcp.server": ("McpServer",),
        "asides.toolbox.runnable": ("BadArguments",),
        "asides.toolbox.toolset": ("ToolLike",),
        "asides.dialects": ("register_dialect",),
    }
    _HOME_OF = {name: (module, name) for module, names in _HOMES.items() for name in names}
    # Public under a longer name than in a module whose own name says the rest.
    _HOME_OF["find_provider"] = ("asides.providers.find", "lookup")
    _HOME_OF["list_providers"] = ("asides.providers.find", "providers")
    _HOME_OF["__version__"] = ("asides.version", "VERSION")

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
    "State",
    "Step",
    "StepEnded",
    "StepStarted",
    "Stop",
    "Store",
    "StoreConflict",
    "StoreError",
    "Stored",
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
    "Unknown",
    "UnknownModel",
    "UnknownProvider",
    "Unsupported",
    "Usage",
    "UsageReported",
    "Variant",
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

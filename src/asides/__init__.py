"""Ask any language model: the answer in one place, its thinking in another, streamed or whole.

This is the public API and nothing else: one table of names, each loaded from its module when it is first used, so that
`import asides` costs next to nothing, opens no socket and reads no environment.
"""

# Type checkers take any variable of this name for true; importing it would load the whole of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from asides import aio
    from asides.aio import AsyncClient, AsyncStream
    from asides.client import Client, Stream, ask, stream
    from asides.errors import (
        AgentError,
        AsidesError,
        AuthError,
        BadRequest,
        ConfigError,
        ConnectionLost,
        ConnectTimeout,
        ContentFiltered,
        ContextTooLong,
        IdleTimeout,
        InvalidThinking,
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
    from asides.folding import fold
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
    from asides.notices import Notice
    from asides.offline import Explanation, decode, explain
    from asides.providers.find import lookup as find_provider
    from asides.providers.find import providers as list_providers
    from asides.providers.provider import Capabilities, ModelRule, Provider, Quirks, ReplayRule, Variant
    from asides.reply import Reply
    from asides.settings import Settings, load_settings
    from asides.simulation import simulate
    from asides.thinking import Origin, Seal, Thinking, Thought
    from asides.tools import Tool
    from asides.usage import Usage
    from asides.version import VERSION as __version__  # noqa: N811 - a dunder is how a package says it
    from asides.wire.inline_tags import Separated, Separator, separate
else:
    # The module that each name lives in; a test holds this table, the imports above and __all__ together.
    _HOMES = {
        "asides.aio": ("AsyncClient", "AsyncStream"),
        "asides.client": ("Client", "Stream", "ask", "stream"),
        "asides.errors": (
            "AgentError",
            "AsidesError",
            "AuthError",
            "BadRequest",
            "ConfigError",
            "ConnectTimeout",
            "ConnectionLost",
            "ContentFiltered",
            "ContextTooLong",
            "IdleTimeout",
            "InvalidThinking",
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
    "AgentError",
    "AsidesError",
    "AsyncClient",
    "AsyncStream",
    "AuthError",
    "BadRequest",
    "Capabilities",
    "Client",
    "ConfigError",
    "ConnectTimeout",
    "ConnectionLost",
    "ContentFiltered",
    "ContextTooLong",
    "Event",
    "Explanation",
    "File",
    "IdleTimeout",
    "Image",
    "InvalidThinking",
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
    "Seal",
    "Separated",
    "Separator",
    "ServerTool",
    "Settings",
    "State",
    "Stop",
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
    "ToolResult",
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
    "separate",
    "simulate",
    "stream",
    "system",
    "user",
]

"""Ask any language model: the answer in one place, its thinking in another, streamed or whole.

This file is the table of public names. A name is loaded from its module when it is first used, so `import asides`
loads nothing else, opens no socket and reads no environment. Type checkers read `__init__.pyi`, which
`scripts/public_names.py` writes from this table.
"""

import sys

__version__ = "0.2.0"

# Module → its public names. Keep both sorted.
_NAMES_BY_MODULE = {
    "asides.agents.async_": "AsyncAgent",
    "asides.agents.mcp.mcp_server": "McpServer",
    "asides.agents.sync": "Agent",
    "asides.agents.tools.executor": "BadArguments",
    "asides.agents.tools.function_tool": "FunctionTool ToolLike tool",
    "asides.aio": "AsyncClient",
    "asides.client": "Client ask ask_many probe stream",
    "asides.conversations.async_": "AsyncConversation AsyncConversationStream",
    "asides.conversations.store": "Store StoreConflict",
    "asides.conversations.store.postgres_store": "PostgresStore",
    "asides.conversations.store.sqlite": "SqliteStore",
    "asides.conversations.sync": "Conversation ConversationStream",
    "asides.database": "StoreError StoreUnavailable",
    "asides.datasets.audit": "AuditFinding audit",
    "asides.datasets.separator": "RowSeparator separate_many",
    "asides.dialects": "register_dialect",
    "asides.flows.many": "Progress",
    "asides.flows.offline": "Explanation decode explain read",
    "asides.flows.probe.list_findings": "ProbeFinding",
    "asides.flows.probe.probe_report": "ProbeReport ProbeStep",
    "asides.flows.run_config": "Limits",
    "asides.history.doctor.diagnose": "Diagnosis Finding diagnose",
    "asides.options": "ReplyLimits Timeout",
    "asides.providers.find": "find_provider list_providers",
    "asides.providers.provider": "Capabilities ModelRule ModelVariant Provider Quirks ReplayRule",
    "asides.settings": "Settings load_settings",
    "asides.telemetry.instrument": "instrument uninstrument",
    "asides.transports.answers": "Answers AsyncAnswers",
    "asides.transports.async_": "AsyncStream",
    "asides.transports.run_async": "AsyncRunStream",
    "asides.transports.run_sync": "RunStream",
    "asides.transports.sync": "Stream",
    "asides.values.errors": (
        "AgentError AnswerInThinking AsidesError AuthError BadRequest ConfigError ConnectTimeout ConnectionLost "
        "ContentFiltered ContextTooLong IdleTimeout InvalidOutput InvalidThinking LimitReached MissingKey NoAnswer "
        "NotFound Overloaded ProtocolError ProviderError RateLimited ReplayRejected TooManyTools TooManyTurns "
        "ToolFailed TransportError UnknownModel UnknownProvider Unsupported UnsupportedInput"
    ),
    "asides.values.events": (
        "CommentaryDelta Event PartArrived RefusalDelta ReplyEnded ReplyStarted StopReason TextDelta "
        "TextReclassified ThinkingDelta ThoughtSealed ToolCallDelta UsageReported Warned blocks"
    ),
    "asides.values.fold": "fold simulate",
    "asides.values.messages": "Message OutputSchema Prompt ProviderState StoredResponse assistant system user",
    "asides.values.model_info": "ModelInfo ThinkingInfo",
    "asides.values.notices": "Notice",
    "asides.values.parts": "Commentary File Image Refusal ServerTool Text ToolCall ToolResult UnknownPart",
    "asides.values.recover_policy": "RecoverPolicy",
    "asides.values.rejections": "RejectionKind",
    "asides.values.reply": "Reply",
    "asides.values.result": "Result RunEnded RunEvent Step StepEnded StepStarted ToolFinished ToolStarted",
    "asides.values.thinking": "Origin Seal Thinking Thought",
    "asides.values.tools": "Tool",
    "asides.values.usage": "Cost Timing Usage",
    "asides.values.visibility": "Visibility",
    "asides.wire.inline_tags": "Separated Separator separate",
    "asides.wire.partial_json": "PartialJson",
}
_MODULE_OF_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}

__all__ = sorted(["__version__", "aio", "ui", *_MODULE_OF_NAME])  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("aio", "ui"):
        return import_module(f"asides.{name}")
    if name not in _MODULE_OF_NAME:
        from asides.packages import explain_unknown

        raise explain_unknown(name)
    value = getattr(import_module(_MODULE_OF_NAME[name]), name)
    is_ours = str(getattr(value, "__module__", "")).startswith("asides.")
    if is_ours and not hasattr(value, "__struct_fields__"):
        # Reprs and tracebacks say asides.Client. msgspec reads the types of a struct's fields in its own module.
        value.__module__ = "asides"
    globals()[name] = value  # Python finds it here from now on and does not call this function again.
    return value


class _MovedModules:
    """Explains `import asides.gateway` and the like: those modules are in packages of their own now."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name in ("asides.batch", "asides.gateway", "asides.testing"):
            from asides.packages import explain_unknown

            raise explain_unknown(name.removeprefix("asides."))


sys.meta_path.append(_MovedModules)  # type: ignore[arg-type]  # Asked last, for modules that nothing else has found.


def __dir__() -> list[str]:
    return __all__

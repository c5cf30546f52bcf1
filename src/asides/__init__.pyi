# Written by scripts/public_names.py from the table in __init__.py. Do not edit.

from asides import aio as aio
from asides import ui as ui
from asides.agents.async_ import AsyncAgent as AsyncAgent
from asides.agents.mcp.mcp_server import McpServer as McpServer
from asides.agents.sync import Agent as Agent
from asides.agents.tools.executor import BadArguments as BadArguments
from asides.agents.tools.function_tool import FunctionTool as FunctionTool
from asides.agents.tools.function_tool import ToolLike as ToolLike
from asides.agents.tools.function_tool import tool as tool
from asides.aio import AsyncClient as AsyncClient
from asides.client import Client as Client
from asides.client import ask as ask
from asides.client import ask_many as ask_many
from asides.client import probe as probe
from asides.client import stream as stream
from asides.conversations.async_ import AsyncConversation as AsyncConversation
from asides.conversations.async_ import AsyncConversationStream as AsyncConversationStream
from asides.conversations.store import Store as Store
from asides.conversations.store import StoreConflict as StoreConflict
from asides.conversations.store.postgres_store import PostgresStore as PostgresStore
from asides.conversations.store.sqlite import SqliteStore as SqliteStore
from asides.conversations.sync import Conversation as Conversation
from asides.conversations.sync import ConversationStream as ConversationStream
from asides.database import StoreError as StoreError
from asides.database import StoreUnavailable as StoreUnavailable
from asides.datasets.audit import AuditFinding as AuditFinding
from asides.datasets.audit import audit as audit
from asides.datasets.separator import RowSeparator as RowSeparator
from asides.datasets.separator import separate_many as separate_many
from asides.dialects import register_dialect as register_dialect
from asides.flows.many import Progress as Progress
from asides.flows.offline import Explanation as Explanation
from asides.flows.offline import decode as decode
from asides.flows.offline import explain as explain
from asides.flows.offline import read as read
from asides.flows.probe.list_findings import ProbeFinding as ProbeFinding
from asides.flows.probe.probe_report import ProbeReport as ProbeReport
from asides.flows.probe.probe_report import ProbeStep as ProbeStep
from asides.flows.run_config import Limits as Limits
from asides.history.doctor.diagnose import Diagnosis as Diagnosis
from asides.history.doctor.diagnose import Finding as Finding
from asides.history.doctor.diagnose import diagnose as diagnose
from asides.options import ReplyLimits as ReplyLimits
from asides.options import Timeout as Timeout
from asides.providers.find import find_provider as find_provider
from asides.providers.find import list_providers as list_providers
from asides.providers.provider import Capabilities as Capabilities
from asides.providers.provider import ModelRule as ModelRule
from asides.providers.provider import ModelVariant as ModelVariant
from asides.providers.provider import Provider as Provider
from asides.providers.provider import Quirks as Quirks
from asides.providers.provider import ReplayRule as ReplayRule
from asides.settings import Settings as Settings
from asides.settings import load_settings as load_settings
from asides.telemetry.instrument import instrument as instrument
from asides.telemetry.instrument import uninstrument as uninstrument
from asides.transports.answers import Answers as Answers
from asides.transports.answers import AsyncAnswers as AsyncAnswers
from asides.transports.async_ import AsyncStream as AsyncStream
from asides.transports.run_async import AsyncRunStream as AsyncRunStream
from asides.transports.run_sync import RunStream as RunStream
from asides.transports.sync import Stream as Stream
from asides.values.errors import AgentError as AgentError
from asides.values.errors import AnswerInThinking as AnswerInThinking
from asides.values.errors import AsidesError as AsidesError
from asides.values.errors import AuthError as AuthError
from asides.values.errors import BadRequest as BadRequest
from asides.values.errors import ConfigError as ConfigError
from asides.values.errors import ConnectionLost as ConnectionLost
from asides.values.errors import ConnectTimeout as ConnectTimeout
from asides.values.errors import ContentFiltered as ContentFiltered
from asides.values.errors import ContextTooLong as ContextTooLong
from asides.values.errors import IdleTimeout as IdleTimeout
from asides.values.errors import InvalidOutput as InvalidOutput
from asides.values.errors import InvalidThinking as InvalidThinking
from asides.values.errors import LimitReached as LimitReached
from asides.values.errors import MissingKey as MissingKey
from asides.values.errors import NoAnswer as NoAnswer
from asides.values.errors import NotFound as NotFound
from asides.values.errors import Overloaded as Overloaded
from asides.values.errors import ProtocolError as ProtocolError
from asides.values.errors import ProviderError as ProviderError
from asides.values.errors import RateLimited as RateLimited
from asides.values.errors import ReplayRejected as ReplayRejected
from asides.values.errors import ToolFailed as ToolFailed
from asides.values.errors import TooManyTools as TooManyTools
from asides.values.errors import TooManyTurns as TooManyTurns
from asides.values.errors import TransportError as TransportError
from asides.values.errors import UnknownModel as UnknownModel
from asides.values.errors import UnknownProvider as UnknownProvider
from asides.values.errors import Unsupported as Unsupported
from asides.values.errors import UnsupportedInput as UnsupportedInput
from asides.values.events import CommentaryDelta as CommentaryDelta
from asides.values.events import Event as Event
from asides.values.events import PartArrived as PartArrived
from asides.values.events import RefusalDelta as RefusalDelta
from asides.values.events import ReplyEnded as ReplyEnded
from asides.values.events import ReplyStarted as ReplyStarted
from asides.values.events import StopReason as StopReason
from asides.values.events import TextDelta as TextDelta
from asides.values.events import TextReclassified as TextReclassified
from asides.values.events import ThinkingDelta as ThinkingDelta
from asides.values.events import ThoughtSealed as ThoughtSealed
from asides.values.events import ToolCallDelta as ToolCallDelta
from asides.values.events import UsageReported as UsageReported
from asides.values.events import Warned as Warned
from asides.values.events import blocks as blocks
from asides.values.fold import fold as fold
from asides.values.fold import simulate as simulate
from asides.values.messages import Message as Message
from asides.values.messages import OutputSchema as OutputSchema
from asides.values.messages import Prompt as Prompt
from asides.values.messages import ProviderState as ProviderState
from asides.values.messages import StoredResponse as StoredResponse
from asides.values.messages import assistant as assistant
from asides.values.messages import system as system
from asides.values.messages import user as user
from asides.values.model_info import ModelInfo as ModelInfo
from asides.values.model_info import ThinkingInfo as ThinkingInfo
from asides.values.notices import Notice as Notice
from asides.values.parts import Commentary as Commentary
from asides.values.parts import File as File
from asides.values.parts import Image as Image
from asides.values.parts import Refusal as Refusal
from asides.values.parts import ServerTool as ServerTool
from asides.values.parts import Text as Text
from asides.values.parts import ToolCall as ToolCall
from asides.values.parts import ToolResult as ToolResult
from asides.values.parts import UnknownPart as UnknownPart
from asides.values.recover_policy import RecoverPolicy as RecoverPolicy
from asides.values.rejections import RejectionKind as RejectionKind
from asides.values.reply import Reply as Reply
from asides.values.result import Result as Result
from asides.values.result import RunEnded as RunEnded
from asides.values.result import RunEvent as RunEvent
from asides.values.result import Step as Step
from asides.values.result import StepEnded as StepEnded
from asides.values.result import StepStarted as StepStarted
from asides.values.result import ToolFinished as ToolFinished
from asides.values.result import ToolStarted as ToolStarted
from asides.values.thinking import Origin as Origin
from asides.values.thinking import Seal as Seal
from asides.values.thinking import Thinking as Thinking
from asides.values.thinking import Thought as Thought
from asides.values.tools import Tool as Tool
from asides.values.usage import Cost as Cost
from asides.values.usage import Timing as Timing
from asides.values.usage import Usage as Usage
from asides.values.visibility import Visibility as Visibility
from asides.wire.inline_tags import Separated as Separated
from asides.wire.inline_tags import Separator as Separator
from asides.wire.inline_tags import separate as separate
from asides.wire.partial_json import PartialJson as PartialJson

__version__: str

__all__ = [
    "Agent",
    "AgentError",
    "AnswerInThinking",
    "Answers",
    "AsidesError",
    "AsyncAgent",
    "AsyncAnswers",
    "AsyncClient",
    "AsyncConversation",
    "AsyncConversationStream",
    "AsyncRunStream",
    "AsyncStream",
    "AuditFinding",
    "AuthError",
    "BadArguments",
    "BadRequest",
    "Capabilities",
    "Client",
    "Commentary",
    "CommentaryDelta",
    "ConfigError",
    "ConnectTimeout",
    "ConnectionLost",
    "ContentFiltered",
    "ContextTooLong",
    "Conversation",
    "ConversationStream",
    "Cost",
    "Diagnosis",
    "Event",
    "Explanation",
    "File",
    "Finding",
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
    "PostgresStore",
    "ProbeFinding",
    "ProbeReport",
    "ProbeStep",
    "Progress",
    "Prompt",
    "ProtocolError",
    "Provider",
    "ProviderError",
    "ProviderState",
    "Quirks",
    "RateLimited",
    "RecoverPolicy",
    "Refusal",
    "RefusalDelta",
    "RejectionKind",
    "ReplayRejected",
    "ReplayRule",
    "Reply",
    "ReplyEnded",
    "ReplyLimits",
    "ReplyStarted",
    "Result",
    "RowSeparator",
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
    "StoreUnavailable",
    "StoredResponse",
    "Stream",
    "Text",
    "TextDelta",
    "TextReclassified",
    "Thinking",
    "ThinkingDelta",
    "ThinkingInfo",
    "Thought",
    "ThoughtSealed",
    "Timeout",
    "Timing",
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
    "UnsupportedInput",
    "Usage",
    "UsageReported",
    "Visibility",
    "Warned",
    "__version__",
    "aio",
    "ask",
    "ask_many",
    "assistant",
    "audit",
    "blocks",
    "decode",
    "diagnose",
    "explain",
    "find_provider",
    "fold",
    "instrument",
    "list_providers",
    "load_settings",
    "probe",
    "read",
    "register_dialect",
    "separate",
    "separate_many",
    "simulate",
    "stream",
    "system",
    "tool",
    "ui",
    "uninstrument",
    "user",
]

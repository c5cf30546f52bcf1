"""Why a provider refused a request: `classify(body)` finds the kind, `read_rejection(error)` also what it names.

By text before status: relays answer 429 or 502 for what is a bad request. Loaded when a provider refuses something.
Not here: the wordings (rejected_state, rejected_settings), and the wrappers around them (unwrap_error).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

import msgspec

from asides.values.errors import ProviderError
from asides.values.rejected_settings import SETTING_ROWS
from asides.values.rejected_state import STATE_ROWS
from asides.values.unwrap_error import Saying, find_innermost, list_sayings

StateKind: TypeAlias = Literal[
    "thinking_signature_invalid",
    "thinking_prefix_mismatch",
    "binding_control_unavailable",
    "compaction_signature_mismatch",
    "thinking_signature_missing",
    "thinking_text_missing",
    "thinking_block_modified",
    "thinking_must_lead",
    "thinking_order",
    "thinking_final_block",
    "thinking_present_while_disabled",
    "reasoning_item_orphaned",
    "reasoning_item_missing",
    "item_not_persisted",
    "encrypted_reasoning_invalid",
    "encrypted_reasoning_wrong_account",
    "encrypted_reasoning_unsupported",
    "previous_response_missing",
    "previous_response_forbidden",
    "reasoning_item_id_invalid",
    "reasoning_item_duplicate",
    "reasoning_content_nonempty",
    "thought_signature_missing",
    "thought_signature_invalid",
    "reasoning_content_required",
    "reasoning_field_rejected",
    "tool_result_missing",
    "tool_result_orphaned",
    "tool_turn_order",
    "tool_arguments_invalid",
    "empty_content",
    "role_alternation",
    "system_position",
]
SettingKind: TypeAlias = Literal[
    "thinking_mode_unsupported",
    "adaptive_unsupported",
    "between_tools_unsupported",
    "thinking_cannot_disable",
    "thinking_unsupported_model",
    "effort_unsupported_param",
    "effort_unsupported_value",
    "effort_thinking_conflict",
    "effort_tools_endpoint",
    "reasoning_params_conflict",
    "budget_too_small",
    "budget_exceeds_max_tokens",
    "budget_out_of_range",
    "sampling_with_thinking",
    "sampling_unsupported",
    "tool_choice_with_thinking",
    "tool_choice_unsupported",
    "prefill_unsupported",
    "prefill_with_thinking",
    "context_edit_needs_thinking",
    "summary_not_allowed",
    "stream_required",
    "unknown_param",
    "context_length",
    "opaque_provider_error",
]
RejectionKind: TypeAlias = StateKind | SettingKind
"""Why a provider refused: `ProviderError.kind`."""

Row: TypeAlias = tuple[RejectionKind, str, str, str]
"""A wording: the kind, the pattern, the source and its date."""

STATE_KINDS: frozenset[RejectionKind] = frozenset(get_args(StateKind))
"""Something is wrong with what was sent back of earlier turns: repair the history."""
SETTING_KINDS: frozenset[RejectionKind] = frozenset(get_args(SettingKind))
"""Something is wrong with a setting of this request: change that one."""
KINDS: tuple[RejectionKind, ...] = (*get_args(StateKind), *get_args(SettingKind))

TABLE: tuple[Row, ...] = (*STATE_ROWS, *SETTING_ROWS)
"""All wordings. The first that matches wins."""


class Rejection(msgspec.Struct, frozen=True):
    """Why a provider refused, and what it names. Texts may quote the request, so the repr shows none."""

    kind: RejectionKind
    text: str = ""
    """The innermost message."""
    where: tuple[tuple[str | int, ...], ...] = ()
    """Paths in the request, such as `("messages", 3, "content", 0)`."""
    ids: tuple[str, ...] = ()
    """Items and tool calls: `rs_…`, `fc_…`, `msg_…`, `call_…`, `toolu_…`."""
    names: tuple[str, ...] = ()
    """Parameters, fields and models, as the message spells them."""
    values: tuple[str, ...] = ()
    """The values that would be accepted, if the message lists them."""
    at_least: float | None = None
    at_most: float | None = None

    def __repr__(self) -> str:
        return f"Rejection({self.kind!r}, where={self.where!r})"


# --- the kind -----------------------------------------------------------------------------------------------------


def classify(
    body: bytes | str = b"",
    *,
    message: str = "",
    code: str | None = None,
    param: str | None = None,
    status: int | None = None,
) -> RejectionKind | None:
    """Find the kind of a refusal; None if it is about neither reasoning state nor settings."""
    found = _find(list_sayings(body, message, code or "", param or ""), status)
    return None if found is None else found[0]


def explain(
    body: bytes, *, message: str, code: str | None = None, status: int | None = None
) -> tuple[RejectionKind | None, str]:
    """Find the kind of a refusal, and the message for people: a wrapper's own words are followed by the innermost."""
    sayings = list_sayings(body, message, code or "")
    found = _find(sayings, status)
    innermost = find_innermost(sayings) if found is None or found[0] == "opaque_provider_error" else found[1]
    kind = None if found is None else found[0]
    if innermost is None or innermost.text in message or (message and not innermost.depth):
        return kind, message
    is_wrapper = "{" not in message and 0 < len(message) < _LONGEST_WRAPPER
    return kind, f"{message.strip().rstrip('.:')}: {innermost.text}" if is_wrapper else innermost.text


def read_rejection(error: ProviderError) -> Rejection | None:
    """Read what a refusal names; None if it has no kind."""
    kind = error.kind
    if kind is None:
        return None
    sayings = list_sayings(error.body, error._said[0] or str(error), error.code or "")
    found = _find(sayings, error.status)
    if found is None or found[0] != kind:
        innermost = find_innermost(sayings)
        return Rejection(kind, "" if innermost is None else innermost.text)
    return _read_details(kind, found[1])


def _find(sayings: list[Saying], status: int | None) -> tuple[RejectionKind, Saying] | None:
    # The innermost first: wrappers speak of themselves, and the server behind them of the request.
    for saying in sorted(sayings, key=lambda saying: -saying.depth):
        text = flatten(saying)
        for kind, pattern, _source, _date in TABLE:
            if re.search(pattern, text) and not (kind == "context_length" and re.search(_RATE, text)):
                return kind, saying
    if _is_opaque(sayings, status):
        return "opaque_provider_error", sayings[0] if sayings else Saying("")
    return None


# --- texts --------------------------------------------------------------------------------------------------------

_LONGEST_WRAPPER = 120
_LONGEST = 4000
# Ciphertexts.
_LONG_WORD = r"(\S{80})\S{80,}(\S{20})"
_RATE = r"tokens per (?:min|day|hour)|\btpm\b|rate.?limit|quota"
_QUOTES = str.maketrans("", "", "\"'`´‘’“”«»\\")
# A quoted sentence is the user's own: what servers quote themselves are names and values.
_SENTENCE = (
    r"(?<![\w\"'`])(?:\"(?=\S)([^\"\n]{30,2000})\"|'(?=\S)([^'\n]{30,2000})'(?!\w)|`(?=\S)([^`\n]{30,2000})`"
    r"|“([^”]{30,2000})”)"
)
_SPEAKS = r"(?:error|errors|response|body|said|returned|upstream|exception|failed)\W{0,4}$"


def flatten(saying: Saying) -> str:
    """The text that patterns match: lower case, no quotes, one space between words, the code and parameter before it."""
    text = re.sub(_LONG_WORD, r"\1…\2", saying.text)[:_LONGEST]
    text = re.sub(_SENTENCE, _hide_sentence, text)
    if "&" in text:
        from html import unescape

        text = unescape(text)
    text = re.sub(r"\\[nrt]|\s+", " ", text).replace("’", "'").lower()
    text = text.replace("can't", "cannot").replace("n't", " not").translate(_QUOTES)
    place = f"[param={saying.param.lower()}] [code={saying.code.lower()}]".translate(_QUOTES)
    return f"{place} {text}"


def _hide_sentence(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 24, 0) : found.start()].lower()
    quoted = found[0][1:-1]
    if quoted.count(" ") < 4 or not before.strip() or re.search(_SPEAKS, before):
        return found[0]
    return " … "


_GENERIC = (
    r"(?:\W|\d|error|errors|code|status|http|from|provider|upstream|api|the|your|a|request|requests|is|was|has|bad|response"
    r"|returned|invalid|failed|unknown|capierror|with|no|body|and|message|an|argument|contains|openai_error|none|null"
    r"|param|params|parameter|parameters|incorrect|please|check|try|again|midstream|of|invalid_argument|format)*"
)
_HIDES = r"upstream request failed|upstream error|midstream error|provider returned error"


def _is_opaque(sayings: list[Saying], status: int | None) -> bool:
    """Whether a server refuses and does not say why."""
    texts = [flatten(saying).partition("] ")[2].partition("] ")[2] for saying in sayings]
    if not all(re.fullmatch(_GENERIC, text) for text in texts):
        return False
    if status in (400, 422):
        return True
    return any(re.search(_HIDES, text) for text in texts) and (status is None or status < 400 or status in (500, 502))


# --- what it names ------------------------------------------------------------------------------------------------

_ROOT = r"(?:messages|input|contents|context_management|thinking|output_config|tools|system)"
_PATH = rf"\b{_ROOT}(?:\.\w{{1,40}}|\.\*{{3}}|\[\w{{0,8}}\]){{1,12}}"
_STEP = r"\w+|\*{3}"
_INDEX = r"message (?:at )?(?:index|position) (\d{1,6})|message at (?:index|position) (\d{1,6})|at index (\d{1,6})"
_ITEM_ID = r"\b(?:rs|fc|msg|resp|call|toolu|tooluse|ctc|ws|cmp|item)_[\w-]{1,120}"
_NAME = r"[`'\"]([A-Za-z][\w.\[\]]{1,60})[`'\"]|parameter:? ([A-Za-z][\w.]{1,60})|: ([a-z]+[A-Z]\w{1,40})\b"
_LISTED = (
    r"(?i)(?:(?:supported|allowed|valid|accepted|permitted) (?:values|levels|types|efforts|options)(?: are| is)?|must be one of"
    r"|should be one of|expected one of|one of|allowed|please use|use effort|restricted to|supported)[: ]\s{0,2}"
    r"\(?\[?([^.;\])}\n]{1,200})"
)
_ONLY = (
    r"(?i)only (?:the default \()?([\d.]{1,8}?)\)? (?:value )?is (?:allowed|supported)|may only be set to ([\d.]{1,8})"
)
_WORD = r"[A-Za-z_][\w-]{0,30}|\d[\d.]{0,8}"
_NO_VALUE = frozenset(
    {"and", "or", "default", "below", "above", "the", "either", "a", "an", "for", "this", "model", "to", "is"}
)
_AT_LEAST = r"(?i)(?:at least|greater than or equal to|>=|minimum(?: of| is)?|no less than|between|integers from)\s{0,2}(\d[\d.]{0,12})"
_AT_MOST = (
    r"(?i)(?:at most|less than or equal to|<=|maximum(?: length| of| is)?|not greater than|no more than|and|to|>|limit of"
    r"|limit is)\s{0,2}(\d[\d.]{0,12})"
)


def _read_details(kind: RejectionKind, saying: Saying) -> Rejection:
    text = saying.text
    where = [_split_path(found[0]) for found in re.finditer(_PATH, f"{saying.param} {text}")]
    where += [("messages", int(found[1] or found[2] or found[3])) for found in re.finditer(_INDEX, text)]
    names = [saying.param] if saying.param else []
    names += [found[1] or found[2] or found[3] for found in re.finditer(_NAME, text)]
    low, high = re.search(_AT_LEAST, text), re.search(_AT_MOST, text)
    return Rejection(
        kind,
        text,
        tuple(dict.fromkeys(where)),
        tuple(dict.fromkeys(re.findall(_ITEM_ID, text))),
        tuple(dict.fromkeys(name for name in names if not re.fullmatch(_ITEM_ID, name))),
        _read_values(text),
        _to_number(low),
        _to_number(high),
    )


def _split_path(path: str) -> tuple[str | int, ...]:
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(_STEP, path))


def _read_values(text: str) -> tuple[str, ...]:
    if only := re.search(_ONLY, text):
        return ((only[1] or only[2]).rstrip("."),)
    listed = re.search(_LISTED, text)
    if listed is None:
        return ()
    words = re.findall(_WORD, re.sub(r"\([^)]*\)", "", listed[1]))
    return tuple(dict.fromkeys(word for word in words if word.lower() not in _NO_VALUE))[:16]


def _to_number(found: re.Match[str] | None) -> float | None:
    try:
        return None if found is None else float(found[1].rstrip("."))
    except ValueError:
        return None

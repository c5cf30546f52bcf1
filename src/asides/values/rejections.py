"""Why a provider refused a request: `classify(body)` finds the kind, `read_rejection(error)` also what it names.

By text before status: relays answer 429 or 502 for what is a bad request. Loaded when a provider refuses something.
Not here: the wordings (rejected_state, rejected_settings), and the wrappers around them (unwrap_error).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, cast, get_args

import msgspec

from asides.values.errors import ProviderError
from asides.values.refusal_details import Place, find_ids, find_limits, find_names, find_places, find_values
from asides.values.rejected_settings import SETTING_WORDINGS
from asides.values.rejected_state import STATE_WORDINGS
from asides.values.unwrap_error import PAGE, ErrorMessage, find_innermost, list_error_messages

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

STATE_KINDS: frozenset[RejectionKind] = frozenset(get_args(StateKind))
"""Something is wrong with what was sent back of earlier turns: repair the history."""
SETTING_KINDS: frozenset[RejectionKind] = frozenset(get_args(SettingKind))
"""Something is wrong with a setting of this request: change that one."""
KINDS: tuple[RejectionKind, ...] = (*get_args(StateKind), *get_args(SettingKind))


class Rejection(msgspec.Struct, frozen=True):
    """Why a provider refused, and what it names. Texts may quote the request, so the repr shows none."""

    kind: RejectionKind
    text: str = ""
    """The innermost message."""
    where: tuple[Place, ...] = ()
    """Paths in the request, such as `("messages", 3, "content", 0)`."""
    ids: tuple[str, ...] = ()
    """Items and tool calls: `rs_…`, `fc_…`, `msg_…`, `call_…`, `toolu_…`."""
    names: tuple[str, ...] = ()
    """Parameters, fields, functions and models, as the message spells them; the parameter beside it first."""
    values: tuple[str, ...] = ()
    """The values that would be accepted, if the message lists them."""
    at_least: float | None = None
    at_most: float | None = None
    counted: float | None = None
    """The tokens that the server counted, where they were too many."""
    source: str = ""
    since: str = ""
    """Who reported the wording, and when."""

    def __repr__(self) -> str:
        return f"Rejection({self.kind!r}, where={self.where!r})"


class Wording(msgspec.Struct, frozen=True):
    """One way in which servers refuse something."""

    kind: RejectionKind
    pattern: str
    needles: tuple[str, ...]
    source: str
    since: str


def read_wordings(text: str) -> tuple[Wording, ...]:
    """Read the wordings of a table: see rejected_state."""
    wordings: list[Wording] = []
    kind = since = source = ""
    needles: tuple[str, ...] = ()
    for line in text.splitlines():
        rest = line.lstrip()
        match len(line) - len(rest):
            case 0 if rest:
                kind, _, words = rest.partition(": ")
                needles = tuple(words.split())
            case 2:
                since, _, source = rest.partition(" ")
            case 4:
                wordings.append(Wording(cast(RejectionKind, kind), rest, needles, source, since))
            case 6:
                last = wordings[-1]
                wordings[-1] = msgspec.structs.replace(last, pattern=last.pattern + rest)
            case _:
                pass
    return tuple(wordings)


WORDINGS = (*read_wordings(STATE_WORDINGS), *read_wordings(SETTING_WORDINGS))
"""All wordings. The first that matches wins."""


# --- the kind -----------------------------------------------------------------------------------------------------


def classify(
    body: bytes | str = b"",
    *,
    message: str = "",
    code: str | None = None,
    param: str | None = None,
    status: int | None = None,
) -> RejectionKind | None:
    """Find the kind of a refusal; None if it is about neither reasoning state nor settings.

    `message`, `code` and `param` are for what is known apart from the body.
    """
    messages = list_error_messages(body, message, code or "", param or "")
    found = _find(messages)
    return _classify_unknown(messages, status) if found is None else found[0].kind


def explain(
    body: bytes, *, message: str, code: str | None = None, status: int | None = None
) -> tuple[RejectionKind | None, str]:
    """Find the kind of a refusal, and the message for people: a wrapper's words are followed by those inside it."""
    messages = list_error_messages(body, message, code or "")
    found = _find(messages)
    if found is None:
        kind, inner = _classify_unknown(messages, status), find_innermost(messages)
    else:
        kind, inner = found[0].kind, found[1]
    if inner is None or (message and not inner.depth) or (inner.text in message and "{" not in message):
        return kind, message
    is_wrapper = "{" not in message and 0 < len(message) < _LONGEST_WRAPPER and message.rstrip(".") not in inner.text
    return kind, f"{message.strip().rstrip('.:')}: {inner.text}" if is_wrapper else inner.text


def read_rejection(error: ProviderError) -> Rejection | None:
    """Read what a refusal names; None if it has no kind."""
    kind = error.kind
    if kind is None:
        return None
    messages = list_error_messages(error.body, error._said[0], error.code or "") or list_error_messages("", str(error))
    found = _find(messages)
    if found is None or found[0].kind != kind:
        innermost = find_innermost(messages)
        return Rejection(kind, "" if innermost is None else innermost.text)
    wording, message = found
    low, high, counted = find_limits(message.text)
    return Rejection(
        kind,
        message.text,
        find_places(message.text, message.param),
        find_ids(message.text),
        find_names(message.text, message.param),
        find_values(message.text),
        low,
        high,
        counted,
        wording.source,
        wording.since,
    )


def _find(messages: list[ErrorMessage]) -> tuple[Wording, ErrorMessage] | None:
    # The innermost first: wrappers speak of themselves, and the server behind them of the request.
    for message in sorted(messages, key=lambda message: -message.depth):
        wording = match_wording(flatten(message))
        if wording is not None:
            return wording, message
    return None


def match_wording(text: str) -> Wording | None:
    """Find the wording of a flattened text."""
    for wording in WORDINGS:
        if any(map(text.__contains__, wording.needles)) and re.search(wording.pattern, text):
            other = _MISTAKEN.get(wording.kind)
            return None if other is not None and re.search(other, text) else wording
    return None


# --- texts --------------------------------------------------------------------------------------------------------

_LONGEST_WRAPPER = 120
_LONGEST = 4000
# Ciphertexts.
_LONG_WORD = r"(\S{80})\S{80,}(\S{20})"
# What reads like a kind and is none: too many tokens in a time, and not in a request; input that a model does not take.
_RATE = r"tokens per (?:min|day|hour)|\btpm\b|rate.?limit|quota|throttl|please wait|too many requests"
_MEDIA = r"\b(?:image|picture|audio|video|pdf|vision)"
_MISTAKEN: dict[RejectionKind, str] = {"unknown_param": _MEDIA, "context_length": _RATE}
_QUOTES = str.maketrans("", "", "\"'`´‘’“”«»\\")
# A quoted sentence is the user's own: what servers quote themselves are names and values.
_SENTENCE = (
    r"(?<![\w\"'`])(?:\"(?=\S)([^\"\n]{30,2000})\"|'(?=\S)([^'\n]{30,2000})'(?!\w)|`(?=\S)([^`\n]{30,2000})`"
    r"|“([^”]{30,2000})”)"
)
_SPEAKS = r"(?:error|errors|response|body|said|returned|upstream|exception|failed)\W{0,4}$"


def flatten(message: ErrorMessage) -> str:
    """The text that patterns match: the parameter and the code, then the message in lower case and without quotes."""
    text = re.sub(_LONG_WORD, r"\1…\2", message.text)[:_LONGEST]
    text = re.sub(_SENTENCE, _hide_sentence, text)
    if "&" in text:
        from html import unescape

        text = unescape(text)
    text = re.sub(r"\\[nrt]|\s+", " ", text).replace("’", "'").lower()
    text = text.replace("can't", "cannot").replace("n't", " not").translate(_QUOTES)
    place = f"[param={message.param.lower()}] [code={message.code.lower()}]".translate(_QUOTES)
    return f"{place} {text}"


def _hide_sentence(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 24, 0) : found.start()].lower()
    quoted = found[0][1:-1]
    if quoted.count(" ") < 4 or not before.strip() or re.search(_SPEAKS, before):
        return found[0]
    return " … "


# Of these words alone a refusal says nothing.
_EMPTY_WORDS = frozenset(
    (
        "a again an and api api_error argument bad bad_request bad_response_status_code be body capierror check "
        "code complete completed contains could details docs documentation encountered error errors failed for "
        "format from has http in incorrect invalid invalid_argument is issue message midstream no none not null "
        "occurred of openai_error param parameter parameters params please problem process processed processing "
        "provider request requests response returned see something sorry status the to try unable unexpected "
        "unknown upstream was we went while with wrong your "
    ).split()
)
# Codes that say enough.
_TELLING_CODE = r"key|auth|quota|rate|model|balance|billing|credit|permission|not_found|filter|policy|safety|overload"
_HIDES = r"upstream (?:request failed|error)|midstream error"


def _classify_unknown(messages: list[ErrorMessage], status: int | None) -> RejectionKind | None:
    """The kind of a refusal without any known wording: opaque if the server refuses and does not say why."""
    if any(message.code == PAGE or re.search(_TELLING_CODE, message.code.lower()) for message in messages):
        return None
    texts = [message.text.lower() for message in messages]
    if not all(_EMPTY_WORDS.issuperset(re.findall(r"[^\W\d]+", text)) for text in texts):
        return None
    hides = any(re.search(_HIDES, text) for text in texts) and (status is None or status < 400 or status in (500, 502))
    return "opaque_provider_error" if hides or status in (400, 422) else None

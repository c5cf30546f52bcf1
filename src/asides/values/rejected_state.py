"""How servers refuse what is sent back of earlier turns: one row per wording, with its source and its date.

The patterns match a text as `rejections.flatten` makes it: `[param=…] [code=…] ` and the message in lower case, without
quotes, "n't" as " not". The first row that matches wins, so what is more specific stands before what is less.
Patterns are linear: every gap is bounded. Not here: settings of a request (rejected_settings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asides.values.rejections import Row

STATE_ROWS: tuple[Row, ...] = (
    # --- thinking of Claude: signatures ---
    (
        "thinking_prefix_mismatch",
        r"signature.{0,160}bound to (?:a different|another) (?:conversation|prefix)"
        r"|thinking.{0,80}bound to (?:a different|another) (?:conversation|prefix)"
        r"|\[code=[^\]]{0,200}prefix_(?:binding_)?mismatch",
        "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        "2026-10",
    ),
    (
        "binding_control_unavailable",
        r"block_binding[\w.]{0,60}:? .{0,40}(?:not permitted|not supported|unsupported|unknown|unexpected|requires)"
        r"|(?:unknown|unsupported|unrecognized|unexpected|extra) \w{1,12}.{0,40}block_binding",
        "https://platform.claude.com/docs/en/api/errors",
        "2026-09",
    ),
    (
        "compaction_signature_mismatch",
        r"compaction_content_mismatch|compaction block.{0,80}(?:signature|modified|does not match)"
        r"|invalid signature in .{0,10}compaction",
        "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        "2026-09-26",
    ),
    (
        "thinking_signature_missing",
        r"signature: (?:field required|missing)"
        r"|(?:thinking|reasoningtext)\.signature.{0,60}(?:required|missing|not be null|should be a valid string)"
        r"|thinking blocks?.{0,40}(?:missing|without|lacks?|must (?:have|include|contain)) .{0,12}signature"
        r"|missing .{0,12}signature .{0,12}thinking block",
        "https://github.com/justlovemaki/AIClient2API/issues/437",
        "2026-04-03",
    ),
    (
        "thinking_signature_invalid",
        r"(?:invalid|corrupt\w{0,3}|malformed|incorrect|wrong|unverifiable|expired) (?:signature|data) (?:in|for|of|on)"
        r" .{0,12}(?:thinking|reasoning)"
        r"|(?:thinking|reasoning(?:text)?)(?: blocks?|\.| content)? ?signature.{0,60}"
        r"(?:invalid|not valid|not be verified|verification failed|not match|mismatch|expired|corrupt)"
        r"|invalid (?:thinking|reasoning)(?: block)? signature",
        "https://github.com/anthropics/claude-code/issues/10627",
        "2025-10-30",
    ),
    # --- thinking of Claude: blocks ---
    (
        "thinking_text_missing",
        r"thinking\.thinking: (?:field required|missing|input should be|none)|must contain thinking\b"
        r"|reasoningtext\.text.{0,60}(?:null|required|missing|blank|empty|length)"
        r"|thinking block.{0,40}(?:missing|without|must (?:have|include)) .{0,12}(?:thinking|text)\b(?! signature)",
        "https://github.com/LibreChat-AI/agents/pull/279",
        "2026-06-30",
    ),
    (
        "thinking_block_modified",
        r"thinking.{0,40}blocks?.{0,80}(?:cannot|can not|must not|may not|were|was|have been|has been) (?:be )?"
        r"(?:modified|changed|edited|altered)"
        r"|thinking.{0,40}blocks?.{0,80}must (?:remain|be kept|stay|be returned).{0,20}(?:exactly )?(?:as|unmodified|unchanged)",
        "https://github.com/anthropics/claude-code/issues/63203",
        "2026-05-28",
    ),
    (
        "thinking_must_lead",
        r"expected (?:a )?thinking(?: or redacted_thinking)?(?: block)?s?,? but (?:found|got)"
        r"|final assistant message must (?:start|begin) with .{0,12}thinking",
        "https://github.com/deepset-ai/haystack-core-integrations/issues/2146",
        "2025-08-04",
    ),
    (
        "thinking_order",
        r"any thinking blocks?,? .{0,12}first (?:content )?block must be|first (?:content )?block must be .{0,6}thinking"
        r"|thinking blocks? must (?:come|be placed|appear|precede).{0,20}(?:first|before|start|beginning)",
        "https://github.com/anthropics/claude-code/issues/20705",
        "2026-01-25",
    ),
    (
        "thinking_final_block",
        r"(?:final|last) (?:content )?block .{0,60}(?:cannot|can not|must not|may not) be .{0,6}(?:redacted_)?thinking"
        r"|assistant messages? (?:cannot|must not) end with .{0,6}(?:redacted_)?thinking",
        "https://github.com/tailcallhq/forgecode/issues/2107",
        "2025-12-11",
    ),
    (
        "thinking_present_while_disabled",
        r"(?:when|while|if|since|because) thinking is (?:disabled|not enabled|off|turned off).{0,120}"
        r"(?:cannot|must not|may not|should not|not) (?:contain|include|have|be)"
        r"|thinking blocks? .{0,60}(?:not (?:allowed|permitted|supported|accepted)|cannot be).{0,30}"
        r"(?:when|while|unless|without) thinking",
        "https://github.com/tailcallhq/forgecode/issues/1853",
        "2025-11-07",
    ),
    # --- items of the Responses API ---
    (
        "reasoning_item_orphaned",
        r"without (?:its|the|a) required following item|reasoning item.{0,80}(?:not followed by|must be followed by)",
        "https://github.com/continuedev/continue/issues/8933",
        "2025-11-28",
    ),
    (
        "reasoning_item_missing",
        r"without (?:its|the|a) required reasoning item|missing (?:its|the) required reasoning item",
        "https://github.com/mastra-ai/mastra/issues/8738",
        "2025-10-11",
    ),
    (
        "item_not_persisted",
        r"items are not persisted|item with id \S{1,90} (?:was )?not found"
        r"|referenced \w{0,12} ?item .{0,90}(?:not found|expired|does not exist)"
        r"|\bitem (?:id )?(?:rs|msg|fc|ctc|ws)_\S{0,90} (?:was not found|not found|does not exist|has expired)",
        "https://github.com/can1357/oh-my-pi/issues/41",
        "2026-02-12",
    ),
    (
        "reasoning_item_id_invalid",
        r"input\[[^\]]{0,8}\]\.id: ?.{0,120}(?:expected an id|too long|invalid|must (?:begin|start)|maximum length)"
        r"|expected an id that (?:begins|starts) with",
        "https://github.com/diegosouzapw/OmniRoute/issues/224",
        "2026-03-06",
    ),
    (
        "reasoning_item_duplicate",
        r"duplicate (?:\w{1,12} )?items? (?:found )?(?:with|for|id)|items? with (?:the )?(?:same|duplicate) id",
        "https://github.com/NousResearch/hermes-agent/pull/7939",
        "2026-04-11",
    ),
    (
        "reasoning_content_nonempty",
        r"input\[[^\]]{0,8}\]\.content: array too long.{0,40}maximum length 0\b"
        r"|reasoning.{0,40}content.{0,20}must be (?:an )?empty",
        "https://github.com/musistudio/claude-code-router/issues/1783",
        "2026-09-10",
    ),
    # --- encrypted reasoning and stored responses ---
    (
        "encrypted_reasoning_wrong_account",
        r"encrypted.{0,160}(?:organization|project|account|tenant|workspace)(?:_id)? (?:did|does|do) not match"
        r"|encrypted.{0,160}(?:different|another|other) (?:organization|project|account|tenant|workspace)",
        "https://github.com/openai/codex/issues/13724",
        "2026-03-06",
    ),
    (
        "encrypted_reasoning_invalid",
        r"encrypted[_ ](?:content|reasoning)(?: for item)?(?: \S{1,400}){0,2} (?:could not|cannot|can not|failed to) be?"
        r" ?(?:verified|decrypted|parsed|decoded|validated)"
        r"|invalid_encrypted_content|(?:invalid|corrupt\w{0,3}|malformed) encrypted[_ ](?:content|reasoning)"
        r"|(?:could not|cannot|failed to|unable to) (?:decrypt|decode|verify|parse) .{0,40}(?:encrypted|compaction|reasoning)"
        r"|encrypted[_ ]content.{0,60}(?:is invalid|not valid|verification failed|decryption failed)",
        "https://github.com/openai/openai-agents-python/issues/2063",
        "2025-11-10",
    ),
    (
        "encrypted_reasoning_unsupported",
        r"encrypted[_ ](?:content|reasoning) (?:is|are) (?:not (?:supported|available|allowed|enabled)|unsupported)"
        r"|(?:not support|unsupported|invalid value|unknown|unrecognized).{0,60}reasoning\.encrypted_content"
        r"|reasoning\.encrypted_content.{0,60}(?:not (?:supported|available|allowed|enabled)|unsupported|only (?:supported|available))",
        "https://github.com/pydantic/pydantic-ai/issues/2915",
        "2025-09-15",
    ),
    (
        "previous_response_missing",
        r"previous_response_not_found|previous[_ ]response.{0,160}(?:not (?:be )?found|does not exist|has expired)",
        "https://developers.openai.com/api/docs/guides/websocket-mode",
        "2026",
    ),
    (
        "previous_response_forbidden",
        r"previous[_ ]response.{0,120}(?:cannot|can not|not (?:allowed|supported|available|permitted|enabled)|unsupported"
        r"|zero data retention)|(?:unsupported|unknown|unrecognized) \w{1,12}.{0,20}previous_response_id",
        "https://github.com/can1357/oh-my-pi/issues/2341",
        "2026-06-12",
    ),
    # --- thought signatures of Gemini ---
    (
        "thought_signature_missing",
        r"(?:missing|without|lacks?|needs?|requires?) (?:a |an |its |the |any )?(?:valid )?thought[_ ]?signature"
        r"|thought[_ ]?signatures? (?:is|are|was|were|must be) (?:missing|required|not (?:provided|found|set)|provided|present)",
        "https://github.com/google-gemini/gemini-cli/issues/12841",
        "2025-11",
    ),
    (
        "thought_signature_invalid",
        r"(?:corrupt\w{0,3}|invalid|malformed|incompatible|unrecognized|wrong|expired) thought[_ ]?signature"
        r"|thought[_ ]?signature.{0,60}(?:not valid|invalid|corrupt|not be|failed|mismatch|not match|expired)",
        "https://github.com/google-gemini/gemini-cli/issues/13467",
        "2025-11-20",
    ),
    # --- reasoning as a field of messages: wanted by some, refused by others; the verb decides ---
    (
        "reasoning_content_required",
        r"(?:reasoning|thinking)[\w\[\].]{0,24} .{0,40}must be (?:passed|sent|provided|included|returned)(?: back)?"
        r"|missing (?:the )?(?:required )?reasoning(?:_content|_text|_details)?\b.{0,20}(?:field|in |from |at )"
        r"|reasoning_(?:content|text|details)(?: field)? (?:is|are|was) (?:missing|required|not (?:found|provided|present))",
        "https://github.com/mnfst/modelparams.dev/issues/29",
        "2026-05-25",
    ),
    (
        "reasoning_field_rejected",
        r"messages?\b\S{0,60} ?:?.{0,80}property \S{0,60}(?:reasoning|thinking)\w{0,10} is (?:unsupported|not supported)"
        r"|property \S{0,60}(?:reasoning_content|reasoning_details|reasoning_text) is (?:unsupported|not supported)"
        r"|messages?[.\[][^ ]{0,60}(?:reasoning|thinking)\w{0,10}:? .{0,40}"
        r"(?:unsupported|not supported|not permitted|not allowed|unexpected|unknown|unrecognized)"
        r"|cannot contain reasoning content|support the reasoningcontent\b"
        r"|(?:extraneous key|unknown (?:field|parameter|name)|unrecognized \w{1,12}|unexpected \w{1,12}|extra \w{1,12}).{0,60}"
        r"(?:reasoning_?content|reasoning_details|reasoning_text|thinking_blocks)"
        r"|(?:reasoning_?content|reasoning_details|reasoning_text|thinking_blocks)\b.{0,40}"
        r"(?:not supported|unsupported|not permitted|not allowed|unexpected)",
        "https://github.com/NousResearch/hermes-agent/issues/11089",
        "2026-04-16",
    ),
    # --- tool calls and their results ---
    (
        "tool_result_missing",
        r"tool_use ids? (?:were|was) found without tool_result|no tool (?:output|result)s? found for"
        r"|number of function response parts|must be followed by tool messages|not have response messages"
        r"|insufficient tool messages|expected toolresult blocks"
        r"|not the same number of (?:function|tool) calls and responses"
        r"|(?:tool|function) calls?.{0,60}(?:missing|without|no) (?:a |its |their |corresponding )?(?:tool )?(?:result|output|response)",
        "https://github.com/github/copilot-cli/issues/330",
        "2025-10-16",
    ),
    (
        "tool_result_orphaned",
        r"unexpected tool_use_id found in tool_result|no tool call found for"
        r"|tool results? tool id.{0,80}not found|tool_call_id.{0,80}(?:is |was )?not found"
        r"|role tool must be a response to|toolresult blocks.{0,80}exceeds the number of tooluse"
        r"|unexpected tool call id .{0,60}tool results?|tool_result blocks? .{0,60}(?:without|no) .{0,20}tool_use"
        r"|tool message.{0,60}must (?:follow|be preceded|have|respond)",
        "https://github.com/decocms/studio/issues/1803",
        "2025-11-07",
    ),
    (
        "tool_turn_order",
        r"function (?:call|response) turn comes? immediately after"
        r"|unexpected role \w{1,12} after role tool|unexpected role tool after role"
        r"|tool (?:messages?|results?|calls?) must (?:immediately|directly) (?:follow|precede|come)",
        "https://github.com/google-gemini/gemini-cli/issues/11814",
        "2025-10",
    ),
    (
        "tool_arguments_invalid",
        r"invalid function arguments json|tool_?use\.input.{0,40}(?:should be a valid dict|is invalid|must be)"
        r"|(?:function|tool|tool_calls?)[\w.\[\] ]{0,40}arguments.{0,40}(?:invalid|not valid|not a valid|must be).{0,20}"
        r"(?:json|object|dict)",
        "https://github.com/earendil-works/pi/issues/5468",
        "2026-06-19",
    ),
    # --- the shape of the history ---
    (
        "empty_content",
        r"text field in the contentblock .{0,60}is blank|content field in the message .{0,60}is empty"
        r"|at least one content element|text content blocks must (?:be non-empty|contain non-whitespace)"
        r"|must have non-empty content|messages?\b.{0,60}content.{0,30}(?:cannot|must not|can not|should not) be empty"
        r"|role assistant must not be empty|content or tool_calls must be set|messages?\b.{0,60}must not be empty"
        r"|must include at least one parts field|parts(?: field)? (?:must|should) not be empty",
        "https://github.com/aws-samples/bedrock-engineer/issues/8",
        "2025-02-25",
    ),
    (
        "role_alternation",
        r"roles must alternate|must alternate between user|successive (?:user|assistant)"
        r"|multi-?turn requests alternate|conversation must start with a user message"
        r"|(?:consecutive|adjacent) (?:user|assistant|messages).{0,40}(?:not (?:allowed|supported)|same role)",
        "https://github.com/suitenumerique/conversations/issues/197",
        "2025-12-05",
    ),
    (
        "system_position",
        r"system messages? must (?:be|come|appear) .{0,12}(?:beginning|first|start)|invalid message role: system"
        r"|unexpected role system|system role (?:is )?not supported|system messages? (?:are|is) only (?:allowed|supported)"
        r"|(?:only|first) .{0,30}messages? (?:can|may) (?:be|have) .{0,12}system",
        "https://github.com/nashsu/llm_wiki/issues/45",
        "2026-04-21",
    ),
)

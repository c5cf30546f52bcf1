"""How servers refuse what is sent back of earlier turns: every known wording, with its date and its source.

    kind: words             one of these words is in every such text; the patterns of others are not even tried
      date source           who saw the wording, and when
        pattern             in the text as `rejections.flatten` makes it
          more              the rest of a long pattern

That text is `[param=…] [code=…] ` and the message in lower case, without quotes, with "not" for "n't". The first kind
that matches wins, so what is more specific stands before what is less. Every gap in a pattern is bounded, so a hostile
text costs little more than a friendly one. Not here: settings of a request (rejected_settings, tried after these).
"""

from __future__ import annotations

STATE_WORDINGS = r"""
thinking_prefix_mismatch: bound prefix_
  2026-10 https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
    (?:signature|thinking|block).{0,160}bound to (?:a different|another) (?:conversation|prefix|context)
    \[code=[^\]]{0,200}(?:prefix_(?:binding_)?mismatch|thinking_block_bound)

binding_control_unavailable: block_binding prefix_mismatch_behavior binding-controls
  2026-09 https://platform.claude.com/docs/en/api/errors
    (?:block_binding|prefix_mismatch_behavior)[\w.]{0,60}:? .{0,40}(?:not (?:permitted|supported|allowed)|un
      (?:supported|known|expected))
    (?:unknown|unsupported|unrecognized|unexpected|extra|invalid) \w{1,12}.{0,40}(?:block_binding
      |prefix_mismatch_behavior)
    (?:unexpected|unknown|unsupported|invalid) .{0,60}thinking-binding-controls
    block_binding.{0,60}requires? .{0,40}(?:beta|header)

compaction_signature_mismatch: compaction
  2026-09-26 https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
    compaction_content_mismatch
    compaction block.{0,80}(?:signature|modified|does not match|altered|changed)
    invalid (?:signature|content) (?:in|for|of) .{0,10}compaction

thinking_signature_missing: signature
  2026-04-03 https://github.com/justlovemaki/AIClient2API/issues/437
    signature: (?:field required|missing|is required)
    (?:thinking|reasoningtext)\.signature.{0,80}(?:required|missing|not be null|should be a valid string)
  2026-09 https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
    thinking blocks?.{0,40}(?:missing|without|lacks?|must (?:have|include|contain|be returned with)) .{0,12}signature
    (?:missing|empty|no|without a?) ?signature (?:in|for|of|on) .{0,12}(?:thinking|reasoning)
    signature .{0,12}(?:is )?(?:missing|required|empty).{0,20}(?:thinking|reasoning)

thinking_signature_invalid: signature redacted_thinking thinking
  2025-10-30 https://github.com/anthropics/claude-code/issues/10627
    (?:invalid|corrupt\w{0,3}|malformed|incorrect|wrong|bad|expired) (?:signature|data) (?:in|for|of|on) .{0,12}
      (?:thinking|reasoning)
  2026-09-29 https://docs.apiyi.com/en/faq/claude-thinking-signature-invalid
    (?:thinking|reasoningtext|reasoning)(?: blocks?|\.| content)? ?signature.{0,60}(?:in|not )valid
    (?:thinking|reasoningtext|reasoning)(?: blocks?|\.| content)? ?signature.{0,60}(?:not be verified|verification
      |mismatch|expired|corrupt)
    (?:thinking|reasoningtext|reasoning)(?: blocks?|\.| content)? ?signature.{0,60}(?:not match|not recogni|malformed)
    (?:invalid|corrupted) (?:redacted_)?(?:thinking|reasoning)(?: block)? (?:signature|data)
    signature.{0,40}(?:failed|could not be|cannot be) (?:verif|validat)\w{0,8}.{0,60}thinking
  2026 public file id 70082394857
    ^\S{0,40} \S{0,120} (?:messages\S{0,40} )?invalid (?:redacted_)?thinking block\.?$

thinking_text_missing: thinking reasoningtext
  2026-06-30 https://github.com/LibreChat-AI/agents/pull/279
    thinking\.thinking:? (?:field required|missing|input should be|none|is required)
    content\S{0,20}\.thinking: field required
  2026-05-30 public file ids 55217549297, 54604720532 (each thinking block must contain thinking)
    thinking blocks? must contain (?:non-whitespace |non-empty )?(?:thinking|text)
    thinking block (?:is|was|cannot be|must not be) empty
  2026-06-22 https://github.com/danny-avila/LibreChat/pull/13888
    reasoningtext\.text.{0,60}(?:null|required|missing|blank|empty|length)
    text field in the reasoning\w{0,12} .{0,60}(?:blank|empty)

thinking_block_modified: thinking
  2026-05-28 https://github.com/anthropics/claude-code/issues/63203
    thinking.{0,40}blocks?.{0,80}(?:cannot|can not|must not|may not|were|was|have been|has been) (?:be )?(?:modifi
      |chang|edit|alter)ed
  2026-09 https://platform.claude.com/docs/en/build-with-claude/thinking
    thinking.{0,40}blocks?.{0,80}must (?:remain|be kept|stay|be returned|be passed back) .{0,12}(?:as |unmodified
      |unchanged|exactly)

thinking_must_lead: thinking
  2025-08-04 https://github.com/deepset-ai/haystack-core-integrations/issues/2146
    expected (?:a )?thinking(?: or redacted_thinking)?(?: block)?s?,? but (?:found|got)
    final assistant message must (?:start|begin) with .{0,12}thinking
    (?:tool_use|assistant) .{0,60}must be preceded by .{0,12}thinking block

thinking_order: thinking
  2026-01-25 https://github.com/anthropics/claude-code/issues/20705
    any thinking blocks?,? .{0,12}first (?:content )?block must be
    first (?:content )?block must be .{0,6}thinking
    thinking blocks? must (?:come|be placed|appear|be first|precede).{0,20}(?:first|before|start|beginning|message
      |other)

thinking_final_block: thinking
  2025-12-11 https://github.com/tailcallhq/forgecode/issues/2107
    (?:final|last) (?:content )?block .{0,60}(?:cannot|can not|must not|may not) be .{0,6}(?:redacted_)?thinking
    assistant messages? (?:cannot|must not|may not) end with .{0,6}(?:redacted_)?thinking

thinking_present_while_disabled: thinking
  2025-11-07 https://github.com/tailcallhq/forgecode/issues/1853
    (?:when|while|if|since|because) thinking is (?:disabled|not enabled|off|turned off).{0,120}(?:cannot|must not
      |may not|not) (?:contain|include|have)
    (?:messages?|content).{0,60}(?:cannot|must not|may not) (?:contain|include|have) .{0,30}thinking.{0,40}(?:when
      |while|unless|without) thinking
    thinking blocks? .{0,60}(?:not (?:allowed|permitted|supported|accepted)|cannot be).{0,30}(?:when|while|unless
      |without) thinking

reasoning_item_orphaned: following followed
  2025-11-28 https://github.com/continuedev/continue/issues/8933
    without (?:its|the|a) required following item
    reasoning.{0,12} item.{0,80}(?:not followed by|must be followed by)

reasoning_item_missing: reasoning
  2025-10-11 https://github.com/mastra-ai/mastra/issues/8738
    without (?:its|the|a) required reasoning item
    missing (?:its|the) required reasoning item

item_not_persisted: item
  2026-02-12 https://github.com/can1357/oh-my-pi/issues/41
    items are not persisted
    item (?:with )?id \S{1,90} (?:was |is )?not found
  2026-09-11 https://github.com/can1357/oh-my-pi/pull/11791
    referenced \w{0,12} ?item .{0,90}(?:not found|expired|does not exist)
    \bitem (?:rs|msg|fc|ctc|ws)_\S{0,90} (?:was not found|not found|does not exist|has expired)

reasoning_item_id_invalid: .id that begins that starts
  2026-03-06 https://github.com/diegosouzapw/OmniRoute/issues/224
    expected an id that (?:begins|starts) with
  2026-09-08 https://github.com/mweinbach/open-grok/pull/23
    input\[[^\]]{0,8}\]\.id: ?.{0,120}(?:too long|too short|invalid|must (?:begin|start)|maximum length|empty string)

reasoning_item_duplicate: duplicate same id
  2026-04-11 https://github.com/NousResearch/hermes-agent/pull/7939
    duplicate (?:\w{1,12} )?items? (?:found )?(?:with|for|id)
    items? with (?:the )?(?:same|duplicate) id

reasoning_content_nonempty: content
  2026-09-10 https://github.com/musistudio/claude-code-router/issues/1783
    input\[[^\]]{0,8}\]\.content: array too long.{0,40}maximum length 0\b
    reasoning.{0,40}content.{0,20}must be (?:an )?empty

encrypted_reasoning_wrong_account: encrypted
  2026-03-06 https://github.com/openai/codex/issues/13724
    encrypted.{0,240}(?:organization|project|account|tenant|workspace)(?:_id)? (?:did|does|do) not match
    encrypted.{0,240}(?:different|another|other) (?:organization|project|account|tenant|workspace)

encrypted_reasoning_invalid: encrypted compaction decrypt
  2025-11-10 https://github.com/openai/openai-agents-python/issues/2063
    encrypted[_ ](?:content|reasoning)(?: for item)?(?: \S{1,400}){0,4} (?:could not|cannot|can not) be (?:verif
      |decrypt|pars|decod|validat)
    \[code=[^\]]{0,120}invalid_encrypted_content|invalid_encrypted_content
    (?:invalid|corrupt\w{0,3}|malformed) encrypted[_ ](?:content|reasoning)
    encrypted[_ ]content.{0,60}(?:is (?:invalid|malformed|corrupt)|not valid|verification failed|decryption failed)
  2026-07-18 https://github.com/Wei-Shaw/sub2api/issues/4535
    (?:could not|cannot|failed to|unable to) (?:decrypt|decode|verify|parse) .{0,40}(?:encrypted|compaction|reasoning)

encrypted_reasoning_unsupported: encrypted
  2025-09-15 https://github.com/pydantic/pydantic-ai/issues/2915
    encrypted[_ ](?:content|reasoning) (?:is|are) (?:not (?:supported|available|allowed|enabled)|unsupported)
    (?:not support|unsupported|invalid value|unknown|unrecognized).{0,60}(?:reasoning\.)?encrypted_content
    encrypted_content.{0,60}(?:not (?:supported|available|allowed|enabled)|unsupported|only (?:supported|available))

previous_response_missing: previous response
  2026 https://developers.openai.com/api/docs/guides/websocket-mode
    previous_response_not_found
    previous[_ ]response.{0,160}(?:not (?:be )?found|does not exist|has expired)
  2026-11 generalised from the wordings above
    \bresponse(?: with)? id ?=? ?\S{0,90} (?:was |is )?not found

previous_response_forbidden: previous
  2026-06-12 https://github.com/can1357/oh-my-pi/issues/2341
    previous[_ ]response.{0,120}(?:cannot|can not|zero data retention|not (?:allowed|supported|available|permitted
      |enabled)|unsupported)
  2026 public file ids 54605383806, 52293534638 (Unsupported parameter: previous_response_id)
    (?:unsupported|unknown|unrecognized) \w{1,12}.{0,20}previous_response_id
    previous_response_id.{0,20}(?:extra|not permitted)

thought_signature_missing: thought preserved
  2025-11 https://ai.google.dev/gemini-api/docs/thought-signatures
    (?:missing|without|lacks?|needs?|requires?|must (?:have|include|contain)) (?:a |an |its |the |any )?
      (?:valid )?thought[_ ]?signature
    thought[_ ]?signatures? (?:is|are|was|were|must be) (?:missing|required|not (?:provided|found|set)|provided
      |present|included)
  2025-12-19 https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
    reasoning[_ ]details (?:to be|must be|be) preserved

thought_signature_invalid: thought
  2025-11-20 https://github.com/google-gemini/gemini-cli/issues/13467
    (?:corrupt\w{0,3}|invalid|malformed|incompatible|unrecognized|wrong|expired) (?:\w{1,12} )?thought[_ ]?signature
    thought[_ ]?signature.{0,60}(?:not valid|invalid|corrupt|not be|failed|mismatch|not match|expired)

reasoning_content_required: passed back missing required must be provided reasoning
  2026-05-25 https://github.com/mnfst/modelparams.dev/issues/29
    (?:reasoning|thinking)[\w\[\].]{0,24} .{0,40}must be (?:passed|sent|provided|included|returned|present)(?: back)?
  2025-12 https://github.com/CherryHQ/cherry-studio/issues/11751
    missing (?:the )?(?:required )?reasoning(?:_content|_text|_details)?\b.{0,20}(?:field|in |from |at )
  2026-04-23 https://github.com/MoonshotAI/kimi-agent-sdk/issues/169
    reasoning_(?:content|text|details)(?: field)? (?:is|are|was) (?:missing|required|not (?:found|provided|present)
      |empty)
    (?:missing|without) (?:the )?(?:required )?(?:field |property )?reasoning_content

reasoning_field_rejected: reasoning thinking
  2026-11 generalised (OpenAI: Reasoning input items can only be provided to a reasoning or computer use model)
    reasoning (?:input )?items (?:can only be provided|are not supported)
  2026-04-16 https://github.com/NousResearch/hermes-agent/issues/11089
    messages?\b\S{0,60} ?:?.{0,80}property \S{0,60}(?:reasoning|thinking)\w{0,10} is (?:unsupported|not supported)
  2026-05-19 https://github.com/Kilo-Org/kilocode/issues/10375
    property \S{0,60}(?:reasoning_content|reasoning_details|reasoning_text) is (?:unsupported|not supported)
  2025-08-14 https://github.com/vercel/ai/pull/8057
    messages?[.\[][^ ]{0,60}(?:reasoning|thinking)\w{0,10}:? .{0,80}(?:unsupported|not (?:supported|permitted|allowed)
      |un(?:expected|known|recognized))
  2025-03-13 https://github.com/langchain-ai/langchain-aws/issues/401
    cannot contain reasoning content
  2025-08-16 https://github.com/strands-agents/harness-sdk/pull/682
    support the reasoningcontent\b
    extraneous key .{0,20}reasoningcontent
  2026-04-22 https://github.com/NousResearch/hermes-agent/pull/11390
    (?:un(?:known|recognized|expected|supported)|extra|invalid) (?:request )?\w{1,12}.{0,60}(?:reasoning_?content
      |reasoning_details|reasoning_text|thinking_blocks)
    (?:reasoning_?content|reasoning_details|reasoning_text|thinking_blocks)\b.{0,40}(?:not (?:supported|permitted
      |allowed|accepted)|unsupported|unexpected)
  2026-11 generalised from the wordings above
    remove (?:the )?reasoning_content|reasoning_content is an intermediate result
    (?:unknown|unrecognized|unsupported) \w{1,12}:? messages\S{0,40}(?:reasoning|thinking)
    (?:unknown variant|invalid value:|messages\S{0,40} input tag) (?:redacted_)?(?:thinking|reasoning(?:_text
      |_content)?)\b

tool_result_missing: tool function
  2025-10-16 https://github.com/github/copilot-cli/issues/330
    tool_use ids? (?:were|was) found without tool_result
  2026-03-12 https://github.com/symgraph/GhidrAssist/issues/78
    no tool (?:output|result)s? found for
  2026-01-21 https://github.com/google-gemini/gemini-cli/issues/17208
    number of function response parts
  2026-03-03 https://github.com/TurixAI/TuriX-CUA/issues/15
    must be followed by tool messages|not have response messages
    tool_call_ids? .{0,40}(?:not have|without|no|missing) .{0,12}(?:response|result|output)
    insufficient tool messages
  2026-02-24 https://github.com/agno-agi/agno/issues/6698
    expected toolresult blocks
    number of toolresult blocks .{0,80}(?:less|fewer|does not match|not equal)
  2025-01-19 https://github.com/camel-ai/camel/issues/1467
    not the same number of (?:function|tool) calls and responses
  2026-11 generalised from the wordings above
    (?:tool|function) calls?.{0,60}(?:missing|without|have no|has no) (?:a |its |their |any )?
      (?:corresponding |matching )?(?:tool )?(?:result|output|response)

tool_result_orphaned: tool
  2025-11-07 https://github.com/decocms/studio/issues/1803
    unexpected tool_use_id found in tool_result
    tool_result blocks? .{0,60}(?:without|no) .{0,20}tool_use
  2026-02-01 https://github.com/continuedev/continue/issues/10092
    no tool call found for
  2026-02-11 https://github.com/MiniMax-AI/MiniMax-M2/issues/76
    tool results? tool id.{0,80}not found
  2026 public file ids 55070442772, 37433675532 (tool_call_id  is not found)
    tool_call_id.{0,80}(?:is |was )?not found
  2025-03-08 https://github.com/FoundationAgents/OpenManus/issues/227
    role tool must be a response to
    tool messages? .{0,60}(?:must follow|must be preceded|must respond|without a preceding|no preceding)
  2026 public file ids 52488420009, 68676815633
    toolresult blocks.{0,80}exceeds the number of tooluse
  2026-11 generalised from the wordings above
    unexpected tool call id .{0,60}tool results?
    tool call id.{0,80}(?:is |was )?not found

tool_turn_order: turn role tool
  2025-10 https://github.com/google-gemini/gemini-cli/issues/11814
    function (?:call|response) turn (?:comes?|must come|should come) immediately after
  2025-07-22 https://github.com/charmbracelet/crush/issues/279
    unexpected role \w{1,12} after role tool|unexpected role tool after role
  2024-03-15 https://github.com/mistralai/mistral-inference/issues/135
    unexpected role (?:roleenum\.)?tool\b
  2026-11 generalised from the wordings above
    tool (?:messages?|results?|calls?) must (?:immediately|directly) (?:follow|precede|come)

tool_arguments_invalid: arguments input mapping
  2026-06-19 https://github.com/earendil-works/pi/issues/5468
    invalid function arguments json
  2026 public file ids 38299035841, 59668364003 (tool_use.input: Input should be a valid dictionary)
    tool_use\.input:? .{0,30}(?:should be a valid dict|must be an? (?:object|dict)|field required)
  2026 public file ids 61653306717, 71312136836
    tooluse\.input is invalid
  2026-11 generalised from the wordings above
    (?:function|tool|tool_calls?)[\w.\[\] ]{0,40}arguments.{0,40}(?:invalid|not valid|not a valid|must be (?:a )?valid
      |must be a).{0,20}(?:json|object|dict)
    (?:invalid|malformed) (?:json|json string) (?:in|for) (?:the )?(?:function|tool)[\w ]{0,20}arguments
    can only get item pairs from a mapping
    failed to parse tool call arguments as json: .{0,4}json\.exception

empty_content: blank empty content non-empty parts token
  2025-02-25 https://github.com/aws-samples/bedrock-engineer/issues/8
    text field in the contentblock .{0,60}is blank
  2025-12-11 https://github.com/anthropics/claude-code/issues/13709
    content field in the message .{0,60}is empty
  2026-05-22 https://github.com/NousResearch/hermes-agent/issues/30310
    at least one content element
  2026-06-28 public file ids 66002800245, 62552372820 (text content blocks must be non-empty)
    text content blocks must (?:be non-empty|contain non-whitespace|contain text)
    must have non-empty content
  2026-07-21 https://github.com/MoonshotAI/kimi-code/issues/1985
    (?:messages?|role \w{1,12})\b.{0,60}(?:content.{0,30})?(?:cannot|must not|can not|should not) be (?:an )?empty
  2026 public file ids 54306954570, 56556184935 (content or tool_calls must be set)
    content (?:or|and) tool_calls must (?:be set|not both be)
  2026 public file id 65793198923 (assistant must provide content or tool_calls)
    must (?:provide|have|contain|include) (?:either |at least one of )?content (?:or|and/or) tool_?calls
  2026 https://github.com/anomalyco/opencode/issues/17519
    must include at least one parts field|parts(?: field)? (?:must|should|cannot) (?:not )?be empty
      |must have a text parameter
  2026-11 generalised from the wordings above
    content: empty (?:array|string)|content.{0,12}expected a string, (?:but )?got null
      |message must be at least 1 token long

role_alternation: alternat successive consecutive interleave start first assistant
  2025-12-05 https://github.com/suitenumerique/conversations/issues/197
    roles must alternate|must alternate between
  2025 public file ids 8219422258, 29333786488 (does not support successive user or assistant messages)
    not support successive|successive (?:user|assistant)
  2026 public file ids 70115240043, 23348037627 (multiturn requests alternate)
    multi-?turn requests alternate
  2026 public file ids 3605024985, 52457604151 (A conversation must alternate)
    conversation must start with a user message|first message must use the user role
  2026-11 generalised from the wordings above
    (?:consecutive|adjacent|successive) .{0,20}(?:user|assistant|messages|role).{0,40}(?:not (?:allowed|supported)
      |same role|must)
    (?:should|must) alternate|first message.{0,60}must be a user|2 or more assistant messages at the end

system_position: system .role developer
  2026-11 a reminder of the system behind the question (the wording of file ids 62600978471, 54946366066; Mistral)
    expected last role .{0,60}but got system
  2026-04-21 https://github.com/nashsu/llm_wiki/issues/45
    system messages? must (?:be|come|appear) .{0,12}(?:beginning|first|start)
  2026-05-23 https://github.com/BigPizzaV3/CodexPlusPlus/issues/267
    invalid message role: system|role:? system is (?:not (?:supported|allowed)|invalid)
  2026-11 generalised from the wordings above (Anthropic: Unexpected role "system")
    unexpected role:? system
    \.role: input should be user or assistant
  2026-11 generalised: hosts that do not know the newer name of the role (openai-python: role developer)
    (?:role:?|variant|support|value:?|unexpected|unknown|invalid) developer\b|developer is not one of
  2024-03 https://huggingface.co/google/gemma-7b-it (chat template)
    system role (?:is )?not supported
    system messages? (?:are|is) only (?:allowed|supported)|only the first message (?:can|may) (?:be
      |have) .{0,12}system
  2026-11 generalised from the wordings above
    \.role does not support system
"""

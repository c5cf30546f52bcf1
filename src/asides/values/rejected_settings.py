"""How servers refuse settings of a request: every known wording, with its date and its source.

Written as in rejected_state, and tried after it. What is general stands last.
"""

from __future__ import annotations

SETTING_WORDINGS = r"""
context_edit_needs_thinking: clear_thinking
  2025-11-19 https://github.com/anthropics/claude-code/issues/11971
    clear_thinking\w{0,12}.{0,40}(?:requires?|needs?|only).{0,40}thinking

effort_tools_endpoint: tools
  2026-03-16 https://github.com/pipecat-ai/pipecat/issues/4043
    tools? .{0,12}with reasoning[_. ]effort .{0,20}not supported
    reasoning[_. ]effort .{0,20}not supported with .{0,12}(?:function )?tools

effort_thinking_conflict: effort
  2026-07-25 https://github.com/anthropics/claude-code/issues/81084
    effort.{0,60}not supported (?:when|while|if|with) thinking (?:is )?(?:disabled|off)
  2026-10 https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
    effort.{0,40}differs from .{0,40}in effect before
    effort cannot change when thinking is
    thinking.{0,30}disabled.{0,20}(?:not supported with|cannot be (?:combined|used) with) .{0,24}effort

prefill_with_thinking: prefill pre-fill continue_final_message
  2026-03-22 https://github.com/ggml-org/llama.cpp/issues/20861
    pre-?fill.{0,60}(?:incompatible|not (?:supported|allowed|compatible)|cannot).{0,60}(?:thinking|reasoning)
    (?:thinking|reasoning).{0,60}(?:incompatible|not (?:supported|allowed|compatible)|cannot).{0,60}pre-?fill
  2025-07-31 https://github.com/PrimeIntellect-ai/verifiers/issues/179
    continue_final_message is set but

prefill_unsupported: prefill pre-fill end with a user last role
  2026-07-07 https://github.com/smallmain/vscode-unify-chat-provider/issues/249
    not support (?:assistant )?(?:message )?pre-?fill|pre-?fill\w{0,4} .{0,40}not (?:supported|allowed)
    (?:conversation|messages|request) must end with a user (?:message|role|turn)
  2026 public file ids 62600978471, 54946366066 (Expected last role User or Tool)
    expected last role user
    last message (?:must|should) (?:be|have) .{0,24}user
  2026-11 generalised from the wordings above
    last message .{0,40}must be a user message

stream_required: stream incremental_output
  2025-07-22 https://github.com/infiniflow/ragflow/issues/8972
    for non-?streaming calls
  2025-10-23 https://github.com/musistudio/claude-code-router/issues/948
    when stream ?= ?false
  2026-04-12 https://help.aliyun.com/zh/model-studio/error-code
    only supports? (?:the )?stream|enable the stream parameter|incremental_output parameter must be
  2026-05-23 public file id 63091743464 (Stream must be set to true)
    stream(?:ing)?(?: mode| parameter)? (?:is required|must be (?:set to )?(?:true|enabled))
    not support non-?stream|requires? stream(?:ing|=true)|must be streamed
  2026-11 generalised from the wordings above
    non-?stream(?:ing|ed)? (?:requests? |calls? )?(?:is|are) not (?:supported|allowed|available)
    only streams\b|only stream(?:ing)?(?: mode| ?= ?true)? (?:is|are) (?:supported|allowed|available)
    stream ?[=:] ?false (?:is )?not (?:supported|allowed)|stream(?:ing)? ?[=:] ?true is required
    (?:set|enable|turn on) stream(?:ing)?(?: to true| ?= ?true| for this model)|must (?:enable|use) stream

summary_not_allowed: summar
  2026-04-03 https://github.com/continuedev/continue/issues/12031
    verified to generate reasoning summar
  2026 public file ids 59690958133, 69041139169 (Unsupported parameter: 'reasoning.summary')
    reasoning[._ ]summar\w{0,4}\b.{0,60}(?:not (?:support|allowed|available)|unsupported|verif)
    (?:unsupported|unknown|invalid) \w{1,12}.{0,20}reasoning[._]summary
    \[param=(?:reasoning|\*{3})?\.summary\].{0,160}(?:not supported|unsupported)

thinking_cannot_disable: disabl thinking reasoning turn always
  2026-09-25 https://platform.claude.com/docs/en/api/errors
    thinking\.type\.disabled .{0,12}(?:not supported|unsupported)
  2026-10-08 https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
    turn thinking off on this model, send|instead of \{type: disabled\}
  2026-07-16 https://ai.google.dev/gemini-api/docs/thinking
    only works (?:in|with) thinking|budget 0 is invalid
  2026-07-26 https://help.aliyun.com/zh/model-studio/error-code
    enable_thinking.{0,40}(?:restricted to true|must be true)
  2025-07-17 https://github.com/CherryHQ/cherry-studio/issues/8251
    (?:reasoning|thinking) is (?:mandatory|always (?:on|enabled))
  2026-09-14 https://github.com/sam-dumont/immich-video-memory-generator/issues/919
    (?:thinking|reasoning).{0,60}(?:cannot|can not|may not|must not) be (?:disabled|turned off
      |switched off)(?! (?:when|while|if) )
    (?:not support|cannot|not allow)\w{0,3} (?:disabling|turning off|disable|turn off) .{0,12}(?:thinking|reasoning)
    (?:disabling|turning off) (?:thinking|reasoning) is not
  2025-06-27 https://github.com/CherryHQ/cherry-studio/issues/7593
    unsupported thinking type .{0,40}: disabled
    thinking[._ ]type.{0,12} disabled .{0,12}(?:not support|unsupported)
  2026-11 generalised from the wordings above
    (?:thinking|reasoning) mode is (?:mandatory|always (?:on|enabled))|model always thinks
    unable to (?:disable|turn off|switch off) .{0,12}(?:thinking|reasoning)
    thinking.{0,40} only (?:type ?[=:] ?)?enabled is (?:allowed|supported)

between_tools_unsupported: between_tools
  2026-09-29 https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
    between_tools .{0,20}(?:not supported|unsupported|not available|invalid)
    input tag between_tools|not support .{0,20}between_tools

adaptive_unsupported: adaptive
  2026-05-16 https://platform.claude.com/docs/en/api/errors
    adaptive thinking is not (?:supported|available|enabled)|not support adaptive thinking
    thinking\.type\.adaptive .{0,12}not supported
  2026-03-11 https://github.com/strands-agents/harness-sdk/issues/1856
    input tag adaptive

thinking_mode_unsupported: thinking reasoning
  2026-04-27 https://platform.claude.com/docs/en/api/errors
    thinking\.type\.enabled .{0,12}not supported
    (?:manual|extended) thinking.{0,20} (?:is|are) (?:not|no longer) (?:supported|accepted|available)
  2026-06-24 https://github.com/HenriGrimm/Minnow/issues/364
    invalid thinking[._ ]type
  2026-06-23 https://github.com/decolua/9router/issues/2023
    thinking[._ ]type\b.{0,80}(?:not support|unsupported|not valid|invalid|must be|should be)
    thinking: input tag
  2026-08-26 https://github.com/anomalyco/models.dev/pull/5518
    unsupported thinking type
  2026-04-13 https://github.com/earendil-works/pi/issues/3096
    (?:reasoning )?prompt mode is not enabled

reasoning_params_conflict: one both and exclusive combination together disabled thoughts reasoning_format with
  2025-02-26 https://github.com/danny-avila/LibreChat/issues/6076
    only one of .{0,60}(?:reasoning|thinking|effort)
    (?:either|set only) .{0,12}one of .{0,24}(?:reasoning|thinking|effort)
  2026-05-20 https://github.com/HKUDS/nanobot/issues/3939
    (?:cannot|can not|not|may not) (?:specify|use|set|provide|send|pass) both .{0,60}(?:reasoning|thinking|effort)
    (?:reasoning|thinking|effort)\S{0,30} and .{0,60}(?:cannot (?:both )?be|mutually exclusive|not .{0,12}together
      |at the same time)
  2026-01-27 https://github.com/RooCodeInc/Roo-Code/issues/11001
    invalid combination of .{0,40}(?:reasoning|thinking|effort)
    (?:reasoning|thinking)\S{0,30} (?:cannot be used|is not supported|not allowed) (?:together )?with .{0,6}
      (?:reasoning|thinking|include_reasoning)
  2026-11 generalised from the wordings above
    cannot be disabled (?:when|while|if) .{0,24}(?:effort|reasoning)
    include_?thoughts is only enabled when thinking
    at most one of .{0,60}(?:reasoning|thinking|effort)|(?:reasoning|thinking|effort).{0,60} not both
    (?:reasoning|thinking|effort)\S{0,30} conflicts with .{0,12}(?:reasoning|thinking|effort)
    reasoning_format.{0,80}(?:must be|cannot|not allowed|when)

budget_exceeds_max_tokens: budget reasoning.max_tokens
  2025-08-09 https://github.com/vercel/ai/issues/7927
    max_(?:completion_|output_)?tokens must be (?:greater|larger|more|higher) than .{0,16}budget
    budget(?:_tokens)?.{0,40}(?:less|smaller|lower) than .{0,20}max_?(?:completion_?|output_?)?tokens
    budget(?:_tokens)?.{0,40}exceeds? .{0,20}max_?(?:completion_?|output_?)?tokens
  2026-11 generalised from the wordings above
    reasoning\.max_tokens.{0,40}(?:less|smaller|lower) than .{0,6}max_tokens

budget_too_small: budget reasoning.max_tokens
  2026-03-26 https://github.com/tingly-dev/tingly-box/pull/569
    budget_?tokens.{0,40}(?:greater than or equal to|at least|>=|minimum|no less than)
    (?:minimum|at least) .{0,20}budget_?tokens|budget_?tokens .{0,30}too (?:small|low)
    thinking budget .{0,30}(?:at least|>=|minimum)
  2026-11 generalised from the wordings above
    reasoning\.max_tokens.{0,40}(?:at least|>=|greater than or equal)

budget_out_of_range: budget trigger
  2026-01-31 https://github.com/lbjlaq/Antigravity-Manager/issues/1384
    budget.{0,80}(?:out of range|must be (?:a |an |in )|between|not greater than|too (?:large|high|big))
  2025-06-06 https://github.com/RooCodeInc/Roo-Code/issues/4399
    budget \S{1,12} is (?:invalid|not valid|too)
    budget_?tokens:? .{0,12}(?:input should be|less than or equal)
  2026-09-26 https://platform.claude.com/docs/en/build-with-claude/context-editing
    trigger\.value must be

tool_choice_with_thinking: tool_choice toolchoice forces forced
  2026-03-09 https://github.com/can1357/oh-my-pi/issues/341
    tool_?choice.{0,100}(?:thinking|reasoning)|(?:thinking|reasoning).{0,100}tool_?choice
    thinking .{0,60}forces? tool use

tool_choice_unsupported: tool_choice toolchoice forced function
  2026-09 https://platform.claude.com/docs/en/api/errors
    tool_?choice.{0,100}(?:not support|unsupported|only .{0,12}auto)|not support .{0,40}tool_?choice
  2026-04-12 https://help.aliyun.com/zh/model-studio/error-code
    tool_?choice is one of the strings that should be
    (?:forced tool (?:use|choice|calling)) .{0,20}not (?:supported|available)
  2026-11 generalised from the wordings above
    function calling .{0,20}mode:? any.{0,30}(?:not supported|unsupported)

sampling_with_thinking: temperature top max_tokens maxtokens
  2025-09-25 https://github.com/quarkiverse/quarkus-langchain4j/issues/1812
    (?:temperature|top_[pk]).{0,80}(?:when|while|if|with|in) .{0,20}(?:thinking|reasoning)
    (?:thinking|reasoning) .{0,60}(?:requires?|only|not) .{0,40}(?:temperature|top_[pk])\b
  2026-06-12 https://github.com/MoonshotAI/kimi-code/issues/686
    invalid (?:temperature|top_[pk]): only \S{1,8} is allowed
  2026-11 generalised from the wordings above
    (?:temperature|top_?p|max_?tokens).{0,60}must be unset .{0,40}(?:effort|reasoning)

sampling_unsupported: temperature top penalty logprobs logit_bias logitbias stop
  2025-03-14 https://github.com/langchain4j/langchain4j/issues/2699
    (?:temperature|top_?[pk]|(?:presence|frequency)_?penalty|logit_?bias|logprobs)\b.{0,60}(?:not support|unsupported
      |deprecated)
    (?:temperature|top_?[pk]|(?:presence|frequency)_?penalty|logit_?bias|logprobs)\b.{0,60}(?:not (?:allowed|available
      |permitted)|cannot both|only the default)
  2025-04-24 https://github.com/yym68686/uni-api/issues/105
    (?:not support|unsupported|not supported on this model:|deprecated) .{0,40}(?:temperature|top_?[pk]|(?:presence
      |frequency)_?penalty|logit_?bias|logprobs)\b
    (?:not support parameter|argument not supported on this model:) (?:stop|n|seed)\b
  2026-09-18 https://platform.claude.com/docs/en/api/errors
    (?:temperature|top_[pk]) must be \S{1,5} ?[\d.]{0,5} for this model

effort_unsupported_param: effort thinking_level thinking level
  2026-03-04 https://github.com/anthropics/claude-code/issues/30795
    not support (?:the )?(?:parameter )?(?:reasoning[_. ]?)?effort(?: parameter)?(?:[.,;]|$| )(?!level)
    (?:un(?:supported|known|recognized)) (?:request )?(?:parameter|argument|field|key)\w{0,2}
      (?: supplied)?:? .{0,24}effort
    effort: extra inputs|property \S{0,24}effort is (?:unsupported|not supported)
    effort is not (?:supported|available|permitted|allowed)(?: (?:with|for|by|on|in) .{0,60})?\.?$
  2026-09-16 public file ids 71214650857, 68309263746 (Thinking level is not supported)
    thinking[_ ]?level is not supported
  2026-11 generalised from the wordings above
    extraneous key \[?\w{0,20}effort|effort is not enabled

effort_unsupported_value: effort think supported values are
  2026-07-30 https://platform.claude.com/docs/en/build-with-claude/effort
    effort level
    effort.{0,80}(?:not support|unsupported|must be|invalid|allowed|expected|one of|should be)
  2025-11-18 https://github.com/anomalyco/opencode/issues/4451
    ^\[param=(?:[^\]]{0,40}effort)?\].{0,120}unsupported value: .{0,120}supported values are: .{0,60}(?:none|minimal
      |low|medium|high|max)
  2026-08-27 https://github.com/vllm-project/vllm/pull/54022
    (?:in(?:valid|correct)|unexpected|unsupported|unknown) (?:value for )?(?:\w{1,12}[_. ])?effort
    \[code=[^\]]{0,60}(?:invalid|unsupported)_reasoning_effort
  2025-12-22 https://github.com/musistudio/claude-code-router/issues/1093
    think value .{0,20}(?:not supported|invalid)|invalid think value
  2025-12-17 https://github.com/jenslys/opencode-gemini-auth/issues/14
    thinking[_ ]?level.{0,40}(?:not support|invalid|unsupported|must be)
  2026-11 generalised from the wordings above
    ^\[param=[^\]]{0,40}effort\].{0,240}(?:invalid|unsupported|not support|must be)

thinking_unsupported_model: thinking reasoning
  2025-07-16 https://github.com/ollama/ollama/issues/11439
    not support (?:extended )?(?:thinking|reasoning)(?:[.!,)]|$| mode| config| \()
    (?:thinking|reasoning) is not (?:supported|enabled|available) (?:for|by|on|with|in)\b
  2026-09-08 https://github.com/UKGovernmentBEIS/inspect_ai/issues/5301
    reasoning config value is invalid|reasoning_?config is not supported

context_length: token context prompt input length window long exceed
  2025-06-11 https://github.com/continuedev/continue/issues/6080
    exceeds? (?:the )?(?:\w{1,12} )?context|context.{0,4}(?:length|window|size|limit).{0,60}exceed
    context[_ ]length[_ ]exceeded|context ?window ?exceeded|prompt_tokens_exceeded
    prompt (?:is )?too (?:long|large)|(?:input|message|prompt|conversation)(?: \w{1,10})? (?:is )?too long
  2026-09-08 https://openrouter.ai/docs/api-reference/errors (This endpoint's maximum context length is)
    maximum context|context (?:length|window|size) (?:is|of) (?:only )?\d|too many (?:input |prompt )?tokens
  2026 public file ids 57401114903, 54664768448 (xAI: maximum prompt length)
    maximum (?:prompt|input) length|(?:larger|longer|more tokens|greater) than .{0,20}context
  2026 public file ids 56160601652, 60896935358 (Gemini, Mistral, vLLM and others)
    (?:input|prompt) token count.{0,40}exceeds|token (?:length|limit|count) exceed
    exceed(?:s|ed)? (?:the )?(?:model |max |maximum )?(?:allowed )?(?:token limit|message tokens|input length)
    exceeded model token limit|reduce the length of the messages|too large for model with
    prompt has \S{1,12} tokens, but|in request more than max tokens
  2026-04-12 https://help.aliyun.com/zh/model-studio/error-code
    range of input length should be
  2026-11 generalised from the wordings above
    longer than the maximum model length|exceed_context_size

unknown_param: not extraneous beta unknown unrecognized unsupported unexpected illegal
  2025-07-25 https://github.com/anthropics/claude-code/issues/4378
    extra (?:inputs|fields) (?:are )?not permitted
  2026-02-11 https://github.com/musistudio/claude-code-router/pull/1204
    property \S{1,80} is (?:unsupported|not supported)
    reasoning_format is not supported
  2025-03-14 https://github.com/langchain4j/langchain4j/issues/2699
    (?:unknown|unrecognized|unsupported|unexpected) (?:request )?(?:parameter|field|argument|key|name|keyword argument
      |property|attribute)
    \[code=[^\]]{0,60}un(?:known|supported)_parameter
  2025-12-30 https://github.com/LionSR/TeXRA/pull/1905
    \(expected type \w{1,12}\) is illegal
  2026-11 generalised from the wordings above
    additional properties (?:are )?not allowed|not support (?:the )?(?:parameter|field|argument)
      |argument not supported
    (?:parameter|argument|field) \S{1,60} is (?:not (?:supported|allowed|permitted|recognized)|unsupported|unknown)
    not support (?:the )?\S{2,40} (?:parameter|field|argument)|extraneous key|invalid beta flag
    unexpected values? ?(?:\(s\))? .{0,90}anthropic-beta
"""

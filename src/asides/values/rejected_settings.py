"""How servers refuse settings of a request: one row per wording, with its source and its date.

As in rejected_state, whose rows are tried first. `unknown_param` is general and stands last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asides.values.rejections import Row

SETTING_ROWS: tuple[Row, ...] = (
    # --- one setting forbids another ---
    (
        "context_edit_needs_thinking",
        r"clear_thinking\w{0,12}.{0,40}(?:requires?|needs?|only).{0,40}thinking",
        "https://github.com/anthropics/claude-code/issues/11971",
        "2025-11-19",
    ),
    (
        "effort_tools_endpoint",
        r"(?:function )?tools? .{0,12}with reasoning[_. ]effort .{0,20}not supported.{0,80}(?:chat/completions|/responses|$)",
        "https://github.com/pipecat-ai/pipecat/issues/4043",
        "2026-03-16",
    ),
    (
        "effort_thinking_conflict",
        r"effort.{0,40}not supported when thinking is (?:disabled|off)|effort.{0,40}differs from .{0,40}in effect before",
        "https://github.com/anthropics/claude-code/issues/81084",
        "2026-07-25",
    ),
    (
        "prefill_with_thinking",
        r"prefill.{0,60}(?:incompatible|not (?:supported|allowed|compatible)|cannot).{0,60}(?:thinking|reasoning)"
        r"|(?:thinking|reasoning).{0,60}(?:incompatible|not (?:supported|allowed|compatible)|cannot).{0,60}pre-?fill"
        r"|continue_final_message",
        "https://github.com/ggml-org/llama.cpp/issues/20861",
        "2026-03-22",
    ),
    (
        "prefill_unsupported",
        r"not support (?:assistant )?(?:message )?pre-?fill|pre-?fill\w{0,4} .{0,40}not supported"
        r"|conversation must end with a user message|expected last role user",
        "https://github.com/smallmain/vscode-unify-chat-provider/issues/249",
        "2026-07-07",
    ),
    (
        "stream_required",
        r"for non-streaming calls|when stream=false|only supports? (?:the )?stream"
        r"|stream(?:ing)?(?: mode| parameter)? (?:is required|must be (?:set to )?(?:true|enabled))"
        r"|not support non-?streaming|requires? stream(?:ing|=true)",
        "https://github.com/infiniflow/ragflow/issues/8972",
        "2025-07-22",
    ),
    (
        "summary_not_allowed",
        r"verified to generate reasoning summar|reasoning[._ ]summar\w{0,4}\b.{0,60}(?:not (?:supported|allowed|available)"
        r"|unsupported|verif)|(?:unsupported|unknown|invalid) \w{1,12}.{0,20}reasoning[._]summary"
        r"|\[param=[^\]]{0,40}(?:reasoning|\*)[^\]]{0,4}\.summary\].{0,120}(?:not supported|unsupported)",
        "https://github.com/continuedev/continue/issues/12031",
        "2026-04-03",
    ),
    # --- the mode of thinking ---
    (
        "thinking_cannot_disable",
        r"thinking\.type\.disabled .{0,12}not supported|only works in thinking mode|enable_thinking.{0,40}restricted to true"
        r"|turn thinking off on this model, send|instead of \{type: disabled\}"
        r"|(?:reasoning|thinking) is (?:mandatory|required|always (?:on|enabled))"
        r"|(?:thinking|reasoning).{0,60}(?:cannot|can not|may not|must not) be (?:disabled|turned off|switched off)"
        r"|(?:not support|cannot|not allow)\w{0,3} (?:disabling|turning off|disable|turn off) .{0,12}(?:thinking|reasoning)"
        r"|(?:disabling|turning off) (?:thinking|reasoning) is not",
        "https://platform.claude.com/docs/en/api/errors",
        "2026-09-25",
    ),
    (
        "between_tools_unsupported",
        r"between_tools .{0,20}(?:not supported|unsupported|invalid)|input tag between_tools|not support .{0,20}between_tools",
        "https://platform.claude.com/docs/en/api/errors",
        "2026-09-29",
    ),
    (
        "adaptive_unsupported",
        r"adaptive thinking is not (?:supported|available)|thinking\.type\.adaptive .{0,12}not supported"
        r"|input tag adaptive|not support adaptive thinking",
        "https://github.com/mnfst/llm-gateway/pull/1928",
        "2026-05-16",
    ),
    (
        "thinking_mode_unsupported",
        r"thinking\.type\.enabled .{0,12}not supported|invalid thinking\.type|reasoning prompt mode is not enabled"
        r"|thinking[._ ]type\b.{0,80}(?:not support|unsupported|not valid|invalid|must be|should be)"
        r"|thinking: input tag",
        "https://github.com/zhukunpenglinyutong/jetbrains-cc-gui/issues/1003",
        "2026-04-27",
    ),
    # --- two settings that exclude each other ---
    (
        "reasoning_params_conflict",
        r"only one of .{0,60}(?:reasoning|thinking|effort).{0,80}|set only one of thinking"
        r"|(?:cannot|can not) (?:specify|use|set|provide|send) both .{0,60}(?:reasoning|thinking|effort)"
        r"|(?:reasoning|thinking|effort)\S{0,30} and .{0,40}(?:cannot (?:both )?be|mutually exclusive|not .{0,12}together)"
        r"|invalid combination of .{0,40}(?:reasoning|thinking|effort)",
        "https://github.com/danny-avila/LibreChat/issues/6076",
        "2025-02-26",
    ),
    # --- budgets ---
    (
        "budget_exceeds_max_tokens",
        r"max_(?:completion_|output_)?tokens must be (?:greater|larger|more) than .{0,12}budget"
        r"|budget(?:_tokens)?.{0,40}(?:less|smaller|lower) than .{0,20}max_(?:completion_|output_)?tokens"
        r"|budget(?:_tokens)?.{0,40}exceeds? .{0,20}max_(?:completion_|output_)?tokens",
        "https://github.com/vercel/ai/issues/7927",
        "2025-08-09",
    ),
    (
        "budget_too_small",
        r"budget_tokens.{0,40}(?:greater than or equal to|at least|>=|minimum|no less than)"
        r"|minimum .{0,20}budget_tokens",
        "https://github.com/tingly-dev/tingly-box/pull/569",
        "2026-03-26",
    ),
    (
        "budget_out_of_range",
        r"budget.{0,80}(?:out of range|must be (?:a |an |in )|between|not greater than|too (?:large|high|small|low))"
        r"|budget \S{1,12} is invalid|trigger\.value must be at least|budget_tokens: input should be",
        "https://github.com/QwenLM/Qwen-Agent/pull/942",
        "2026-08-16",
    ),
    # --- tools ---
    (
        "tool_choice_with_thinking",
        r"tool_?choice.{0,100}(?:thinking|reasoning)|(?:thinking|reasoning).{0,100}tool_?choice|forces? tool use",
        "https://github.com/can1357/oh-my-pi/issues/341",
        "2026-03-09",
    ),
    (
        "tool_choice_unsupported",
        r"tool_?choice.{0,100}(?:not support|unsupported|only .{0,12}auto)|not support .{0,40}tool_?choice",
        "https://platform.claude.com/docs/en/api/errors",
        "2026-09",
    ),
    # --- sampling ---
    (
        "sampling_with_thinking",
        r"(?:temperature|top_[pk]).{0,80}(?:when|while|if|with|in) .{0,20}(?:thinking|reasoning)"
        r"|(?:thinking|reasoning) .{0,60}(?:requires?|only|not) .{0,40}(?:temperature|top_[pk])\b"
        r"|invalid (?:temperature|top_[pk]): only \S{1,8} is allowed",
        "https://github.com/mnfst/modelparams.dev/issues/214",
        "2026-08-09",
    ),
    (
        "sampling_unsupported",
        r"(?:temperature|top_?[pk]|(?:presence|frequency)_?penalty|logit_?bias|(?:top_?)?logprobs)\b.{0,60}"
        r"(?:not support|unsupported|deprecated|not (?:allowed|available|permitted)|cannot both|only the default)"
        r"|(?:not support|unsupported|not supported on this model:|deprecated) .{0,40}"
        r"(?:temperature|top_?[pk]|(?:presence|frequency)_?penalty|logit_?bias|(?:top_?)?logprobs|: ?stop)\b",
        "https://github.com/langchain4j/langchain4j/issues/2699",
        "2025-03-14",
    ),
    # --- effort ---
    (
        "effort_unsupported_param",
        r"not support (?:the )?(?:parameter )?(?:reasoning[_. ]?)?effort(?: parameter)?(?:\.|$| )(?!level)"
        r"|(?:unsupported|unknown|unrecognized) (?:request )?(?:parameter|argument|field)\w{0,2}(?: supplied)?:? .{0,12}effort"
        r"|effort: extra inputs|effort.{0,12} is not (?:supported|available|permitted) (?:with|for|by|on|in) this model\.?$",
        "https://github.com/anthropics/claude-code/issues/30795",
        "2026-03-04",
    ),
    (
        "effort_unsupported_value",
        r"effort level|(?:reasoning[_. ]?|output_config\.)effort.{0,80}(?:not support|unsupported|must be|invalid|allowed|expected"
        r"|one of)|(?:invalid|unexpected|unsupported|unknown) (?:value for )?(?:reasoning[_. ]?|output_config\.)effort"
        r"|^\[param=(?:[^\]]{0,40}effort)?\].{0,80}unsupported value: .{0,120}supported values are: .{0,60}"
        r"(?:none|minimal|low|medium|high|max)"
        r"|think value .{0,20}not supported|thinking[_ ]level.{0,40}(?:not support|invalid|unsupported)"
        r"|\[code=[^\]]{0,60}invalid_reasoning_effort",
        "https://github.com/anomalyco/opencode/issues/4451",
        "2025-11-18",
    ),
    (
        "thinking_unsupported_model",
        r"not support (?:thinking|reasoning)(?:[.!,)]|$| mode)"
        r"|(?:thinking|reasoning) is not (?:supported|enabled|available) (?:for|by|on|with|in)\b",
        "https://github.com/ollama/ollama/issues/11439",
        "2025-07-16",
    ),
    # --- what every request can meet ---
    (
        "context_length",
        r"context.{0,4}(?:length|window|size|limit).{0,80}(?:exceed|is \d|of only|too|larger|than)"
        r"|(?:exceed|larger|longer|beyond|over).{0,60}context|context_length_exceeded|prompt (?:is )?too long"
        r"|too many (?:input )?tokens|(?:input|prompt)(?: \w{1,10})? (?:is )?too long|maximum context"
        r"|token (?:count|limit|length).{0,60}exceed|exceed.{0,40}token (?:limit|count)|maximum prompt length"
        r"|maximum.{0,20}tokens.{0,40}(?:exceed|request)|range of input length should be"
        r"|exceed max message tokens|prompt_tokens_exceeded|contextwindowexceeded",
        "https://github.com/continuedev/continue/issues/6080",
        "2025-06-11",
    ),
    (
        "unknown_param",
        r"extra (?:inputs|fields) (?:are )?not permitted|property \S{1,80} is (?:unsupported|not supported)"
        r"|(?:unknown|unrecognized|unsupported|unexpected) (?:request )?(?:parameter|field|argument|key|name|keyword argument|property)"
        r"|additional properties are not allowed|\(expected type \w{1,12}\) is illegal|not support (?:the )?parameter"
        r"|argument not supported|\[code=[^\]]{0,60}un(?:known|supported)_parameter",
        "https://github.com/musistudio/claude-code-router/pull/1204",
        "2026-02-11",
    ),
)

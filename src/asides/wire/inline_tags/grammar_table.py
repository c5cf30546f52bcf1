"""The grammars in which models write thinking into their text, one row each, with the models that use it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from asides.wire.inline_tags.grammar import (
    MAX_ATTRIBUTES,
    MAX_BLANKS,
    MAX_HEADER,
    Grammar,
    Phrase,
    Unit,
    close_angle,
    open_angle,
    read_as_answer,
    read_as_thinking,
    read_bare_channel,
    read_content_kind,
    read_recipient,
)

_SINCE = "2026-08"
_NEW = "2026-11-18"
_VLLM = "vllm-project/vllm vllm/reasoning"
_SGLANG = "sgl-project/sglang python/sglang/srt/parser/reasoning_parser.py"
_LLAMA_CPP = "ggml-org/llama.cpp common/chat.cpp"

_WORDS = Unit(r"[^<]", MAX_HEADER)
_SPACES = Unit(r"[^\S\n]", MAX_BLANKS)
_RECIPIENT = Unit(r"[\w.-]", MAX_HEADER)
# After a channel name without its tokens, the text follows directly: "analysis of the data" is an answer.
_TEXT_FOLLOWS = Unit(r"(?=[^\W_])")
_MESSAGE_FOLLOWS = Unit(r"(?=[^\W_]|\n)")
_SUFFIX = Unit(r"[^\s<>`]")
_SUFFIXES = Unit(r"[^\s<>`]", 40)


def _literals(*texts: str) -> tuple[Phrase, ...]:
    return tuple((text,) for text in texts)


def _around_answer(name: str) -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
    """Return the opening and the closing forms of a tag around the answer; the line breaks inside belong to it."""
    return _literals(f"<{name}>\n", f"<{name}>"), _literals(f"\n</{name}>", f"</{name}>")


_HARMONY_STARTS: tuple[Phrase, ...] = ((), ("<|start|>assistant", _WORDS))
_MUSE_NAMED: tuple[Phrase, ...] = (("to=self",), ("to=user",), ("to=", _RECIPIENT))
_MUSE_RECIPIENTS: tuple[Phrase, ...] = (*_MUSE_NAMED, ())
_INKLING_KINDS = (
    "<|content_thinking|>",
    "<|content_text|>",
    "<|content_invoke_tool_json|>",
    "<|content_invoke_tool_text|>",
    "<|content_invoke_tool|>",
)
_IFM_CLOSES = _literals("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>")
_ANSWER = _around_answer("answer")
_RESPONSE = _around_answer("response")

_DEFAULT = (
    Grammar(
        "think",
        open=open_angle("think"),
        close=close_angle("think"),
        may_close_itself=True,
        models=(
            "DeepSeek R1, V3.1, V4, V4.1",
            "Qwen3, QwQ",
            "GLM-4.5 to 5",
            "Kimi K2",
            "MiniMax M2",
            "Nemotron",
            "Step 3, 3.5",
            "MiMo V2",
            "OLMo 3",
            "Hy3",
            "Holo2",
            "Intern-S1",
            "LFM2",
            "Laguna",
            "Ling 3",
            "GigaChat 3.5",
            "HyperCLOVA X SEED Think",
            "openPangu v2",
            "IQuest, IQuest Q1",
            "TeleChat 4",
            "XingChen 4",
            "RWKV",
            "Kolibri 1",
            "BerryLM",
            "Granite 4.2",
            "Nanbeige 4",
            "EXAONE 4",
            "MiniCPM-V",
            "MiroThinker",
        ),
        since=_SINCE,
        source=f"{_VLLM}, deepseek_r1, qwen3 and others; {_SGLANG}, qwen3 and others; {_LLAMA_CPP}",
    ),
    Grammar(
        "thinking",
        open=open_angle("thinking"),
        close=close_angle("thinking"),
        may_close_itself=True,
        models=("Claude 3 with tools", "Nova"),
        since=_SINCE,
        source="recorded at Anthropic and Bedrock",
    ),
    Grammar(
        "thought",
        open=open_angle("thought"),
        close=close_angle("thought"),
        may_close_itself=True,
        models=("Gemini through its OpenAI endpoint",),
        since=_SINCE,
        source="recorded at Google",
    ),
    Grammar(
        "reasoning",
        open=open_angle("reasoning"),
        close=close_angle("reasoning"),
        may_close_itself=True,
        models=("gpt-oss at Bedrock and others",),
        since=_SINCE,
        source="recorded at Bedrock",
    ),
    Grammar(
        "analysis",
        open=open_angle("analysis"),
        close=close_angle("analysis"),
        may_close_itself=True,
        models=("models that are prompted to",),
        since=_SINCE,
        source="public reports",
    ),
    # Exact case: `[Think](https://…)` is a link.
    Grammar(
        "[think]",
        open=_literals("[THINK]"),
        close=_literals("[/THINK]"),
        exact_case=True,
        models=("Magistral", "Ministral 3 Reasoning", "Mistral Small 4"),
        since=_SINCE,
        source=f"{_VLLM}, mistral; {_SGLANG}, mistral; {_LLAMA_CPP}, ministral_3",
    ),
    Grammar(
        "harmony",
        close=_literals("<|end|>", "<|return|>", "<|call|>"),
        header=tuple(
            (*start, *channel, *constrain, "<|message|>")
            for start in _HARMONY_STARTS
            for channel in ((), ("<|channel|>", _WORDS))
            for constrain in ((), ("<|constrain|>", _WORDS))
            if channel or (start and not constrain)
        ),
        # <|call|> stays: it ends a tool call, which stays complete for the parser of tool text.
        control=_literals("<|end|>", "<|return|>"),
        # A quoted <|end|> does not end a thought; only the start of the next message shows that one came before.
        orphan=_literals("<|end|><|start|>assistant"),
        nests=False,
        models=("gpt-oss",),
        since=_SINCE,
        source=f"openai/harmony docs/format.md; {_VLLM}, openai_gptoss; {_SGLANG}, gpt-oss; {_LLAMA_CPP}, gpt_oss",
    ),
    Grammar(
        "gemma",
        open=_literals("<|channel>thought"),
        close=_literals("<channel|>"),
        models=("Gemma 4",),
        since=_SINCE,
        source=f"{_VLLM}, gemma4; {_SGLANG}, gemma4; {_LLAMA_CPP}, gemma4",
    ),
    Grammar(
        "seed",
        open=open_angle("seed:think"),
        close=close_angle("seed:think"),
        may_close_itself=True,
        models=("Seed-OSS",),
        since=_SINCE,
        source=f"{_VLLM}, seed_oss; {_LLAMA_CPP}, seed_oss",
    ),
    Grammar(
        "mm",
        open=open_angle("mm:think"),
        close=close_angle("mm:think"),
        may_close_itself=True,
        models=("MiniMax M3",),
        since=_SINCE,
        source=f"{_VLLM}, minimax_m3; {_SGLANG}, minimax-m3; {_LLAMA_CPP}, minimax_m3",
    ),
    Grammar(
        "kimi",
        open=_literals("◁think▷"),
        close=_literals("◁/think▷"),
        models=("Kimi-VL Thinking",),
        since=_SINCE,
        source=f"{_SGLANG}, kimi",
    ),
    Grammar(
        "kimi-k3",
        open=_literals("<|open|>think<|sep|>"),
        # Some servers omit the closing tag (sglang#32567): the opening of the response ends the thinking too.
        close=_literals("<|close|>think<|sep|>", "<|open|>response<|sep|>"),
        first=_literals("<|open|>response<|sep|>"),
        control=_literals("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
        read=read_as_answer,
        models=("Kimi K3",),
        since=_NEW,
        source=f"{_VLLM}, kimi_k3; {_SGLANG}, kimi_k3",
    ),
    Grammar(
        "command",
        open=_literals("<|START_THINKING|>"),
        close=_literals("<|END_THINKING|>"),
        first=_literals("<|START_RESPONSE|>", "<|START_TEXT|>"),
        control=_literals("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        read=read_as_answer,
        models=("Command A Reasoning", "Command A Plus", "Command R7B"),
        since=_NEW,
        source=f"{_VLLM}, cohere_command3 and cohere_command4; {_SGLANG}, cohere_command4; {_LLAMA_CPP}",
    ),
    Grammar(
        "apertus",
        open=_literals("<|inner_prefix|>"),
        close=_literals("<|inner_suffix|>"),
        models=("Apertus",),
        since=_NEW,
        source=f"{_VLLM}, apertus; {_SGLANG}, apertus2509; {_LLAMA_CPP}, apertus",
    ),
    Grammar(
        "muse-glimmer",
        close=_literals("<|eom|>", "<|eot|>"),
        header=tuple(("<|start|>assistant", _SPACES, *to, "<|message|>") for to in _MUSE_RECIPIENTS),
        # The template ends with <|start|>assistant, so the text begins with the rest of the header.
        first=tuple((*to, "<|message|>") for to in _MUSE_RECIPIENTS),
        inner=tuple((*to, "<|message|>") for to in _MUSE_NAMED),
        control=_literals("<|eom|>", "<|eot|>"),
        orphan=_literals("<|eom|><|start|>assistant"),
        read=read_recipient,
        nests=False,
        models=("Muse Glimmer",),
        since=_NEW,
        source=f"{_VLLM}/muse_glimmer_utils.py; {_SGLANG}, muse",
    ),
    Grammar(
        "inkling-blocks",
        close=_literals("<|end_message|>", "<|content_model_end_sampling|>"),
        header=tuple(("<|message_model|>", _WORDS, kind) for kind in _INKLING_KINDS),
        # The template ends with <|message_model|>.
        first=_literals("<|content_thinking|>", "<|content_text|>"),
        inner=_literals(*_INKLING_KINDS),
        control=_literals("<|end_message|>", "<|content_model_end_sampling|>"),
        orphan=_literals("<|end_message|><|message_model|>"),
        read=read_content_kind,
        nests=False,
        models=("Inkling",),
        since=_NEW,
        source="vllm-project/vllm vllm/parser/inkling.py; sgl-project/sglang srt/parser/inkling_tokenizer.py",
    ),
    Grammar(
        "hy",
        open=(("<think:", _SUFFIX, _SUFFIXES, ">"),),
        close=(("</think:", _SUFFIX, _SUFFIXES, ">"),),
        models=("Tencent Hy3", "Tencent Hy4"),
        since=_NEW,
        source=f"{_VLLM}, hy_v3 and hy_v4 (the suffix is of the checkpoint, such as :opensource); {_SGLANG}, hunyuan",
    ),
    Grammar(
        "longcat_think",
        open=open_angle("longcat_think"),
        close=close_angle("longcat_think"),
        may_close_itself=True,
        models=("LongCat Flash Thinking",),
        since=_NEW,
        source=f"{_VLLM}, longcat",
    ),
    Grammar(
        "ifm",
        # The tag names the effort. The model does not always close with the tag that was opened, or with one of these.
        open=_literals("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
        close=(*_IFM_CLOSES, *close_angle("think")),
        orphan=_IFM_CLOSES,
        models=("K2 Horizon",),
        since=_NEW,
        source=f"{_VLLM}, k2_horizon; {_SGLANG}, k2_horizon; ggml-org/llama.cpp pull request on its closing tags",
    ),
    Grammar(
        "solar-open",
        close=_literals("<|end|>", "<|flush|>"),
        header=_literals(*(f"<|begin|>assistant<|{kind}|>" for kind in ("think", "content", "tool_calls"))),
        # The template ends with <|begin|>assistant.
        first=_literals("<|think|>", "<|content|>"),
        inner=_literals("<|content|>", "<|tool_calls|>"),
        control=_literals("<|end|>", "<|flush|>"),
        orphan=_literals("<|end|><|begin|>assistant"),
        read=read_content_kind,
        nests=False,
        models=("Solar Open",),
        since=_NEW,
        source="vLLM plug-in of upstage/Solar-Open-100B",
    ),
    Grammar(
        "solar-open2",
        open=_literals("<|think:start|>"),
        close=_literals("<|think:end|>"),
        models=("Solar Open 2",),
        since=_NEW,
        source=f"{_VLLM}, solar_open2",
    ),
    Grammar(
        "pangu",
        open=_literals("[unused16]"),
        close=_literals("[unused17]"),
        exact_case=True,
        models=("openPangu Embedded",),
        since=_NEW,
        source=f"{_VLLM}, pangu",
    ),
    Grammar(
        "plamo",
        open=_literals("<|plamo:begin_think:plamo|>"),
        close=_literals("<|plamo:end_think:plamo|>"),
        control=_literals("<|plamo:tag|>"),
        models=("PLaMo 3",),
        since=_NEW,
        source=f"{_VLLM}, plamo3; {_SGLANG}, plamo3",
    ),
)

# Their tags are words of ordinary answers, or wrap an answer whose words they may be: only for the models that use
# them, and on request.
_ON_REQUEST = (
    # Harmony whose tokens a server has removed from the text, all or all but the last.
    Grammar(
        "harmony-text",
        first=(("analysis", _TEXT_FOLLOWS), ("commentary", _TEXT_FOLLOWS)),
        header=_literals("assistantfinal", "assistantcommentary", "assistantanalysis"),
        close=(("assistantfinal",), ("<|end|>", _MESSAGE_FOLLOWS)),
        orphan=(("assistantfinal",), ("assistantcommentary",), ("<|end|>", _MESSAGE_FOLLOWS)),
        read=read_bare_channel,
        nests=False,
        exact_case=True,
        models=("gpt-oss behind a server that removes its tokens",),
        since="2026-11-19",
        source="sgl-project/sglang python/sglang/srt/parser/harmony_parser.py, TextStrategy and EndMarkerOnlyStrategy",
    ),
    Grammar(
        "hunyuan-answer",
        open=open_angle("think"),
        close=close_angle("think"),
        first=_ANSWER[0],
        control=_ANSWER[1],
        read=read_as_answer,
        may_close_itself=True,
        models=("Hunyuan A13B",),
        since=_NEW,
        source=f"{_VLLM}, hunyuan_a13b",
    ),
    Grammar(
        "ernie-response",
        open=open_angle("think"),
        close=close_angle("think"),
        first=_RESPONSE[0],
        control=_RESPONSE[1],
        read=read_as_answer,
        may_close_itself=True,
        models=("ERNIE 4.5 Thinking", "Granite 3.3"),
        since=_NEW,
        source=f"{_VLLM}, ernie45",
    ),
    Grammar(
        "apriel",
        first=_literals("Here are my reasoning steps:"),
        close=_literals("[BEGIN FINAL RESPONSE]"),
        control=_literals("\n[END FINAL RESPONSE]", "[END FINAL RESPONSE]"),
        read=read_as_thinking,
        nests=False,
        models=("Apriel 1.5", "Apriel 1.6"),
        since=_NEW,
        source="ggml-org/llama.cpp models/templates/Apriel-1.6-15b-Thinker-fixed.jinja and tests/test-chat",
    ),
    Grammar(
        "granite",
        open=_literals("Here is my thought process:", "Here's my thought process:"),
        close=_literals("Here is my response:", "Here's my response:"),
        models=("Granite 3",),
        since=_SINCE,
        source=f"{_VLLM}, granite; {_LLAMA_CPP}, granite",
    ),
    Grammar(
        "hyperclovax",
        first=_literals("/think\n"),
        close=_literals("<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n<|im_start|>assistant"),
        control=_literals("<|im_end|>"),
        read=read_as_thinking,
        nests=False,
        models=("HyperCLOVA X SEED Think 14B",),
        since=_NEW,
        source=f"{_VLLM}, hyperclovax_seed_think_14b",
    ),
    Grammar(
        "reason",
        open=open_angle("reason"),
        close=close_angle("reason"),
        may_close_itself=True,
        models=("models that are prompted to",),
        since=_SINCE,
        source="public reports",
    ),
    Grammar(
        "begin-of-thought",
        open=_literals("<|begin_of_thought|>"),
        close=_literals("<|end_of_thought|>"),
        models=("OpenThinker", "Sky-T1"),
        since=_SINCE,
        source="their model cards",
    ),
    # A block of Markdown in a saved or exported chat, not the output of a model.
    Grammar(
        "details",
        open=(('<details type="reasoning"', Unit(r"[^<>`]", MAX_ATTRIBUTES), ">"),),
        close=_literals("</details>"),
        orphan=(),  # Every block of Markdown that can be folded ends so.
        models=("chats of Open WebUI",),
        since="2026-11-19",
        source="open-webui/open-webui backend/open_webui/utils/middleware.py, serialize_content_blocks",
    ),
)

GRAMMARS: Mapping[str, Grammar] = MappingProxyType({grammar.name: grammar for grammar in (*_DEFAULT, *_ON_REQUEST)})
"""Every grammar with a name; `tags=` takes these names."""

DEFAULT_TAGS: tuple[str, ...] = tuple(grammar.name for grammar in _DEFAULT)
"""The tags for `tags=None`."""

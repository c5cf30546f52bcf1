"""Each grammar: whole, cut off, half written, nested, quoted in code, and in every chunking."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asides.providers.find import find_target
from asides.providers.models.open_weights import SELF_HOSTED
from asides.providers.quirks import ANY_TAGS
from asides.wire.inline_tags import DEFAULT_TAGS, GRAMMARS, Channel, Separated, Splitter, StartsInside, separate
from tests.decoding import decoded, whole
from tests.linear_time import check_linear
from tests.providers.models.rules import rule_of


class Form(NamedTuple):
    """How a reply in this grammar is written, and a model that writes it."""

    opening: str
    closing: str
    """Everything between the thinking and the answer."""
    end: str = ""
    model: str = ""
    only_answer: str | None = None
    """What stands before the answer of a reply without thinking."""


FORMS = {
    "think": Form("<think>", "</think>", model="Qwen/Qwen3-8B"),
    "thinking": Form("<thinking>", "</thinking>"),
    "thought": Form("<thought>", "</thought>"),
    "reasoning": Form("<reasoning>", "</reasoning>"),
    "analysis": Form("<analysis>", "</analysis>"),
    "[think]": Form("[THINK]", "[/THINK]", model="mistralai/Magistral-Small-2509"),
    "harmony": Form(
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
        "openai/gpt-oss-20b",
        "<|channel|>final<|message|>",
    ),
    "gemma": Form("<|channel>thought\n", "<channel|>", model="google/gemma-4-27b-it"),
    "seed": Form("<seed:think>", "</seed:think>", model="ByteDance-Seed/Seed-OSS-36B"),
    "mm": Form("<mm:think>", "</mm:think>", model="MiniMaxAI/MiniMax-M3"),
    "kimi": Form("◁think▷", "◁/think▷", model="moonshotai/Kimi-VL-A3B-Thinking"),
    "kimi-k3": Form(
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|><|open|>response<|sep|>",
        "<|close|>response<|sep|><|close|>message<|sep|>",
        "moonshotai/Kimi-K3",
        "<|open|>response<|sep|>",
    ),
    "command": Form(
        "<|START_THINKING|>",
        "<|END_THINKING|><|START_TEXT|>",
        "<|END_TEXT|>",
        "CohereLabs/command-a-reasoning",
        "<|START_TEXT|>",
    ),
    "apertus": Form("<|inner_prefix|>", "<|inner_suffix|>", model="swiss-ai/Apertus-70B"),
    "muse-glimmer": Form(
        " to=self<|message|>",
        "<|eom|><|start|>assistant to=user<|message|>",
        "<|eot|>",
        "meta/Muse-Glimmer-27B",
        " to=user<|message|>",
    ),
    "inkling-blocks": Form(
        "<|content_thinking|>",
        "<|end_message|><|message_model|><|content_text|>",
        "<|end_message|><|content_model_end_sampling|>",
        "thinkingmachines/Inkling-32B",
        "<|content_text|>",
    ),
    "hy": Form("<think:opensource>", "</think:opensource>", model="tencent/Hy3-preview"),
    "longcat_think": Form("<longcat_think>", "</longcat_think>", model="meituan-longcat/LongCat-Flash-Thinking"),
    "ifm": Form("<ifm|think_fast>", "</ifm|think>", model="LLM360/K2-Horizon"),
    "solar-open": Form(
        "<|think|>",
        "<|end|><|begin|>assistant<|content|>",
        "<|flush|>",
        "upstage/Solar-Open-100B",
        "<|content|>",
    ),
    "solar-open2": Form("<|think:start|>", "<|think:end|>", model="upstage/Solar-Open2-200B"),
    "pangu": Form("[unused16]", "[unused17]", model="FreedomIntelligence/openPangu-Embedded-7B"),
    "plamo": Form(
        "<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", "<|plamo:tag|>", "pfnet/plamo-3-nict-31b"
    ),
    "harmony-text": Form("analysis", "assistantfinal", model="openai/gpt-oss-20b", only_answer="assistantfinal"),
    "hunyuan-answer": Form(
        "<think>\n", "\n</think>\n<answer>\n", "\n</answer>", "tencent/Hunyuan-A13B-Instruct", "<answer>\n"
    ),
    "ernie-response": Form(
        "<think>\n",
        "\n</think>\n\n<response>\n",
        "\n</response>",
        "baidu/ERNIE-4.5-21B-A3B-Thinking",
        "<response>\n",
    ),
    "apriel": Form(
        "Here are my reasoning steps:\n",
        "\n[BEGIN FINAL RESPONSE]\n",
        "\n[END FINAL RESPONSE]",
        "ServiceNow-AI/Apriel-1.6-15b-Thinker",
    ),
    "granite": Form("Here is my thought process:", "Here is my response:", model="ibm-granite/granite-3.3-8b"),
    "hyperclovax": Form(
        "/think\n",
        "<|im_end|>\n<|im_start|>assistant\n",
        "<|im_end|>",
        "naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",
    ),
    "reason": Form("<reason>", "</reason>"),
    "begin-of-thought": Form("<|begin_of_thought|>", "<|end_of_thought|>"),
    "details": Form('<details type="reasoning" done="true">', "</details>"),
}

SECRET = "hidden-plan"

NAMES = sorted(FORMS)


def separate_in_every_chunking(source: str, tags: Any, starts_inside: StartsInside) -> Separated:
    """Separate a text whole; hold that character by character, and cut in two anywhere, it comes apart the same."""
    whole = separate(source, tags, starts_inside=starts_inside)
    cuts = [list(source), *([source[:at], source[at:]] for at in range(1, len(source)))]
    for chunks in cuts:
        splitter = Splitter(tags, starts_inside=starts_inside)
        pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.finish()
        text = "".join(text for _, channel, text in pieces if channel is Channel.ANSWER)
        thinking = "".join(text for _, channel, text in pieces if channel is Channel.THINKING)
        assert (text, thinking, splitter.truncated) == (
            whole.text,
            (whole.thinking or "").replace("\n\n", ""),
            whole.truncated,
        ), chunks
    return whole


@pytest.fixture(params=[False, "auto"], ids=["outside", "auto"])
def starts_inside(request: pytest.FixtureRequest) -> StartsInside:
    return "auto" if request.param == "auto" else False


def test_every_grammar_has_a_form_here_and_its_models_a_date_and_a_source() -> None:
    assert set(FORMS) == set(GRAMMARS)
    for grammar in GRAMMARS.values():
        assert isinstance(grammar.models, tuple), grammar.name
        assert grammar.models, grammar.name
        assert grammar.since >= "2026", grammar.name
        assert grammar.source, grammar.name


def test_the_page_has_a_row_for_every_grammar() -> None:
    page = (Path(__file__).parents[3] / "docs" / "inline-tags.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    named = {name.strip("| *"): (not name.endswith("*"), models) for name, _, _, models, _ in rows}
    assert named == {name: (name in DEFAULT_TAGS, ", ".join(grammar.models)) for name, grammar in GRAMMARS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_comes_apart(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    source = f"{form.opening}{SECRET}{form.closing}A b.{form.end}"
    found = separate_in_every_chunking(source, [name], starts_inside)
    assert found.text == "A b."
    assert (found.thinking or "").strip() == SECRET
    assert not found.truncated


@pytest.mark.parametrize("name", NAMES)
def test_a_thought_without_its_end_is_thinking(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    found = separate_in_every_chunking(form.opening + SECRET, [name], starts_inside)
    assert (found.text, (found.thinking or "").strip(), found.truncated) == ("", SECRET, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_anywhere_leaks_nothing_of_the_thought(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    source = f"{form.opening}{SECRET}{form.closing}A b."
    for end in range(len(form.opening), len(source)):
        text = separate(source[:end], [name], starts_inside=starts_inside).text
        assert "hidden" not in text, source[:end]
        assert "A b.".startswith(text) or text in form.closing + form.opening, source[:end]


@pytest.mark.parametrize("name", NAMES)
def test_a_tag_in_code_of_the_answer_is_text(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    tag = form.closing.strip().split("\n")[0]
    for answer in (f"Close it with `{tag}` then.", f"See:\n```\n{form.opening.strip()}x{tag}\n```\nDone."):
        if tag in answer:
            found = separate_in_every_chunking(f"{form.opening}{SECRET}{form.closing}{answer}", [name], starts_inside)
            assert found.text == answer
            assert (found.thinking or "").strip() == SECRET


@pytest.mark.parametrize("name", [name for name in NAMES if GRAMMARS[name].open and GRAMMARS[name].nests])
def test_a_nested_block_leaks_neither_tag_nor_thought(name: str) -> None:
    form = FORMS[name]
    closing = form.closing.strip().partition("\n")[0].partition("<|open|>")[0].partition("<|START")[0]
    source = f"{form.opening}a{form.opening}b{closing}c{form.closing}A b.{form.end}"
    assert separate_in_every_chunking(source, [name], False).text == "A b."


@pytest.mark.parametrize("name", [name for name in NAMES if FORMS[name].only_answer])
def test_a_reply_without_thinking_loses_its_control_tokens(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    source = f"{form.only_answer}A b.{form.end}"
    assert separate_in_every_chunking(source, [name], starts_inside) == Separated("A b.", None)


@pytest.mark.parametrize("name", sorted(DEFAULT_TAGS))
def test_the_default_set_knows_which_grammar_a_reply_is_written_in(name: str, starts_inside: StartsInside) -> None:
    form = FORMS[name]
    found = separate_in_every_chunking(f"{form.opening}{SECRET}{form.closing}A b.{form.end}", None, starts_inside)
    assert (found.text, (found.thinking or "").strip()) == ("A b.", SECRET)


def test_a_server_of_which_nothing_is_known_may_leave_every_default_grammar() -> None:
    assert set(ANY_TAGS) == set(DEFAULT_TAGS)


@pytest.mark.parametrize("name", [name for name in NAMES if FORMS[name].model])
def test_the_rule_of_a_model_names_its_grammar(name: str) -> None:
    assert name in (rule_of(FORMS[name].model, SELF_HOSTED).tags or ())


@pytest.mark.parametrize("name", [name for name in NAMES if FORMS[name].model])
def test_a_router_may_leave_the_grammar_of_a_model(name: str) -> None:
    maker, _, model = FORMS[name].model.lower().partition("/")
    makers = {"moonshotai": "moonshotai", "minimaxai": "minimax"}
    target = find_target(f"openrouter:{makers.get(maker, maker)}/{model}")
    assert name in target.facts.tags
    form = FORMS[name]
    content = f"{form.opening}{SECRET}{form.closing}A b.{form.end}"
    reply = decoded(whole({"role": "assistant", "content": content}), target)
    assert (reply.text, reply.thinking.text.strip()) == ("A b.", SECRET)


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        # A tool call stays complete for the parser of calls in text.
        (
            "muse-glimmer",
            " to=self<|message|>R<|eom|><|start|>assistant to=f<|message|><atem:function_calls>",
            "<|start|>assistant to=f<|message|><atem:function_calls>",
        ),
        ("muse-glimmer", " to=f<|message|><atem:invoke>", " to=f<|message|><atem:invoke>"),
        (
            "inkling-blocks",
            '<|content_thinking|>R<|end_message|><|message_model|>f<|content_invoke_tool_json|>{"a":1}<|end_message|>',
            '<|message_model|>f<|content_invoke_tool_json|>{"a":1}',
        ),
        (
            "solar-open",
            "<|think|>R<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>f",
            "<|begin|>assistant<|tool_calls|><|tool_call:begin|>f",
        ),
        ("solar-open", "<|think|>R<|end|><|begin|>assis", ""),
        # The closing tag of another effort.
        ("ifm", "<ifm|think>R</ifm|think_faster>A", "A"),
        ("ifm", "<ifm|think>R</think>A", "A"),
        ("hy", "<think:6124c78e>R</think:6124c78e>A", "A"),
        ("pangu", "use [UNUSED16] here", "use [UNUSED16] here"),
        ("apriel", "I said: Here are my reasoning steps:", "I said: Here are my reasoning steps:"),
        ("hunyuan-answer", "<think>\n\n</think>\n<answer>\nA\n</answer>\n", "A\n"),
        ("hunyuan-answer", "An <answer> tag", "An <answer> tag"),
        ("harmony-text", "the analysis assistant final", "the analysis assistant final"),
        ("harmony-text", "analysis of the data", "analysis of the data"),
        ("harmony-text", "analysis: the data", "analysis: the data"),
        ("harmony-text", "Analysis of a commentary", "Analysis of a commentary"),
        ("harmony-text", "The token <|end|> ends it.", "The token <|end|> ends it."),
        ("harmony-text", "my assistants finally", "my assistants finally"),
        ("harmony-text", "analysisPLANassistantfinalANSWER", "ANSWER"),
        ("harmony-text", "assistantanalysisPLANassistantfinalANSWER", "ANSWER"),
        ("harmony-text", "commentaryCOMMassistantfinalANSWER", "ANSWER"),
        ("harmony-text", "analysisPLAN<|end|>ANSWER", "ANSWER"),
        ("ernie-response", "<response>\nA\n</response>", "A"),
    ],
)
def test_the_neighbouring_cases(name: str, source: str, text: str, starts_inside: StartsInside) -> None:
    assert separate_in_every_chunking(source, [name], starts_inside).text == text


WITHOUT_END = [
    ("muse-glimmer", " to=self<|message|>R to=user<|message|>A<|eot|>", "A", "R"),
    ("muse-glimmer", "to=self<|message|>R to=self<|message|>S to=user<|message|>A", "A", "R S"),
    ("muse-glimmer", " to=self<|message|>R to=f.g<|message|><atem:invoke>", "to=f.g<|message|><atem:invoke>", "R"),
    (
        "muse-glimmer",
        " to=user<|message|>A<|eom|><|start|>assistant to=self<|message|>R to=user<|message|>B<|eot|>",
        "AB",
        "R",
    ),
    ("inkling-blocks", "<|content_thinking|>R<|content_text|>A<|end_message|>", "A", "R"),
    (
        "inkling-blocks",
        "<|content_thinking|>R<|content_invoke_tool_json|>{}<|end_message|>",
        "<|content_invoke_tool_json|>{}",
        "R",
    ),
    (
        "inkling-blocks",
        "<|content_text|>A<|end_message|><|message_model|><|content_thinking|>R<|content_text|>B",
        "AB",
        "R",
    ),
    ("solar-open", "<|think|>R<|content|>A<|flush|>", "A", "R"),
    ("solar-open", "<|think|>R<|tool_calls|><|tool_call:begin|>f", "<|tool_calls|><|tool_call:begin|>f", "R"),
]


@pytest.mark.parametrize(("name", "source", "text", "thinking"), WITHOUT_END)
@pytest.mark.parametrize("is_alone", [True, False], ids=["one grammar", "default set"])
def test_the_next_header_ends_a_thought_without_its_end(
    name: str, source: str, text: str, thinking: str, is_alone: bool, starts_inside: StartsInside
) -> None:
    tags = [name] if is_alone else None
    found = separate_in_every_chunking(source, tags, starts_inside)
    assert (found.text.strip(), " ".join((found.thinking or "").split())) == (text, thinking)
    for end in range(source.index("R"), len(source)):
        cut = separate(source[:end], tags, starts_inside=starts_inside).text
        assert "R" not in cut, source[:end]


HARMONY_TEXTS = [
    ("analysisPLANassistantfinalANSWER", "ANSWER", "PLAN", ""),
    ("analysisPLANassistantcommentaryCOMMassistantfinalANSWER", "ANSWER", "PLAN", "COMM"),
    ("PLANassistantcommentaryCOMMassistantfinalANSWER", "ANSWER", "PLAN", "COMM"),
    ("PLAN assistantfinalANSWER", "ANSWER", "PLAN", ""),
    ("analysis of it assistantfinalANSWER", "ANSWER", "analysis of it", ""),
    ("PLAN<|end|>ANSWER", "ANSWER", "PLAN", ""),
    ("PLAN<|end|>\n\nANSWER", "ANSWER", "PLAN", ""),
    ("analysisPLAN", "", "PLAN", ""),
    ("the analysis assistant final", "the analysis assistant final", "", ""),
]


@pytest.mark.parametrize(("source", "text", "thinking", "commentary"), HARMONY_TEXTS)
@pytest.mark.parametrize("late", [True, False])
def test_harmony_without_its_tokens(source: str, text: str, thinking: str, commentary: str, late: bool) -> None:
    tags = rule_of("openai/gpt-oss-20b", SELF_HOSTED).tags
    for chunks in ([source], list(source), *([source[:at], source[at:]] for at in range(1, len(source)))):
        splitter = Splitter(tags, starts_inside=False if late else "auto", late=late)
        pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.finish()
        moved = next((place for place, piece in enumerate(pieces) if piece[1] is Channel.MOVED), -1)
        said = {
            channel: "".join(each for _, kind, each in pieces[moved + 1 :] if kind is channel) for channel in Channel
        }
        thought = pieces[moved][2] if moved >= 0 else said[Channel.THINKING]
        assert (said[Channel.ANSWER].strip(), thought.strip(), said[Channel.COMMENTARY]) == (text, thinking, commentary)


@pytest.mark.parametrize("name", NAMES)
def test_time_is_linear_in_every_grammar(name: str) -> None:
    form = FORMS[name]

    def seconds(unit: str, step: int, size: int) -> float:
        source = form.opening + unit * (size // len(unit))
        began = time.process_time()
        splitter = Splitter([name], "anywhere", "auto")
        for at in range(0, len(source), step):
            splitter.feed(source[at : at + step])
        splitter.finish()
        return time.process_time() - began

    for unit in (form.opening, form.closing, form.opening[:-1] or "x", form.closing + form.opening):
        for step in (1, 10**9):
            check_linear(partial(seconds, unit, step), 1_000)

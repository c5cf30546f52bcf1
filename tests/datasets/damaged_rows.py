"""Generates rows with known answers in eight grammars, a tenth of them damaged, and checks what a run makes of them.

python -m tests.datasets.damaged_rows FOLDER --rows 1000000 --processes 2
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from asides.datasets.block_job import BlockJob
from asides.datasets.run import Plan, SeparationRun
from asides.datasets.separator import RowSeparator
from asides.datasets.tally import Tally

_WORDS = (
    "the answer of every question needs some steps then check numbers again because 42 is larger than 7 and x < y "
    "holds when a > b so [see](https://example.org) the table **below** | left | right | maybe `code` is shorter"
).split(" ")
_CODE = (
    "```python\nprint('hi')\n```",
    "```html\n<b>bold</b>\n```",
    "Use `<br>` here.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
)
# Code that quotes tags: in an answer it stays there.
_QUOTES = (
    "```\n<think>not a thought</think>\n```",
    "Write `<think>` before it, and `</think>` after it.",
    "~~~xml\n<thinking>\n~~~",
    "The token `<|end|>` ends a message.",
)
# The tags before and after a thought, and after the answer.
GRAMMARS: dict[str, tuple[str, str, str]] = {
    "think": ("<think>\n", "\n</think>\n\n", ""),
    "thinking": ("<thinking>", "</thinking>\n", ""),
    "reasoning": ("<reasoning>\n", "</reasoning>", ""),
    "[think]": ("[THINK]", "[/THINK]", ""),
    "seed": ("<seed:think>", "</seed:think>", ""),
    "kimi": ("◁think▷", "◁/think▷", ""),
    "command": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "harmony": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
}
DAMAGES = (
    "half an opening tag",
    "half a closing tag",
    "half a closing tag and no opening tag",
    "the text ends in half a tag",
    "no opening tag",
    "no closing tag",
    "a second closing tag",
    "nested",
    "a thought that quotes its tags",
    "a thought that quotes the closing tag in a fence",
    "an answer that quotes tags",
    "the answer is in the thinking",
    "tags escaped for HTML",
    "a block of an export",
)


class Truth(msgspec.Struct):
    """What a row was made of."""

    thinking: str | None
    answer: str
    grammar: str
    damage: str = ""


def make_row(chance: random.Random) -> tuple[str, Truth]:
    """The text of a row, and what is true of it."""
    thought, answer = _make_text(chance, 400), _make_text(chance, 400)
    if chance.random() < 0.1:
        return answer, Truth(None, answer, "none")
    name = chance.choice(list(GRAMMARS))
    opening, closing, end = GRAMMARS[name]
    if chance.random() >= 0.1:
        return f"{opening}{thought}{closing}{answer}{end}", Truth(thought, answer, name)
    damage = chance.choice(DAMAGES)
    truth = Truth(thought, answer, name, damage)
    match damage:
        case "half an opening tag":
            opening = _halve(chance, opening.strip())
        case "half a closing tag":
            closing = _halve(chance, closing.strip())
        case "half a closing tag and no opening tag":
            opening, closing = "", f" {_cut_clearly(chance, _get_close(name))} "
        case "the text ends in half a tag":
            end = f" {_cut_clearly(chance, _get_open(name), ends=True)}"
        case "tags escaped for HTML":
            opening, closing, end = "&lt;think&gt;", "&lt;/think&gt;", ""
        case "a block of an export":
            opening, closing, end = '<details type="reasoning" done="true">\n', "\n</details>\n", ""
        case "no opening tag":
            opening = ""
        case "no closing tag":
            closing = ""
        case "a second closing tag":
            more = _make_text(chance, 60)
            answer = f"{answer}\n{closing.strip()}\n{more}"
            # In harmony it begins one more message of the answer.
            truth.answer = answer.replace(closing, "") if name == "harmony" else answer
        case "nested":
            inner = _make_text(chance, 60)
            before, after = thought, _make_text(chance, 60)
            thought = f"{before}{opening.strip()}{inner}{_get_close(name)}{after}"
            truth.thinking = thought
        case "a thought that quotes its tags":
            quoted = f"I write `{opening.strip()}` and then `{_get_close(name)}`."
            thought = truth.thinking = f"{thought}\n{quoted if chance.random() < 0.5 else quoted[:9]}\nSo."
            if quoted not in thought:
                thought = truth.thinking = f"{thought} `{_get_close(name)}` ends it."
        case "a thought that quotes the closing tag in a fence":
            thought = truth.thinking = f"{thought}\n```\n{_get_close(name)}\n```\nSo."
        case "an answer that quotes tags":
            answer = truth.answer = f"{answer}\n\n{chance.choice(_QUOTES)}\n\nDone."
        case "the answer is in the thinking":
            thought, answer = f"{thought}\n\n{answer}", ""
    return f"{opening}{thought}{closing}{answer}{end}", truth


WRONG_FIELDS = (
    "the thinking is in the answer too",
    "the thinking is in the answer, in tags",
    "the thinking is in its field and in tags",
    "other thinking is in tags",
    "a short thought is in the answer too",
    "the thinking is in the answer too, with other blanks",
    "the thinking has its tags",
    "the thinking has the answer behind its tags",
    "the answer is in the thinking",
)


def make_conversation(chance: random.Random) -> tuple[list[dict[str, str]], Truth]:
    """A conversation with the thinking in a field of its own, or in the wrong one."""
    thought, answer = _make_text(chance, 400), _make_text(chance, 400)
    field = chance.choice(("reasoning_content", "reasoning", "thinking"))
    truth = Truth(thought, answer, "field")
    said = {field: thought, "content": answer}
    if chance.random() < 0.1:
        truth.damage = chance.choice(WRONG_FIELDS)
        match truth.damage:
            case "the thinking is in the answer too":
                said["content"] = f"{thought}\n\n{answer}"
            case "the thinking is in the answer, in tags":
                said = {"content": f"<think>\n{thought}\n</think>\n\n{answer}"}
            case "the thinking is in its field and in tags":
                said["content"] = f"<think>\n{thought}\n</think>\n\n{answer}"
            case "other thinking is in tags":
                said["content"] = f"<think>{_make_text(chance, 60)}</think>{answer}"
            case "a short thought is in the answer too":
                said[field] = truth.thinking = "I add it."
                said["content"] = chance.choice((f"I add it.\n\n{answer}", f"{answer}\nI add it."))
            case "the thinking is in the answer too, with other blanks":
                said["content"] = f"{thought.replace(' ', '  ')}\n{answer}"
            case "the thinking has its tags":
                said[field] = f"<think>\n{thought}\n</think>"
            case "the thinking has the answer behind its tags":
                said = {field: f"<think>{thought}</think>{answer}", "content": ""}
            case _:
                said = {field: f"{thought}\n\n{answer}", "content": ""}
    return [{"role": "user", "content": "What is it?"}, {"role": "assistant", **said}], truth


def _get_close(name: str) -> str:
    """The closing tag alone."""
    return {"command": "<|END_THINKING|>", "harmony": "<|end|>"}.get(name, GRAMMARS[name][1].strip())


def _get_open(name: str) -> str:
    """The opening tag alone."""
    return "<|channel|>" if name == "harmony" else GRAMMARS[name][0].strip()


def _cut_clearly(chance: random.Random, tag: str, *, ends: bool = False) -> str:
    """A piece of a tag that no other text has: its beginning with three letters or more, or all but its bracket."""
    letters = next(place for place, letter in enumerate(tag) if letter.isalpha())
    if ends or not tag.startswith("</") or chance.random() < 0.5:
        return tag[: chance.randrange(letters + 3, len(tag))]
    return tag[1:]


def _halve(chance: random.Random, tag: str) -> str:
    place = chance.randrange(1, len(tag))
    return tag[:place] if chance.random() < 0.5 else tag[place:]


def _make_text(chance: random.Random, most: int) -> str:
    """Text that begins and ends with a word, with code and Markdown inside."""
    words = chance.choices(_WORDS, k=chance.randint(8, max(9, most // 6)))
    lines = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
    if chance.random() < 0.2:
        lines.insert(chance.randint(1, len(lines)), f"\n{chance.choice(_CODE)}\n")
    text = "\n".join(lines)
    return f"So {text} end."


def write_rows(path: Path, count: int, seed: int) -> None:
    """Write rows to a file of JSON lines."""
    chance = random.Random(seed)
    with path.open("wb") as file:
        for number in range(count):
            text, truth = make_row(chance)
            file.write(msgspec.json.encode({"id": number, "response": text, "truth": truth}) + b"\n")


def write_conversations(path: Path, count: int, seed: int) -> None:
    """Write rows with conversations to a file of JSON lines."""
    chance = random.Random(seed)
    with path.open("wb") as file:
        for number in range(count):
            messages, truth = make_conversation(chance)
            file.write(msgspec.json.encode({"id": number, "messages": messages, "truth": truth}) + b"\n")


def separate_file(source: Path, output: Path, processes: int, *, messages: bool = False) -> Tally:
    """Separate the file, as the command does."""
    separator = RowSeparator(
        column=None if messages else "response", messages="messages" if messages else None, verdict="verdict"
    )
    job = BlockJob(separator)
    return SeparationRun(Plan((str(source),), job, str(output), f"{output}.undecided", processes=processes)).run()


def find_wrong_rows(output: Path) -> Iterator[dict[str, Any]]:
    """The rows of a separated file that are neither undecided nor equal to the truth, or out of order."""
    listed = {
        msgspec.json.decode(line)["row"] for line in Path(f"{output}.undecided").read_bytes().splitlines() if line
    }
    with output.open("rb") as file:
        for number, line in enumerate(file, 1):
            row = msgspec.json.decode(line)
            truth = row["truth"]
            thinking, answer = row["thinking"], row["answer"]
            if isinstance(answer, list):
                (thinking,), (answer,) = thinking, answer
            is_right = (_strip(thinking), _strip(answer)) == (
                _strip(truth["thinking"]),
                _strip(truth["answer"]),
            )
            if row["id"] != number - 1 or not (is_right or number in listed):
                yield row


def _strip(text: str | None) -> str | None:
    """A text without its outer blanks, which templates add."""
    return None if text is None else text.strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, separate, compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--messages", action="store_true", help="conversations instead of texts")
    options = parser.parse_args(arguments)
    source, output = options.folder / "rows.jsonl", options.folder / "separated.jsonl"
    (write_conversations if options.messages else write_rows)(source, options.rows, options.seed)
    began = time.monotonic()
    tally = separate_file(source, output, options.processes, messages=options.messages)
    seconds = time.monotonic() - began
    print(f"{tally.rows:,} rows in {seconds:.0f} s, {tally.undecided:,} undecided, {dict(tally.verdicts)}")  # noqa: T201
    wrong = list(find_wrong_rows(output))
    print(f"{len(wrong)} wrong:", Counter((row["truth"]["damage"], row["truth"]["grammar"]) for row in wrong))  # noqa: T201
    for row in wrong[:3]:
        print(msgspec.json.encode(row).decode()[:2000])  # noqa: T201
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()

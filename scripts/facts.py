"""Compares the facts of the provider rows with two public catalogues of models. Run it by hand, and once a month.

    python scripts/facts.py                   download both catalogues, print every difference that nobody judged
    python scripts/facts.py --all             print the judged ones too, with the reason
    python scripts/facts.py WHEEL [WHEEL]     read these wheels of `litellm` and `genai-prices`, download nothing

The catalogues are read out of the newest wheels as data; nothing of them is installed or run. A fact that one side
lacks is no difference, except that a model thinks: a row that has rules should know it. A judged difference stands in
facts_judged.toml with its reason and its date. The exit code is 1 while a difference is not judged, or a judgement is
not needed any more.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, get_args

from asides.providers.find import find_provider
from asides.providers.provider import ModelRule, Provider, merge_facts
from asides.values.thinking import EFFORTS, Effort

JUDGED = Path(__file__).resolve().parent / "facts_judged.toml"
PACKAGES = ("litellm", "genai-prices")

# The provider in the catalogue → our row. Hosts whose rows have no rules of models are left out: nothing to compare.
_SAME_NAME = (
    "anthropic azure cerebras cohere deepseek fireworks groq minimax mistral openai perplexity together zai".split()
)
LITELLM_ROWS = {
    **{name: name for name in _SAME_NAME},
    **{name: name for name in "bedrock cloudflare crusoe deepinfra moonshot ollama sambanova watsonx xai".split()},
    "bedrock_converse": "bedrock",
    "bedrock_mantle": "bedrock-mantle",
    "cohere_chat": "cohere",
    "dashscope": "qwen",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "nvidia_nim": "nvidia",
    "together_ai": "together",
    "vertex_ai-anthropic_models": "vertex-anthropic",
    "vertex_ai-language-models": "vertex",
}
PRICES_ROWS = {
    **{name: name for name in _SAME_NAME},
    "aws": "bedrock",
    "google": "google",
    "moonshotai": "moonshot",
    "x-ai": "xai",
}
# Catalogues round: 1,048,576 tokens are also written as a million.
_ROUNDING = 0.05
_CONVERSATIONS = ("chat", "responses")
_REGIONS = ("us", "eu", "apac", "global", "global-standard", "us-gov")


class Claim(NamedTuple):
    """What a catalogue says of one model at one row. None: it does not say."""

    row: str
    model: str
    source: str
    thinks: bool | None = None
    stops: bool | None = None
    """Whether thinking can be turned off."""
    efforts: Mapping[Effort, bool] = {}
    context: int | None = None
    output: int | None = None
    pictures: bool | None = None
    tools: bool | None = None
    forced_tools: bool | None = None


class Difference(NamedTuple):
    """One fact about which a row and a catalogue disagree."""

    row: str
    model: str
    fact: str
    ours: str
    theirs: str
    source: str

    def __str__(self) -> str:
        return f"{self.row}:{self.model}  {self.fact}: ours {self.ours}, {self.source} {self.theirs}"


class Judgement(NamedTuple):
    """Why the row stays as it is."""

    rows: tuple[str, ...]
    models: tuple[str, ...]
    """Globs over the model name, in lower case."""
    fact: str
    theirs: str
    """What the catalogue says. If it says something else one day, this judgement no longer holds."""
    reason: str
    date: str

    def covers(self, difference: Difference) -> bool:
        """Whether this judgement is about that difference."""
        return (
            self.fact == difference.fact
            and self.theirs == difference.theirs
            and difference.row in self.rows
            and any(fnmatchcase(difference.model.lower(), glob) for glob in self.models)
        )


# --- the catalogues ---------------------------------------------------------------------------------------------------


def read_litellm(catalogue: Mapping[str, Mapping[str, Any]], today: str) -> Iterator[Claim]:
    """The claims of litellm's catalogue about models that have not ended."""
    for key, entry in catalogue.items():
        row = LITELLM_ROWS.get(str(entry.get("litellm_provider")))
        if row is None or entry.get("mode") not in _CONVERSATIONS or str(entry.get("deprecation_date", today)) < today:
            continue
        yield Claim(
            row,
            _read_name(key, str(entry["litellm_provider"]), row),
            "litellm",
            thinks=_read_flag(entry, "supports_reasoning"),
            stops=_read_stops(entry),
            efforts=_read_efforts(entry),
            context=_read_number(entry, "max_input_tokens"),
            output=_read_number(entry, "max_output_tokens"),
            pictures=_read_flag(entry, "supports_vision"),
            tools=_read_flag(entry, "supports_function_calling"),
            forced_tools=_read_flag(entry, "supports_forced_tool_use"),
        )


def _read_name(key: str, provider: str, row: str) -> str:
    """The model's name at the host: without the catalogue's prefix and without a region."""
    name = key
    head, slash, rest = key.partition("/")
    if slash and head in (provider, provider.partition("-")[0], "bedrock", "cohere"):
        name = rest
    if row in ("bedrock", "bedrock-mantle"):
        return name.rsplit("/", 1)[-1]
    head, slash, rest = name.partition("/")
    return rest if slash and row == "azure" and head in _REGIONS else name


def _read_flag(entry: Mapping[str, Any], name: str) -> bool | None:
    value = entry.get(name)
    return value if isinstance(value, bool) else None


def _read_number(entry: Mapping[str, Any], name: str) -> int | None:
    value = entry.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _read_stops(entry: Mapping[str, Any]) -> bool | None:
    always = _read_flag(entry, "thinking_always_on")
    if always is not None:
        return not always
    levels = entry.get("reasoning_effort_levels")
    if isinstance(levels, list):
        return "none" in levels
    return _read_flag(entry, "supports_none_reasoning_effort")


def _read_efforts(entry: Mapping[str, Any]) -> dict[Effort, bool]:
    levels = entry.get("reasoning_effort_levels")
    if isinstance(levels, list):
        return {effort: effort in levels for effort in EFFORTS}
    flags = {effort: _read_flag(entry, f"supports_{effort}_reasoning_effort") for effort in get_args(Effort)}
    return {effort: flag for effort, flag in flags.items() if flag is not None}


def read_prices(source: str) -> Iterator[Claim]:
    """The claims of genai-prices, whose catalogue is Python source. It is parsed and never run."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Provider"):
            continue
        fields = {keyword.arg: keyword.value for keyword in node.keywords}
        row = PRICES_ROWS.get(str(_read_constant(fields.get("id"))))
        models = fields.get("models")
        if row is None or not isinstance(models, ast.List):
            continue
        for model in models.elts:
            if not isinstance(model, ast.Call):
                continue
            facts = {keyword.arg: _read_constant(keyword.value) for keyword in model.keywords}
            context = facts.get("context_window")
            if isinstance(context, int) and not facts.get("deprecated"):
                yield Claim(row, str(facts["id"]), "genai-prices", context=context)


def _read_constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


# --- the comparison ---------------------------------------------------------------------------------------------------


def find_row(name: str) -> Provider:
    """The row in the dialect where its models do most: Responses, if they have rules of their own there."""
    row = find_provider(name)
    richer = any(variant.dialect == "openai_responses" and variant.models for variant in row.also)
    return (row.with_dialect("openai_responses") if richer else None) or row


def compare(claims: Iterable[Claim], find: Callable[[str], Provider] = find_row) -> list[Difference]:
    """Every difference between these claims and the rows, each once."""
    found: dict[Difference, None] = {}
    for claim in claims:
        row = find(claim.row)
        rule = row.rule(claim.model)
        for fact, ours, theirs in _contradict(claim, rule, row):
            found[Difference(claim.row, claim.model, fact, ours, theirs, claim.source)] = None
    return list(found)


def _contradict(claim: Claim, rule: ModelRule, row: Provider) -> Iterator[tuple[str, str, str]]:
    """The facts that contradict each other: (fact, ours, theirs)."""
    # Of a model that it does not know, the row claims nothing; that others know that it thinks is worth a look.
    differs = claim.thinks is not None and claim.thinks != (rule.thinking in ("always", "optional"))
    if differs and (claim.thinks or rule.thinking != "unknown"):
        yield "thinking", rule.thinking, "thinks" if claim.thinks else "never"
        return
    if rule.models == "*" or rule.assumed:
        return
    if rule.thinking in ("always", "optional"):
        yield from _contradict_amount(claim, rule)
    if claim.output is not None and rule.max_output not in (None, claim.output):
        yield "output", str(rule.max_output), str(claim.output)
    if claim.context is not None and rule.context is not None and not _is_same_room(claim.context, rule):
        yield "context", str(rule.context), str(claim.context)
    pictures = merge_facts(rule, row.quirks).pictures
    if claim.pictures is not None and claim.pictures != pictures:
        yield "pictures", _to_word(pictures), _to_word(claim.pictures)
    if claim.tools is not None and claim.tools != (rule.tools is True):
        yield "tools", _to_word(rule.tools is True), _to_word(claim.tools)
    forced = bool(rule.forced_tools)
    if claim.forced_tools is not None and claim.forced_tools != forced:
        yield "forced tools", _to_word(forced), _to_word(claim.forced_tools)


def _contradict_amount(claim: Claim, rule: ModelRule) -> Iterator[tuple[str, str, str]]:
    if claim.stops is not None and claim.stops != (rule.thinking == "optional"):
        yield "off", _to_word(rule.thinking == "optional"), _to_word(claim.stops)
    takes = rule.efforts
    if takes is None:
        return
    wrong = [(effort, flag) for effort, flag in claim.efforts.items() if flag != (effort in takes)]
    if wrong:
        yield (
            "efforts",
            " ".join(takes) or "none",
            ", ".join(effort if flag else f"not {effort}" for effort, flag in wrong),
        )


def _is_same_room(tokens: int, rule: ModelRule) -> bool:
    """Whether this is the rule's context window. Some catalogues count only the input."""
    if rule.context is None:
        return True
    rooms = (rule.context, rule.context - (rule.max_output or 128_000))
    return any(abs(tokens - room) <= room * _ROUNDING for room in rooms)


def _to_word(value: bool) -> str:
    return "yes" if value else "no"


# --- judgements -------------------------------------------------------------------------------------------------------


def read_judgements(text: str) -> list[Judgement]:
    """Read facts_judged.toml. A judgement that would cover every model of a row is refused."""
    judgements: list[Judgement] = []
    for entry in tomllib.loads(text).get("judged", []):
        judgement = Judgement(
            tuple(entry["rows"]),
            tuple(entry["models"]),
            entry["fact"],
            entry["theirs"],
            entry["reason"],
            str(entry["date"]),
        )
        if not judgement.reason.strip() or any(not glob.strip("*?") for glob in judgement.models):
            raise ValueError(f"a judgement names its models and its reason: {judgement}")
        judgements.append(judgement)
    return judgements


class Verdict(NamedTuple):
    """The differences with and without a judgement, and the judgements that cover none."""

    unexplained: list[Difference]
    judged: list[tuple[Difference, Judgement]]
    unused: list[Judgement]


def judge(differences: Sequence[Difference], judgements: Sequence[Judgement]) -> Verdict:
    """Find the judgement of every difference; the first that covers it counts."""
    unexplained: list[Difference] = []
    judged: list[tuple[Difference, Judgement]] = []
    for difference in differences:
        found = next((judgement for judgement in judgements if judgement.covers(difference)), None)
        if found is None:
            unexplained.append(difference)
        else:
            judged.append((difference, found))
    needed = {judgement for _, judgement in judged}
    return Verdict(unexplained, judged, [judgement for judgement in judgements if judgement not in needed])


# --- the command ------------------------------------------------------------------------------------------------------


def download(folder: Path) -> list[Path]:
    """Download the newest wheels, without what they depend on."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        str(folder),
    ]
    subprocess.run([*command, *PACKAGES], check=True)
    return sorted(folder.glob("*.whl"))


def read_wheel(wheel: Path, today: str) -> list[Claim]:
    """The claims of the catalogue inside a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        catalogue = next((name for name in names if "model_prices_and_context_window" in name), None)
        if catalogue is not None:
            return list(read_litellm(json.loads(archive.read(catalogue)), today))
        prices = next((name for name in names if name.endswith("genai_prices/data.py")), None)
        if prices is None:
            raise ValueError(f"{wheel.name} holds no catalogue that is known here.")
        return list(read_prices(archive.read(prices).decode()))


def main(words: Sequence[str] | None = None) -> int:
    """Compare, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="*", type=Path, metavar="WHEEL")
    parser.add_argument("--all", action="store_true", help="print the judged differences too")
    parser.add_argument("--judged", type=Path, default=JUDGED, help="the file with the judgements")
    arguments = parser.parse_args(words)
    today = datetime.now(UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as folder:
        wheels = arguments.wheels or download(Path(folder))
        claims = [claim for wheel in wheels for claim in read_wheel(wheel, today)]
    verdict = judge(compare(claims), read_judgements(arguments.judged.read_text("utf-8")))
    if arguments.all:
        for difference, judgement in verdict.judged:
            print(f"judged    {difference}\n          {judgement.reason} ({judgement.date})")
    for difference in verdict.unexplained:
        print(f"differs   {difference}")
    for judgement in verdict.unused:
        print(f"unused    {' '.join(judgement.rows)}: {' '.join(judgement.models)}  {judgement.fact}")
    names = ", ".join(wheel.name.split("-py3")[0].split("-cp")[0] for wheel in wheels)
    print(
        f"{names}: {len(claims)} models compared; {len(verdict.unexplained)} differences are not judged, "
        f"{len(verdict.judged)} are; {len(verdict.unused)} judgements are not needed."
    )
    return 1 if verdict.unexplained or verdict.unused else 0


if __name__ == "__main__":
    sys.exit(main())

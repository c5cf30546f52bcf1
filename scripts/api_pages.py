"""Writes the pages of the API reference, api/*.md, from the table of public names in src/asides/__init__.py.

`scripts/site_hooks.py` adds them while MkDocs builds the site; they are not files of the repository. A page names the
objects, and mkdocstrings fills in their signatures and docstrings. A new module with public names gets its theme in
`THEMES`.
"""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "src" / "asides"


class Theme(NamedTuple):
    """One page."""

    title: str
    opening: str
    modules: tuple[str, ...]
    """The modules whose public names it lists; a name that ends in a dot stands for everything inside."""
    shows_inherited: bool = True


THEMES = {
    "calling": Theme(
        "Calling",
        "Ask a model, stream its reply, see a request before it is sent. [Options](../options.md) lists what a call "
        "takes, [settings](../settings.md) where defaults come from.",
        (
            "asides.client",
            "asides.aio",
            "asides.flows.",
            "asides.options",
            "asides.settings",
            "asides.telemetry.instrument",
            "asides.transports.answers",
            "asides.transports.async_",
            "asides.transports.sync",
        ),
    ),
    "messages": Theme(
        "Messages",
        "What you send: messages and their parts. [Conversations](../conversations.md) shows them in use.",
        ("asides.values.messages", "asides.values.parts"),
    ),
    "events-and-replies": Theme(
        "Events and replies",
        "What comes back. [Streaming](../streaming.md) explains the events, [quickstart](../quickstart.md) the reply.",
        ("asides.values.", "asides.wire."),
    ),
    "thinking": Theme(
        "Thinking",
        "Asking for thinking, and thinking as a value. [Thinking](../thinking.md), [inline tags](../inline-tags.md) "
        "and [data at rest](../data-at-rest.md) are the guides.",
        ("asides.values.thinking", "asides.wire.inline_tags", "asides.datasets."),
    ),
    "agents": Theme(
        "Agents and tools",
        "Models that call your functions. [From a question to an agent](../agents.md) is the guide.",
        (
            "asides.agents.",
            "asides.flows.run_config",
            "asides.transports.run_async",
            "asides.transports.run_sync",
            "asides.values.result",
            "asides.values.tools",
        ),
    ),
    "batches": Theme(
        "Batches",
        "Many requests as one job that survives its process. [Batches](../batch.md) is the guide.",
        (),
    ),
    "conversations": Theme(
        "Conversations",
        "Histories that can always be sent. [Conversations](../conversations.md) is the guide, and [Repair a stuck "
        "conversation](../doctor.md) that of histories that cannot.",
        ("asides.conversations.", "asides.database", "asides.history."),
    ),
    "errors": Theme(
        "Errors",
        "Every error derives from `AsidesError`. [Errors](../errors.md) says what to do about each.",
        ("asides.values.errors", "asides.values.rejections"),
        shows_inherited=False,
    ),
    "providers": Theme(
        "Providers",
        "Rows of facts about hosts and models. [Adding a provider](../adding-a-provider.md) is the guide.",
        ("asides.providers.", "asides.values.model_info", "asides.dialects"),
    ),
    "drop-in-clients": Theme(
        "Drop-in clients",
        "The clients of other libraries, answered by any provider. [Keep your code](../keep-your-code.md) is the "
        "guide. Each module also has the names of the package that it stands for.",
        (),
        shows_inherited=False,
    ),
    "front-ends": Theme(
        "Front ends",
        "Streams for web front ends, and what these post: `asides.ui`. [Keep your code: your web front "
        "end](../web.md#vercels-ai-sdk-and-ag-ui) is the guide.",
        (),
    ),
    "gateway": Theme(
        "Gateway",
        "A gateway inside your own program: `import asides_gateway`. [Gateway](../gateway.md#from-a-program) is the "
        "guide.",
        (),
    ),
    "testing": Theme(
        "Testing",
        "The offline stage, and the suite that checks a provider: `from asides_stage import Stage`. "
        "[Testing with the stage](../testing-with-the-stage.md) is the guide.",
        (),
    ),
}
# Of these modules, the names that are ours.
_CLIENTS = {
    "asides.openai": ("OpenAI", "AsyncOpenAI", "AsidesTransport", "AsyncAsidesTransport", "RelayOptions"),
    "asides.anthropic": ("Anthropic", "AsyncAnthropic"),
    "asides.langchain": ("ChatAsides",),
}
_STAGE = ROOT / "packages" / "asides-stage" / "src" / "asides_stage"
_BATCH = ROOT / "packages" / "asides-batch" / "src" / "asides_batch"
_GATEWAY = ROOT / "packages" / "asides-gateway" / "src" / "asides_gateway"


def find_theme(module: str) -> str:
    """The page of a module's names; the longest match counts."""
    fits = [
        (len(name), page)
        for page, theme in THEMES.items()
        for name in theme.modules
        if module == name or (name.endswith(".") and f"{module}.".startswith(name))
    ]
    if not fits:
        raise SystemExit(f"{module} has public names and no theme; add it to THEMES in scripts/api_pages.py")
    return max(fits)[1]


def collect_names(names_by_module: Mapping[str, str]) -> dict[str, list[str]]:
    """For each page the objects that it lists, by their public path."""
    pages: dict[str, list[str]] = {page: [] for page in THEMES}
    for module, names in names_by_module.items():
        pages[find_theme(module)] += [f"asides.{name}" for name in names.split()]
    pages["calling"] += ["asides.aio", "asides.options.Options"]
    pages["drop-in-clients"] += _CLIENTS
    pages["front-ends"].append("asides.ui")
    for page, home in (("batches", _BATCH), ("gateway", _GATEWAY)):
        pages[page] += [f"{home.name}.{name}" for name in read_exported(home / "__init__.py")]
    for folder in ("stage", "conformance"):
        pages["testing"] += [f"asides_stage.{name}" for name in read_exported(_STAGE / folder / "__init__.py")]
    return {page: sorted(names, key=_order) for page, names in pages.items()}


def read_exported(path: Path) -> list[str]:
    """The `__all__` of a module, read as data."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            exported: list[str] = ast.literal_eval(node.value)
            return exported
    raise SystemExit(f"{path} has no __all__")


def _order(path: str) -> tuple[bool, bool, str]:
    """Functions before classes, as a reader looks for them, and the module of async functions behind the others."""
    name = path.rpartition(".")[2]
    return name[0].isupper(), name == "aio", name.lower()


def write_pages() -> Iterator[tuple[str, str]]:
    """Each page: its path below docs/, and its text."""
    names_by_module = runpy.run_path(str(HOME / "__init__.py"))["_NAMES_BY_MODULE"]
    for page, names in collect_names(names_by_module).items():
        theme = THEMES[page]
        blocks = [f"# {theme.title}", theme.opening]
        for name in names:
            options = [] if theme.shows_inherited else ["inherited_members: false"]
            if name == "asides.aio":
                # Its classes are public names of `asides`, and `run` is for agents.
                members = [each for each in read_exported(HOME / "aio.py") if each.islower() and each != "run"]
                options = [f"members: [{', '.join(members)}]", "show_root_full_path: true"]
            if name == "asides.ui":
                options = [f"members: [{', '.join(read_exported(HOME / 'ui.py'))}]", "show_root_full_path: true"]
            if name in _CLIENTS:
                options += [f"members: [{', '.join(_CLIENTS[name])}]", "show_root_full_path: true"]
            lines = "".join(f"\n        {option}" for option in options)
            blocks.append(f"::: {name}{f'{chr(10)}    options:{lines}' if options else ''}")
            if name == "asides.options.Options":
                blocks.append(runpy.run_path(str(HOME / "option_help.py"))["OPTIONS_TEXT"])
        yield f"api/{page}.md", "\n\n".join(blocks) + "\n"

"""The table of start-up: the cost of the import, of a first answer in a new process, and the installed size.

Each figure comes from a new process. CPU is that of the whole process minus that of a bare Python.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.environments import INSTALLERS, ROOT, build_environ, find_python, site_packages
from bench.tables import Row, Table


class Start(NamedTuple):
    name: str
    environment: str
    # The imports of a program that uses the sync client.
    imports: str
    # Code for one streamed answer; `URL` is the address of the server.
    first_answer: str = ""


BARE = "bare Python"
_CHAT = "model='m', messages=[{'role': 'user', 'content': 'hi'}], stream=True"
_POST = "body=b'{}', headers={'Content-Type': 'application/json'}"

STARTS = (
    Start(BARE, "floor", "pass", "pass"),
    Start(
        "urllib3 + msgspec",
        "floor",
        "import msgspec, urllib3",
        f"r = urllib3.PoolManager().request('POST', URL + '/v1/chat/completions', preload_content=False, {_POST})\n"
        "for _ in r.stream(65536): pass",
    ),
    Start("aiohttp + msgspec", "floor", "import aiohttp, msgspec"),
    Start(
        "asides",
        "asides",
        "import asides",
        "with asides.stream('deepseek:m', 'hi', base_url=URL + '/v1', api_key='x') as events:\n"
        "    for _ in events: pass\n"
        "    assert events.reply.text",
    ),
    Start("asides, with Client", "asides", "import asides; asides.Client"),
    Start("asides, with AsyncClient", "asides", "import asides; asides.AsyncClient"),
    Start(
        "openai",
        "openai",
        "from openai import OpenAI",
        f"for _ in OpenAI(api_key='x', base_url=URL + '/v1').chat.completions.create({_CHAT}): pass",
    ),
    Start(
        "anthropic",
        "anthropic",
        "from anthropic import Anthropic",
        f"for _ in Anthropic(api_key='x', base_url=URL).messages.create(max_tokens=9, {_CHAT}): pass",
    ),
    Start(
        "any-llm",
        "any_llm",
        "from any_llm import completion",
        f"for _ in completion(provider='openai', api_key='x', api_base=URL + '/v1', {_CHAT}): pass",
    ),
    Start(
        "langchain",
        "langchain",
        "from langchain_openai import ChatOpenAI",
        "for _ in ChatOpenAI(model='m', api_key='x', base_url=URL + '/v1').stream('hi'): pass",
    ),
    Start("llm", "llm", "import llm"),
    Start("mirascope", "mirascope", "from mirascope import llm"),
    Start(
        "pydantic-ai",
        "pydantic_ai",
        "from pydantic_ai.direct import model_request_stream_sync as request\n"
        "from pydantic_ai.models.openai import OpenAIChatModel\n"
        "from pydantic_ai.providers.openai import OpenAIProvider",
        "from pydantic_ai.messages import ModelRequest\n"
        "model = OpenAIChatModel('m', provider=OpenAIProvider(api_key='x', base_url=URL + '/v1'))\n"
        "with request(model, [ModelRequest.user_text_prompt('hi')]) as events:\n"
        "    for _ in events: pass",
    ),
    Start(
        "litellm",
        "litellm",
        "from litellm import completion",
        f"for _ in completion(api_base=URL + '/v1', api_key='x', {_CHAT.replace(chr(39) + 'm', chr(39) + 'openai/m')})"
        ": pass",
    ),
)
QUICK = (BARE, "urllib3 + msgspec", "aiohttp + msgspec", "asides", "asides, with Client", "asides, with AsyncClient")
# Smaller values are noise, so ratios divide by at least this.
LEAST_MS = 1.0


def cpu_ms(environment: str, code: str) -> float | None:
    """CPU of one Python process that runs the code; None when it failed."""
    process = subprocess.Popen(
        [str(find_python(environment)), "-c", code],
        cwd=ROOT,
        env=build_environ(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000 if status == 0 else None


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def installed(environment: str) -> tuple[float, int] | None:
    """Megabytes and packages of an environment, without compiled files and installers."""
    folder = site_packages(environment)
    if folder is None:
        return None
    distributions = [d for d in importlib.metadata.distributions(path=[str(folder)]) if d.name not in INSTALLERS]
    size = sum(path.stat().st_size for path in _files(folder) if path.relative_to(folder).parts[0] not in INSTALLERS)
    if environment != "asides":
        return size / 1e6, len(distributions)
    # asides is imported from the checkout, so its files and its own entry are added here.
    size += sum(path.stat().st_size for path in _files(ROOT / "src" / "asides"))
    return size / 1e6, len(distributions) + 1


def imports(base_url: str, *, rounds: int, quick: bool) -> Table:
    starts = [s for s in STARTS if find_python(s.environment) is not None and (not quick or s.name in QUICK)]
    url = f"URL = '{base_url}/burst-30'\n"
    importing: dict[str, list[float | None]] = {start.name: [] for start in starts}
    answering: dict[str, list[float | None]] = {start.name: [] for start in starts}
    for _ in range(rounds):
        for start in starts:
            importing[start.name].append(cpu_ms(start.environment, start.imports))
            if start.first_answer:
                code = f"{url}{start.imports}\n{start.first_answer}"
                answering[start.name].append(cpu_ms(start.environment, code))
    bare = _middle(importing[BARE]) or 0.0
    rows: list[Row] = []
    for start in starts:
        row: Row = {"name": start.name}
        for column, taken in (("import_ms", importing), ("first_ms", answering)):
            middle = _middle(taken[start.name])
            row[column] = None if middle is None else middle - bare if start.name != BARE else middle
        if start.environment != "floor" and "," not in start.name and (found := installed(start.environment)):
            row["megabytes"], row["packages"] = found
        rows.append(row)
    ours = next((row for row in rows if row["name"] == "asides"), {})
    for row in rows:
        for column in ("import_ms", "first_ms"):
            if row["name"] != BARE and row.get(column) is not None and ours.get(column) is not None:
                row[f"{column}_times"] = row[column] / max(ours[column], LEAST_MS)
    columns = {
        "name": "package",
        "import_ms": "import, CPU ms",
        "import_ms_times": "÷ asides",
        "first_ms": "import + first answer, CPU ms",
        "first_ms_times": "÷ asides",
        "megabytes": "installed MB",
        "packages": "packages",
    }
    note = (
        "CPU of a fresh process above that of a bare Python (first row). Ratios take at least 1 ms for asides, whose "
        "names load when first used. Installed: no extras, no compiled files."
    )
    return Table("imports", f"imports and installed size, {rounds} rounds", columns, rows, [note])


def _middle(values: list[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured and len(measured) == len(values) else None

"""The table of start-up: the cost of an import with its client, of a first `ask` in a new process, and the size.

Each figure comes from a new process. CPU is that of the whole process minus that of a bare Python. An import alone says
nothing: libraries load their parts when they are first used.
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
from bench.payloads import BODY_SIZES
from bench.streams import progress, ratio
from bench.tables import Row, Table


class Start(NamedTuple):
    name: str
    environment: str
    # The imports of a program that asks.
    imports: str
    # Code that makes a client that can send; `URL` is the address of the server.
    client: str
    # Code for one answer of 2 KB in one body, and the check that it came.
    ask: str


BARE = "bare Python"
_CHAT = "model='m', messages=[{'role': 'user', 'content': 'hi'}]"
_STRUCTS = (
    "Message = msgspec.defstruct('Message', [('content', str)])\n"
    "Choice = msgspec.defstruct('Choice', [('message', Message)])\n"
    "Completion = msgspec.defstruct('Completion', [('choices', list[Choice])])\n"
    "decode = msgspec.json.Decoder(Completion).decode\n"
)
_SENT = "msgspec.json.encode({'model': 'm', 'messages': [{'role': 'user', 'content': 'hi'}]})"
_HEADERS = "headers={'Content-Type': 'application/json'}"
_TEXT = "assert answer.choices[0].message.content"

STARTS = (
    Start(BARE, "floor", "pass", "pass", "pass"),
    Start(
        "urllib3 + msgspec",
        "floor",
        "import msgspec, urllib3",
        f"{_STRUCTS}client = urllib3.PoolManager()",
        f"sent = client.request('POST', URL + '/v1/chat/completions', body={_SENT}, {_HEADERS})\n"
        f"answer = decode(sent.data)\n{_TEXT}",
    ),
    Start(
        "aiohttp + msgspec",
        "floor",
        "import asyncio, aiohttp, msgspec",
        f"{_STRUCTS}async def make(): return aiohttp.ClientSession()\nrunner = asyncio.Runner()\n"
        "client = runner.run(make())",
        "async def ask():\n"
        "    async with client:\n"
        f"        async with client.post(URL + '/v1/chat/completions', data={_SENT}, {_HEADERS}) as sent:\n"
        "            return decode(await sent.read())\n"
        f"answer = runner.run(ask())\n{_TEXT}",
    ),
    Start(
        "asides",
        "asides",
        "import asides",
        "client = asides.Client()",
        "assert client.ask('deepseek:m', 'hi', base_url=URL + '/v1', api_key='x').text",
    ),
    Start(
        "asides, async",
        "asides",
        "import asyncio, asides",
        "async def make(): return asides.AsyncClient()\nrunner = asyncio.Runner()\nclient = runner.run(make())",
        "async def ask():\n"
        "    async with client:\n"
        "        return await client.ask('deepseek:m', 'hi', base_url=URL + '/v1', api_key='x')\n"
        "assert runner.run(ask()).text",
    ),
    Start(
        "openai",
        "openai",
        "from openai import OpenAI",
        "client = OpenAI(api_key='x', base_url=URL + '/v1')",
        f"answer = client.chat.completions.create({_CHAT})\n{_TEXT}",
    ),
    Start(
        "anthropic",
        "anthropic",
        "from anthropic import Anthropic",
        "client = Anthropic(api_key='x', base_url=URL)",
        f"assert client.messages.create(max_tokens=9, {_CHAT}).content[1].text",
    ),
    Start(
        "google-genai",
        "google_genai",
        "from google import genai",
        "client = genai.Client(api_key='x', http_options={'base_url': URL})",
        "assert client.models.generate_content(model='gemini-2.5-flash', contents='hi').text",
    ),
    Start(
        "cohere",
        "cohere",
        "import cohere",
        "client = cohere.ClientV2(api_key='x', base_url=URL)",
        f"assert client.chat({_CHAT}).message.content[1].text",
    ),
    Start(
        "ollama",
        "ollama",
        "import ollama",
        "client = ollama.Client(host=URL)",
        f"assert client.chat({_CHAT}).message.content",
    ),
    Start(
        "boto3",
        "boto3",
        "import boto3",
        "client = boto3.client('bedrock-runtime', endpoint_url=URL, region_name='us-east-1',\n"
        "    aws_access_key_id='x', aws_secret_access_key='x')",
        "asked = [{'role': 'user', 'content': [{'text': 'hi'}]}]\n"
        "assert client.converse(modelId='m', messages=asked)['output']['message']['content'][1]['text']",
    ),
    Start(
        "any-llm",
        "any_llm",
        "from any_llm import AnyLLM",
        "client = AnyLLM.create('openai', api_key='x', api_base=URL + '/v1')",
        f"answer = client.completion({_CHAT})\n{_TEXT}",
    ),
    Start(
        "langchain",
        "langchain",
        "from langchain_openai import ChatOpenAI",
        "client = ChatOpenAI(model='m', api_key='x', base_url=URL + '/v1')",
        "assert client.invoke('hi').content",
    ),
    Start(
        "pydantic-ai",
        "pydantic_ai",
        "from pydantic_ai.direct import model_request_sync as request\n"
        "from pydantic_ai.messages import ModelRequest\n"
        "from pydantic_ai.models.openai import OpenAIChatModel\n"
        "from pydantic_ai.providers.openai import OpenAIProvider",
        "client = OpenAIChatModel('m', provider=OpenAIProvider(api_key='x', base_url=URL + '/v1'))",
        "assert request(client, [ModelRequest.user_text_prompt('hi')]).parts",
    ),
    Start(
        "litellm",
        "litellm",
        "from litellm import completion",
        "pass",
        "asked = [{'role': 'user', 'content': 'hi'}]\n"
        f"answer = completion(model='openai/m', messages=asked, api_base=URL + '/v1', api_key='x')\n{_TEXT}",
    ),
)
QUICK = (BARE, "urllib3 + msgspec", "aiohttp + msgspec", "asides", "asides, async")
# The large libraries take seconds to start: they do so in the first rounds only.
SLOW_ROUNDS = 2
# The bare clients and asides, whose cold requests are compared with each other.
REFERENCES = {"asides": "urllib3 + msgspec", "asides, async": "aiohttp + msgspec"}


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
    url = f"URL = '{base_url}/body-{BODY_SIZES['2 KB']}'\n"
    taken: dict[str, dict[str, list[float | None]]] = {start.name: {"client": [], "ask": []} for start in starts}
    for number in range(rounds):
        shift = number * len(starts) // rounds
        for start in starts[shift:] + starts[:shift]:
            if number >= SLOW_ROUNDS and start.name not in (*QUICK, "openai"):
                continue
            ready = f"{url}{start.imports}\n{start.client}"
            asked = f"{ready}\n{start.ask}"
            if number == 0:
                # A process compiles what it imports for the first time.
                cpu_ms(start.environment, asked)
            for column, code in (("client", ready), ("ask", asked)):
                taken[start.name][column].append(cpu_ms(start.environment, code))
        progress(f"  round {number + 1} of {rounds}")
    rows: list[Row] = []
    for start in starts:
        row: Row = {"name": start.name}
        for column, values in taken[start.name].items():
            above = _above_bare(values, taken[BARE][column])
            if start.name == BARE:
                row[f"{column}_ms"] = _middle(values)
            elif above is not None:
                row[f"{column}_ms"] = median(above)
                reference = REFERENCES.get(start.name, REFERENCES["asides"])
                for name, other in (("times", "asides"), ("bare", reference)):
                    others = _above_bare(taken[other][column][: len(above)], taken[BARE][column])
                    row[f"{column}_{name}"] = ratio(above, others)
        if start.environment != "floor" and "," not in start.name and (found := installed(start.environment)):
            row["megabytes"], row["packages"] = found
        rows.append(row)
    columns = {
        "name": "package",
        "client_ms": "import + client, CPU ms",
        "client_bare": "÷ bare client",
        "client_times": "÷ asides",
        "ask_ms": "import + client + ask, CPU ms",
        "ask_bare": "÷ bare client",
        "ask_times": "÷ asides",
        "megabytes": "installed MB",
        "packages": "packages",
    }
    note = (
        "CPU of a new process above that of a bare Python (first row). The answer is one body of 2 KB. Bare client: "
        "urllib3 + msgspec; for asides, async: aiohttp + msgspec. Installed: no extras of asides, the extras of the "
        "others that this benchmark uses; no compiled files."
    )
    return Table("imports", f"a new process: client, first ask, installed size; {rounds} rounds", columns, rows, [note])


def _above_bare(values: list[float | None], bare: list[float | None]) -> list[float] | None:
    base = _middle(bare)
    if base is None or None in values:
        return None
    # Less than a millisecond is noise.
    return [max(1.0, value - base) for value in values if value is not None]


def _middle(values: list[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return median(measured) if measured and len(measured) == len(values) else None

"""One environment for each library, so that the pins and imports of one do not affect another.

Lists their packages and finds their interpreters.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tomllib
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
ENVIRONMENTS_FOLDER = Path(os.environ.get("BENCH_VENVS", BENCH / ".venvs"))

# asides is imported from this checkout. Its environment has the dependencies that it declares.
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ASIDES_NEEDS: tuple[str, ...] = tuple(_PROJECT["dependencies"])

# What `asides serve` needs, and the loop that it uses when it is installed.
GATEWAY_NEEDS: tuple[str, ...] = (
    *ASIDES_NEEDS,
    *(
        need
        for extra in ("relay", "gateway", "postgres")
        for need in _PROJECT["optional-dependencies"][extra]
        if not need.startswith("asides[")
    ),
    "uvloop",
)

# The packages to install.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "asides": ASIDES_NEEDS,
    "gateway": GATEWAY_NEEDS,
    "floor": ("aiohttp", "httptools", "httpx", "msgspec", "urllib3"),
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "google_genai": ("google-genai",),
    "cohere": ("cohere",),
    "ollama": ("ollama",),
    "boto3": ("boto3",),
    "pydantic_ai": ("pydantic-ai-slim[openai,anthropic]",),
    "litellm": ("litellm",),
    "litellm_proxy": ("litellm[proxy]",),
    "langchain": ("langchain-openai", "langchain-anthropic"),
    "any_llm": ("any-llm-sdk[openai,anthropic]",),
    "mirascope": ("mirascope[openai,anthropic]",),
    "llm": ("llm",),
    "openai_agents": ("openai-agents",),
}

INSTALLERS = ("pip", "setuptools", "wheel")


def find_folder(environment: str) -> Path:
    return ENVIRONMENTS_FOLDER / environment


def find_python(environment: str) -> Path | None:
    """The interpreter of an environment; None when it is not installed.

    Floors and asides need only the dependencies of asides, so the interpreter of the benchmark can run them too.
    """
    scripts = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    python = find_folder(environment) / scripts
    if python.exists():
        return python
    return Path(sys.executable) if environment in ("asides", "floor", "gateway") else None


def build_environ(environment: str) -> dict[str, str]:
    """The variables of a contestant's process: no proxies, no telemetry, no real keys, no files in the user's home."""
    home = BENCH / ".home"
    variables = {
        **os.environ,
        "OPENAI_API_KEY": "x",
        "ANTHROPIC_API_KEY": "x",
        "NO_PROXY": "*",
        "no_proxy": "*",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "TIKTOKEN_CACHE_DIR": str(home / "tiktoken"),
        "LLM_USER_PATH": str(home / "llm"),
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONWARNINGS": "ignore",
    }
    # With it, every import would compile again.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.pop("PYTHONPATH", None)
    if environment == "asides":
        variables["PYTHONPATH"] = str(ROOT / "src")
    return variables


def site_packages(environment: str) -> Path | None:
    found = sorted(find_folder(environment).glob("[Ll]ib*/**/site-packages"))
    return found[0] if found else None


def versions() -> dict[str, list[str]]:
    """The requested packages of each environment, with the installed versions."""
    found: dict[str, list[str]] = {}
    for environment, requirements in ENVIRONMENTS.items():
        folder = site_packages(environment)
        if folder is None and find_python(environment) is None:
            found[environment] = []
            continue
        where = [str(folder)] if folder is not None else sys.path
        names = [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in requirements]
        known = {_normal(d.name): d.version for d in importlib.metadata.distributions(path=where)}
        found[environment] = [f"{name} {known[_normal(name)]}" for name in names if _normal(name) in known]
    return found


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")

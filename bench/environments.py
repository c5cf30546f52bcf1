"""Where each contestant lives: one environment per library, so that no one's pins or imports touch another's.

Says what is in an environment and how to start Python there. Does not create them: that is `install_peers.py`.
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

# asides itself is not installed but read from this checkout, in an environment that has what it declares to need.
ASIDES_NEEDS: tuple[str, ...] = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"],
)

# What is asked of the installer.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "asides": ASIDES_NEEDS,
    "floor": ("aiohttp", "httptools", "httpx", "msgspec", "urllib3"),
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "pydantic_ai": ("pydantic-ai-slim[openai,anthropic]",),
    "litellm": ("litellm",),
    "langchain": ("langchain-openai", "langchain-anthropic"),
    "any_llm": ("any-llm-sdk[openai,anthropic]",),
    "mirascope": ("mirascope[openai,anthropic]",),
    "llm": ("llm",),
}

INSTALLERS = ("pip", "setuptools", "wheel")


def find_folder(environment: str) -> Path:
    return ENVIRONMENTS_FOLDER / environment


def find_python(environment: str) -> Path | None:
    """The environment's interpreter, or None when it is not installed.

    Floors and asides need only what asides itself needs, so they fall back on the interpreter that runs the benchmark.
    """
    scripts = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    python = find_folder(environment) / scripts
    if python.exists():
        return python
    return Path(sys.executable) if environment in ("asides", "floor") else None


def build_environ(environment: str) -> dict[str, str]:
    """Variables of a contestant's process: loopback only, no telemetry, no real keys, nothing written at home."""
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
    # Else nothing is cached and every import compiles again.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.pop("PYTHONPATH", None)
    if environment == "asides":
        variables["PYTHONPATH"] = str(ROOT / "src")
    return variables


def site_packages(environment: str) -> Path | None:
    found = sorted(find_folder(environment).glob("[Ll]ib*/**/site-packages"))
    return found[0] if found else None


def versions() -> dict[str, list[str]]:
    """Of each environment, the packages that were asked for, with the versions found there."""
    found: dict[str, list[str]] = {}
    for environment, wanted in ENVIRONMENTS.items():
        folder = site_packages(environment)
        if folder is None and find_python(environment) is None:
            found[environment] = []
            continue
        where = [str(folder)] if folder is not None else sys.path
        names = [re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in wanted]
        known = {_normal(d.name): d.version for d in importlib.metadata.distributions(path=where)}
        found[environment] = [f"{name} {known[_normal(name)]}" for name in names if _normal(name) in known]
    return found


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")

"""Visits to the page: a real gateway in front of the strict stage, and Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import os
import runpy
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from asides.options import Options
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Stage

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[5]
MODEL = "openai-compatible:thinker-1"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 15_000
sync_api.expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that open a browser, and give them time."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "visit" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            item.add_marker(pytest.mark.timeout(180))


@dataclass
class Visit:
    """An open page, and everything that it asked for and said."""

    page: Any
    gateway: Gateway
    stage: Stage
    context: Any
    requests: list[str] = field(default_factory=list[str])
    sockets: list[str] = field(default_factory=list[str])
    console: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])
    """Parts of what the browser itself may write to the console, such as a status that the story is about."""

    def open(self, path: str = "/ui/") -> Any:
        self.page.goto(self.gateway.url + path)
        return self.page

    def ask(self, text: str) -> None:
        self.page.get_by_label("Message", exact=True).fill(text)
        self.page.keyboard.press("Enter")

    def wait_for_answers(self, count: int = 1) -> None:
        """Until so many answers are there, the last one whole."""
        self.page.locator(".answer-foot .acts").nth(count - 1).wait_for()
        sync_api.expect(self.page.get_by_role("button", name="Send")).to_be_visible()

    def ask_and_wait(self, text: str) -> None:
        before = self.page.locator(".answer-foot .acts").count()
        self.ask(text)
        self.wait_for_answers(before + 1)

    @property
    def last_sent(self) -> Any:
        """What the provider got last."""
        return json.loads(self.stage.requests[-1].body)

    def check(self) -> None:
        """Nothing left the origin, and nothing went wrong unseen."""
        strangers = [url for url in self.requests if not url.startswith((self.gateway.url + "/ui", "data:", "blob:"))]
        assert strangers == []
        assert self.sockets == []
        assert [line for line in self.console if not any(part in line for part in self.expected)] == []


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser. It ends with its module: while it is open, its event loop is in the way of tests that are async."""
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """`visit(scenes, keys=…, folder=…, width=…)` opens the page of a new gateway. Each visit is checked at the end."""
    visits: list[Visit] = []
    with ExitStack() as closing:

        def start(script: Any = None, **how: Any) -> Visit:
            made = _start(chromium, closing, script, **how)
            visits.append(made)
            return made

        yield start
        for each in visits:
            each.check()


def _start(
    chromium: Any,
    closing: ExitStack,
    script: Any,
    *,
    keys: tuple[str, ...] = (),
    folder: Path | None = None,
    workers: int = 1,
    width: int = 1280,
    height: int = 800,
    path: str | None = "/ui/",
    environ: dict[str, str] | None = None,
    files: list[Path] | None = None,
    **how: Any,
) -> Visit:
    stage = closing.enter_context(Stage(script))
    options = Options(base_url=stage.url, api_key="sk-upstream-canary")
    settings = load_settings(environ={"ASIDES_MODEL": MODEL, **(environ or {})}, files=files or [])
    gateway = Gateway(GatewaySettings(port=0, keys=keys, folder=folder, workers=workers), settings, options=options)
    closing.enter_context(gateway)
    context = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **how)
    closing.callback(context.close)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    made = Visit(page, gateway, stage, context)
    context.on("request", lambda request: made.requests.append(request.url))
    page.on("websocket", lambda socket: made.sockets.append(socket.url))
    page.on("console", lambda message: made.console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda problem: made.console.append(f"exception: {problem}"))
    if path is not None:
        made.open(path)
    return made


@pytest.fixture(scope="session")
def npm_packages() -> Path:
    """The folder of the npm packages; skips where there is no npm."""
    npm = runpy.run_path(str(ROOT / "scripts" / "npm_packages.py"))
    try:
        folder: Path = npm["install"]()
    except npm["NpmMissing"] as problem:
        pytest.skip(str(problem))
    return folder / "node_modules"

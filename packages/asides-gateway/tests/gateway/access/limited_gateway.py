"""A gateway before a stage, with keys in its database: `limited(stage, place)`. Not a test."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asides.database import Database
from asides.dialects.dialect import ServedRequest
from asides.options import Options
from asides.settings import load_settings
from asides_gateway.access.budget_store import Spending, list_spending
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Stage
from asides_stage.stage.script import Scene
from tests.gateway.access.key_records import AddedKey, add_key, open_place
from tests.gateway.http_client import Answer, ask

CLAUDE = "anthropic:claude-sonnet-4-5"


class PlayedStage:
    """A stage that gets its scenes when they are needed."""

    def __init__(self) -> None:
        self._scenes: Iterator[Scene | Callable[[ServedRequest], Scene]] = iter(())
        self.stage = Stage(self._answer)

    def play(self, *scenes: Scene | Callable[[ServedRequest], Scene]) -> None:
        """What it answers from now on, in order."""
        self._scenes = iter(scenes)

    @property
    def count(self) -> int:
        """How many requests it got."""
        return len(self.stage.requests)

    def _answer(self, served: ServedRequest) -> Scene:
        scene = next(self._scenes)
        return scene(served) if callable(scene) else scene


class Limited:
    """A gateway with keys in its database."""

    def __init__(self, gateway: Gateway, database: Database) -> None:
        self.gateway = gateway
        self.database = database

    def add_key(self, name: str = "test", **limits: Any) -> AddedKey:
        """A key with these limits."""
        return add_key(self.database, name, **limits)

    def ask(self, added: AddedKey, path: str, body: object = None, method: str = "POST") -> Answer:
        """A request with a key."""
        return ask(self.gateway, method, path, body, [("authorization", f"Bearer {added.key}")])

    def spending(self, added: AddedKey) -> Spending:
        """What a key has spent and reserved."""
        found = self.database.run(lambda: list_spending(time.time()), writes=False)
        return found.get(added.record.id, Spending())


@contextmanager
def limited(stage: PlayedStage, place: str, **settings: Any) -> Generator[Limited, None, None]:
    """A gateway. It has a key of its settings too, so that it needs one before a key is made."""
    database = open_place(place)
    where: dict[str, Any] = {"store": place} if "://" in place else {"folder": Path(place)}
    # The address is another one, so that the rows have to say that the prices are those of the makers.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "asides.toml"
        rows = [
            f'[providers.{name}]\nbase_url = "{stage.stage.url}"\nprices = "{prices}"\n'
            for name, prices in (("anthropic", "anthropic"), ("openai", "openai"), ("ollama", ""))
        ]
        file.write_text("".join(rows) + settings.pop("toml", ""), encoding="utf-8")
        calls = load_settings(environ={}, files=[file])
    values: dict[str, Any] = {"keys": ("sk-static-0123456789",), "port": 0, "drain_seconds": 1.0, **where, **settings}
    own = GatewaySettings(**values)
    with Gateway(own, calls, options=Options(api_key="sk-upstream")) as gateway:
        yield Limited(gateway, database)
    database.close()

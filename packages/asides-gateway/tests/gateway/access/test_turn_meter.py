"""What a turn of the page uses: the dearest of its models is reserved, and the one that answered is settled."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.database import Database
from asides.flows.call import Call
from asides.providers.find import find_target
from asides.relay.error_response import RelayRefusal
from asides.values.messages import Prompt, user
from asides.values.money import to_dollars
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.thinking import Origin
from asides.values.usage import Usage
from asides_gateway.access.budget_store import Spending, list_spending
from asides_gateway.access.key_meter import Meters
from asides_gateway.access.memory_windows import MemoryWindows
from asides_gateway.access.turn_meter import TurnMeter
from tests.gateway.access.key_records import add_key, open_place


def build_call(*models: str) -> Call:
    first, *others = (Call(Prompt((user("hello"),), max_tokens=1000), find_target(model)) for model in models)
    return msgspec.structs.replace(first, fallbacks=tuple(others))


async def open_turn(folder: Path, **limits: Any) -> tuple[TurnMeter, Meters, Database, str]:
    database = open_place(str(folder))
    record = (await asyncio.to_thread(lambda: add_key(database, **limits))).record
    meters = Meters(database, MemoryWindows())
    return TurnMeter(meters, record), meters, database, record.id


def read(database: Database, key: str) -> Spending:
    return database.run(lambda: list_spending(time.time()), writes=False).get(key, Spending())


async def test_the_dearest_model_is_reserved_and_the_one_that_answered_is_paid(tmp_path: Path) -> None:
    turn, _, database, key = await open_turn(tmp_path, budget_day="1")
    await turn.reserve(build_call("openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5"), lambda: None)
    assert to_dollars(read(database, key).reserved) > Decimal("0.015")
    origin = Origin("openai", "https://api.openai.com/v1", "gpt-4o-mini")
    reply = msgspec.structs.replace(Reply((Text("42"),)), usage=Usage(1000, 100), origin=origin)
    await turn.settle(reply, has_failed=False, is_cut=False)
    assert read(database, key) == Spending(210_000, 210_000, 0)
    await turn.settle(reply, has_failed=False, is_cut=False)
    assert read(database, key).day == 210_000


async def test_a_model_without_a_price_among_them_is_refused(tmp_path: Path) -> None:
    turn, _, database, key = await open_turn(tmp_path, budget_day="1")
    with pytest.raises(RelayRefusal, match="price of ollama:mine"):
        await turn.reserve(build_call("openai:gpt-4o-mini", "ollama:mine"), lambda: None)
    assert read(database, key) == Spending()


async def test_more_than_fits_is_refused_and_a_turn_that_failed_costs_nothing(tmp_path: Path) -> None:
    turn, meters, database, key = await open_turn(tmp_path, budget_day="0.001")
    with pytest.raises(RelayRefusal, match="budget"):
        await turn.reserve(build_call("anthropic:claude-sonnet-4-5"), lambda: None)
    turn.leave()
    await turn.reserve(build_call("openai:gpt-4o-mini"), lambda: None)
    await turn.settle(None, has_failed=True, is_cut=True)
    turn.leave()
    await meters.close()
    assert read(database, key) == Spending()


async def test_whoever_leaves_pays_for_what_came(tmp_path: Path) -> None:
    turn, meters, database, key = await open_turn(tmp_path, budget_day="1")
    await turn.reserve(build_call("openai:gpt-4o-mini"), lambda: Reply((Text("word " * 100),)))
    turn.leave()
    await meters.close()
    spent = read(database, key)
    assert spent.reserved == 0
    assert spent.day > 0


async def test_a_key_without_limits_is_not_counted(tmp_path: Path) -> None:
    turn, _, database, key = await open_turn(tmp_path, models=("a:*",))
    await turn.reserve(build_call("ollama:mine"), lambda: None)
    await turn.settle(Reply((Text("42"),)), has_failed=False, is_cut=False)
    turn.leave()
    nobody = TurnMeter(Meters(database, MemoryWindows()), None)
    await nobody.reserve(build_call("ollama:mine"), lambda: None)
    await nobody.settle(None, has_failed=True, is_cut=True)
    nobody.leave()
    assert read(database, key) == Spending()

"""Keys with budgets, for gateways that are killed meanwhile: how they are made, what they have spent, and somebody who
asks until nothing is left.

Used by soak and test_instances. Not a test.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import aiohttp

from asides.database import Queries, Query
from asides.database.postgres import PostgresDatabase
from asides.values.money import to_dollars
from asides.values.usage import Usage
from asides_gateway.access import KeyLimits, KeyRecord
from asides_gateway.access.key_store import insert_key, make_key
from asides_stage import Say

MODEL = "anthropic:claude-sonnet-4-5"
QUESTION = "word " * 900
REPLY = Say(text="It is done.", usage=Usage(input=1000, output=4000), pause=0.05, piece=3)
"""The answer to the question."""
COST = Decimal("0.063")
"""What it costs: 1,000 tokens in at 3 USD a million, 4,000 out at 15."""


class PaidKey(NamedTuple):
    """A key with a budget."""

    key: str
    id: str
    budget: Decimal


def make_paid_keys(store: str, budgets: Sequence[str]) -> list[PaidKey]:
    """Keys with budgets for a day, in US dollars."""
    database = PostgresDatabase(store)
    made: list[PaidKey] = []
    for budget in budgets:
        new = make_key()
        limits = KeyLimits(budget_day=Decimal(budget))
        record = KeyRecord(id=new.id, digest=new.digest, name=new.id, limits=limits, created=time.time())
        database.run(partial(insert_key, record))
        made.append(PaidKey(new.key, new.id, Decimal(budget)))
    database.close()
    return made


def read_spent(store: str, key_id: str) -> Decimal:
    """What a key has spent, on whichever day."""
    database = PostgresDatabase(store)

    def work() -> Queries[int]:
        result = yield Query("SELECT coalesce(sum(spent), 0) FROM gateway_spending WHERE key = ?", (key_id,))
        return int(result.rows[0][0])

    spent = to_dollars(database.run(work, writes=False))
    database.close()
    return spent


class Spender:
    """Asks again and again with one key, several times at once, also after its budget is used up."""

    def __init__(self, paid: PaidKey) -> None:
        self.paid = paid
        self.answers: Counter[int] = Counter()
        """How often each status came; 0: the connection ended before the reply."""

    async def spend(self, session: aiohttp.ClientSession, url: str, times: int | None = None) -> None:
        """Ask so often, or until this is cancelled."""
        await asyncio.gather(*(self._ask(session, url, times) for _ in range(8)))

    async def _ask(self, session: aiohttp.ClientSession, url: str, times: int | None) -> None:
        body = {"model": MODEL, "max_tokens": 4000, "messages": [{"role": "user", "content": QUESTION}]}
        headers = {"authorization": f"Bearer {self.paid.key}"}
        while times is None or times > 0:
            try:
                async with session.post(f"{url}/v1/messages", json=body, headers=headers) as response:
                    await response.read()
                    self.answers[response.status] += 1
            except (aiohttp.ClientError, ConnectionError):
                self.answers[0] += 1
            await asyncio.sleep(0.05 if self.answers[429] == 0 else 0.5)
            times = None if times is None else times - 1

    def check(self, spent: Decimal) -> None:
        """The laws: what was answered is paid, never more than the budget, and nothing else fails than what was cut."""
        assert self.answers[200] * COST <= spent <= self.paid.budget, (self.answers, spent, self.paid.budget)
        assert set(self.answers) <= {200, 429, 502, 504, 0}, self.answers

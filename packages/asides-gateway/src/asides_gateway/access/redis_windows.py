"""`RedisWindows`: the rate windows that instances share in a Redis or Valkey server.

One script decides and counts, in one step, by the clock of the server. During an outage each process decides by the
requests that it let pass itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asides_gateway.access import CountedRequest, KeyLimits
from asides_gateway.access.memory_windows import MemoryWindows
from asides_gateway.access.rate_windows import BUCKET_MS, MOST_TOKENS, WINDOW_MS, count_left, fit_tokens
from asides_gateway.access.redis_link import PREFIX, RedisDown, RedisLink, Script

_CLOCK = """
local function read_clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function write(key, number, requests, tokens, last)
  redis.call('HSET', key, string.format('%.0f', number), string.format('%.0f:%.0f:%.0f', requests, tokens, last))
  redis.call('PEXPIRE', key, WINDOW + WIDTH)
end
local function read(text)
  local requests, tokens, last = string.match(text or '', '^(%d+):(%d+):(%d+)$')
  return tonumber(requests), tonumber(tokens), tonumber(last)
end
""".replace("WINDOW", str(WINDOW_MS)).replace("WIDTH", str(BUCKET_MS))

_TAKE = Script(
    _CLOCK
    + """
local key, rpm, tpm, wanted = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = read_clock(ARGV[4])
local current = math.floor(now / WIDTH)
local found = redis.call('HGETALL', key)
local kept, old, requests, tokens = {}, {}, 0, 0
local mine = {0, 0, 0}
local moved = false
for place = 1, #found, 2 do
  local number = tonumber(found[place])
  local count, sum, last = read(found[place + 1])
  if not number or not count or last + WINDOW <= now then
    old[#old + 1] = found[place]
  else
    requests, tokens = requests + count, tokens + sum
    if number < current then
      kept[#kept + 1] = {count, sum, last}
    else
      if number > current then
        -- The clock went back: what it counted counts from now on.
        old[#old + 1] = found[place]
        moved = true
        last = now
      end
      mine = {mine[1] + count, mine[2] + sum, math.max(mine[3], last)}
    end
  end
end
-- A call takes a limited number of values, and other programs may have written more than we do.
for place = 1, #old, 1000 do redis.call('HDEL', key, unpack(old, place, math.min(place + 999, #old))) end
local function fits()
  return (rpm < 0 or requests < rpm) and (tpm < 0 or tokens + wanted <= tpm)
end
if fits() then
  write(key, current, mine[1] + 1, mine[2] + wanted, math.max(mine[3], now))
  return {0, now, requests + 1, tokens + wanted}
end
if moved then write(key, current, mine[1], mine[2], mine[3]) end
if mine[1] > 0 or mine[2] > 0 then kept[#kept + 1] = mine end
table.sort(kept, function(one, other) return one[3] < other[3] end)
for _, bucket in ipairs(kept) do
  requests, tokens = requests - bucket[1], tokens - bucket[2]
  if fits() then return {bucket[3] + WINDOW - now, now, 0, 0} end
end
return {WINDOW, now, 0, 0}
""".replace("WINDOW", str(WINDOW_MS)).replace("WIDTH", str(BUCKET_MS))
)

_CORRECT = Script(
    _CLOCK
    + """
local key, at, taken, used = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local number = math.floor(at / WIDTH)
if used > taken then
  local now = read_clock(ARGV[4])
  number = math.floor(now / WIDTH)
  local requests, tokens, last = read(redis.call('HGET', key, string.format('%.0f', number)))
  write(key, number, requests or 0, (tokens or 0) + used - taken, math.max(last or 0, now))
else
  local requests, tokens, last = read(redis.call('HGET', key, string.format('%.0f', number)))
  if requests then
    local rest = math.max(tokens + used - taken, 0)
    redis.call('HSET', key, string.format('%.0f', number), string.format('%.0f:%.0f:%.0f', requests, rest, last))
  end
end
return 1
""".replace("WIDTH", str(BUCKET_MS))
)


class RedisWindows:
    """Windows in Redis; those of this process while Redis is down."""

    def __init__(self, link: RedisLink, *, clock: Callable[[], int] | None = None) -> None:
        """`clock`: milliseconds in place of the server's clock, for tests."""
        self.link = link
        self._own = MemoryWindows()
        """The requests that this process let pass: all that it knows in an outage."""
        self._clock = clock

    async def take(self, key_id: str, limits: KeyLimits, tokens: int) -> CountedRequest | float:
        """Count a request and its tokens if they fit; else return the seconds to wait."""
        if not limits.has_rate:
            return CountedRequest()
        rpm, tpm, fit = limits.rpm, limits.tpm, fit_tokens(tokens, limits.tpm)
        most = (-1 if rpm is None else rpm, -1 if tpm is None else min(tpm, MOST_TOKENS))
        try:
            answer = await self.link.run(_TAKE, build_window_key(key_id), *most, fit, self._now())
            if (numbers := _read_answer(answer)) is None:
                self.link.report_once("it sends an unexpected answer, so each process counts separately")
                raise RedisDown("it sends an unexpected answer")
            wait, shared_at, requests, in_window = numbers
        except RedisDown:
            self.link.on_failure()
            return self._own.take_now(key_id, limits, tokens)
        if wait:
            return float(wait) / 1000
        at = self._own.note(key_id, fit)
        return CountedRequest(count_left(rpm, requests), count_left(tpm, in_window), fit, at, shared_at)

    async def correct(self, key_id: str, counted: CountedRequest, used: int) -> None:
        """Replace the tokens that a request was counted with by those that it used."""
        self._own.correct_now(key_id, counted, used)
        used = fit_tokens(used, None)
        # Redis does not know what was counted during an outage.
        if counted.shared_at is None or counted.tokens_left is None or used == counted.tokens:
            return
        try:
            await self.link.run(
                _CORRECT, build_window_key(key_id), counted.shared_at, counted.tokens, used, self._now()
            )
        except RedisDown:
            self.link.on_failure()

    def _now(self) -> str | int:
        return "" if self._clock is None else self._clock()

    async def close(self) -> None:
        """Close the connections."""
        await self.link.close()

    def __repr__(self) -> str:
        return f"RedisWindows({self.link!r})"


def _read_answer(answer: Any) -> list[int] | None:
    """The numbers of an answer; None if the script cannot have returned it."""
    if isinstance(answer, list) and len(answer) == 4 and all(type(each) is int and each >= 0 for each in answer):
        return answer
    return None


def build_window_key(key_id: str) -> str:
    """The Redis key of a window. Each has its own hash tag, so that a cluster spreads them."""
    return f"{PREFIX}{{{key_id}}}:window"

"""Notices that another gateway writes reasoning state with another master key: `watch_relay_key(database, keys)`.

Such gateways do not find each other's records: nothing fails, and models continue without their earlier thinking. Not
here: the keys (relay/state/relay_keys).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from asides.database import Database, StoreError
from asides.relay.state.relay_keys import KEY_VARIABLE, RelayKeys
from asides.relay.state.vault_records import HEAD_BYTES, read_key_id
from asides.relay.vault.vault_queries import list_newest_heads

_log = logging.getLogger("asides.gateway")
_SECONDS_BETWEEN_LOOKS = 60.0


async def watch_relay_key(database: Database, keys: RelayKeys, seconds: float = _SECONDS_BETWEEN_LOOKS) -> None:
    """Look at the newest records of a shared vault now and then. Log a warning once, and end with it."""
    while True:
        # Without an answer there is nothing to compare; others log the outage.
        with suppress(StoreError):
            if await has_other_keys(database, keys):
                _log.warning(
                    "reasoning state in the store is encrypted with another %s than that of this process: it continues "
                    "without the thinking of such turns. Set the same for all gateways; after a new one, keep "
                    "the old one behind it, separated by a comma.",
                    KEY_VARIABLE,
                )
                return
        await asyncio.sleep(seconds)


async def has_other_keys(database: Database, keys: RelayKeys) -> bool:
    """Whether some of the newest records were encrypted with a key that is not in the ring."""
    heads = await database.run_async(lambda: list_newest_heads(HEAD_BYTES), writes=False)
    return any(not keys.has_key(key_id) for head in heads if (key_id := read_key_id(head)))

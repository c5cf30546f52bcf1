"""The vault: stores of the records of a relay, in memory and in SQLite, and how a relay's state is set up.

Not here: what is in a record, and how it is encrypted (vault_records).
"""

from __future__ import annotations

import msgspec

VAULT_FILE = "vault.db"
"""The file of the records, in the folder of a gateway."""
_DAY = 24 * 60 * 60.0


class VaultLimits(msgspec.Struct, frozen=True):
    """How long and how much a vault keeps. Of a tenant with more, the records that were not used for longest go."""

    seconds: float = 7 * _DAY
    """How long a record is kept after it was last used."""
    records: int = 20_000
    """How many records a tenant may have."""
    size: int = 64 * 1024 * 1024
    """How many bytes the records of a tenant may have."""

"""Lead many conversations through two gateways on one PostgreSQL and Redis, which are killed at random meanwhile.

    .venv/bin/python scripts/soak.py --conversations 10000

Each conversation has five turns with thinking and tools, of a client that sends no thinking back, in several dialects,
before the strict stage. Somebody else asks on with a key whose budget does not last. The servers are started for it,
and deleted afterwards. Prints the figures as JSON; exits with 1 if a law is broken: a conversation that does not end, a
turn that the stage refuses, state that is lost or another's, a budget that is overspent.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "packages" / "asides-gateway")]


def main() -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds-between-kills", type=float, nargs=2, default=(2.0, 6.0), metavar=("FROM", "TO"))
    parser.add_argument("--seconds-per-piece", type=float, default=0.0, help="how slowly the model answers")
    parser.add_argument("--sqlite", action="store_true", help="a folder that both share, instead of PostgreSQL")
    arguments = parser.parse_args()
    # Ended from outside, it ends its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    from asides.database.migrate import migrate
    from tests.gateway.soak import Model, Tally, soak
    from tests.servers import PostgresServer, RedisServer

    told = time.monotonic()

    def note(tally: Tally, model: Model) -> None:
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            counts = {"turns without their state": len(model.lost), **tally.counts}
            print(f"{tally.finished} conversations, {counts}", file=sys.stderr, flush=True)

    postgres = None if arguments.sqlite else PostgresServer()
    redis = RedisServer()
    try:
        url = None
        if postgres is not None:
            postgres.start()
            url = postgres.create_database("soak")
            migrate(url)
        redis.start()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            place.chmod(0o755)
            ended = soak(
                place,
                arguments.conversations,
                url,
                redis.url,
                seed=arguments.seed,
                at_once=arguments.at_once,
                pause=tuple(arguments.seconds_between_kills),
                speed=arguments.seconds_per_piece,
                note=note,
            )
    finally:
        redis.stop()
        if postgres is not None:
            postgres.remove()
    print(json.dumps(ended.describe(), indent=2))
    try:
        ended.check(arguments.conversations)
    except AssertionError as problem:
        print(f"a law is broken: {problem}", file=sys.stderr)
        print("\n".join(ended.list_stories()), file=sys.stderr)
        # The lines of single requests begin with a time, and say little about why.
        lines = [line for line in ended.logs.splitlines() if "POST /" not in line]
        print("\n".join(lines[-50:]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Hides uvloop from a gateway that has this folder on its path, so that it runs on asyncio's own loop."""

raise ImportError("the benchmark measures without uvloop")

"""Conversations: histories that can be sent at any time, and that ask. One is sync, one async; `core` is shared.

Each of the two loads alone, since the async one needs asyncio. Not here: what goes back to a model (history/plan).
"""

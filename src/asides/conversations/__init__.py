"""Conversations: objects that hold a history and ask a model with it. `sync` and `async_` share `core`.

Each of the two can be imported alone, since `async_` needs asyncio.
"""

"""Conversations: histories that are always sendable, and ask. One blocking, one awaiting, the rest shared.

Each loads by itself, since the awaiting one brings asyncio along. Not here: what of a history goes back to a model
(plan), and where conversations are kept (store).
"""

"""Stores of conversations: what any store promises (protocol), and the one in SQLite.

Not here: a conversation in use, and what of its thinking may be stored (conversations).
"""

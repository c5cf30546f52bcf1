"""Where conversations are kept: what any store promises, and the one that comes along, in SQLite.

Not here: what a conversation is while it goes on (conversation), and what of thinking may be kept (history).
"""

"""Histories: pure functions over tuples of messages that keep them sendable, small enough, and readable by others.

Not here: what of a history goes back to a model (plan), and who holds one (conversation).
"""

"""Pure functions on histories (tuples of messages): plan what goes back, trim, redact, import, export, save.

Not here: the object that holds a history and asks a model with it (conversations).
"""

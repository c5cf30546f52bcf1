"""Finds the parts of a history that a model would refuse, and repairs it.

findings    the values: Finding, Diagnosis
open_file   a file or a list → the messages in it, and their format
diagnose    rules → import → plan → export → rules again
merge       the exported messages, with the unknown fields of the given ones
"""

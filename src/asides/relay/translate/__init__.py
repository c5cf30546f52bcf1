"""Translate a request for another provider, and its reply for the caller: fields, messages, tools, calls."""

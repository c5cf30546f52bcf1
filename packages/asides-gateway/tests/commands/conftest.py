"""Fixtures of the commands: those of the command line."""

from tests.cli.conftest import state

__all__ = ["state"]

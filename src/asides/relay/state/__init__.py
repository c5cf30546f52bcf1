"""Reasoning state between turns: envelopes that a caller carries, and records that the vault keeps."""

"""Data sets at rest: files of rows, and the thinking in their texts, messages and recorded responses."""

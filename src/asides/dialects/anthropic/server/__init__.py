"""dialects/anthropic/server."""

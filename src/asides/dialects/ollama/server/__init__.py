"""dialects/ollama/server."""

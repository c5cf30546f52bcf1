"""dialects/cohere/server."""

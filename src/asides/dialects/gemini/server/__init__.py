"""dialects/gemini/server."""

"""dialects/openai_chat/server."""

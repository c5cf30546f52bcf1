"""dialects/openai_responses/server."""

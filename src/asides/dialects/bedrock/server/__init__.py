"""dialects/bedrock/server."""

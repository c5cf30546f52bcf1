"""The server half of Ollama's chat: read a client's request (read_request), write the response (write_reply)."""

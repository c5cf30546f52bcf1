"""The server half of chat completions: read a client's request (read_request), write the response (write_reply)."""

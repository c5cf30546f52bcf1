"""The server half of generateContent: read a client's request (read_request), write the response (write_reply)."""

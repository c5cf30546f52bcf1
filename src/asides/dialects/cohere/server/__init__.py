"""The server half of Cohere's v2 chat: read a client's request (read_request), write the response (write_reply)."""

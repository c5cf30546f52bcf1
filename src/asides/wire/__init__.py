"""Bytes and characters to records and back. Nothing here knows a provider or a message.

- `sse`, `aws_frames`: the framing of streams: server-sent events, frames of AWS
- `framing`: a body as JSON documents, or as one document for each line
- `lenient`: JSON that almost fits its type
- `partial_json`: JSON that is still arriving
- `deduplicate`: text that a server sends twice
- `inline_tags/`: thinking inside text
"""

"""Reads anything that a caller hands over: prompts, files, documents in the formats of other libraries, and their
objects.

- `read`: `read(value)` returns the messages in any value.
- `detect`: `detect_dialect`, `split_formats`, `detect_history`: the format of a response, of messages, of a history.
- `prompts`: the forms of a prompt: content, messages, dicts and objects in any mixture.
- `documents`: lists and requests in a format with a name, and files with a history.
- `files`: the option `files=`.
- `replies`: the response document in an object of another library.
- `objects/`: messages and responses of other libraries, by structure.

The constructors of messages and parts normalise their own arguments (`values/content.py`, `values/attachments.py`).
"""

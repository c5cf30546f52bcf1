"""Plain values: messages, events, replies, thinking, tools, usage, notices and errors. They do no I/O.

One exception: `Image` and `File` read the file that their caller names (attachments).
"""

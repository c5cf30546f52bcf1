"""Plain values: messages, events, replies, thinking, tools, usage, notices and errors. They do no I/O."""

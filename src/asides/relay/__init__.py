"""The relay: a request in any dialect in, any provider out, the reply in the caller's dialect. Pure, like all flows."""

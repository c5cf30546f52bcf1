"""Messages and responses of other libraries, read by structure: no library is imported and no class is named.

- `read_objects`: `recognise(value)`: a response, a piece of a stream, or messages.
- `plain_values`: objects as plain JSON values.
- `langchain_objects`, `pydantic_ai_objects`: messages in a library's own format.
- `langchain_state`: the seals in messages that `asides.langchain` wrote.
- `turn_documents`: a turn in pieces as the response document of a dialect.
"""

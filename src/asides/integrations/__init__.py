"""What `asides.openai`, `anthropic`, `langchain` and `ui` share. Those libraries are loaded only when they are used."""

"""What `asides.openai`, `anthropic`, `langchain` and `ui` share. Those libraries are loaded only when they are used.

- `client_arguments`, `client_requests`, `httpx_transport`, `in_process_relay`: official clients: their arguments, their
  requests, a transport for httpx, and the relay behind it
- `langchain_messages`, `langchain_blocks`, `langchain_replies`, `langchain_tools`: messages, content blocks, replies
  and tools of LangChain
- `ui_stream`, `ui_writer`, `ui_parts`, `ui_state`: the stream of a front end: its chunks, its parts, and the state that
  it holds
- `vercel_ui`, `ag_ui`: the protocols of Vercel's AI SDK and of AG-UI
- `read_ui_parts`, `read_vercel`, `read_ag_ui`: what front ends post
"""

"""Transports: carry out the steps of flows, sync and async. Only this folder opens sockets and uses HTTP libraries.

- `async_`, `sync`, `flow_state`: the drivers of flows; `sync` is generated
- `run_async`, `run_sync`, `run_state`: the run of an agent as a stream; `run_sync` is generated
- `answers`: the answers to many questions
- `advance_apart`, `tool_executor`: work in threads: planning, and tools
- `http_async`, `http_sync`: the transports of both clients
- `http_exchange`, `http_response`, `connection`: one request without I/O, its response, and connections
- `decompressor`: the compression of a response
- `proxy_and_tls`: proxies and certificates
- `protocols`: what a transport of the caller has to have
- `transport_errors`: errors of the connection
- `fetch_key`, `cloud_credentials`: keys from functions and from clouds
- `launch`, `stage_launch`: servers that are started on demand, and the offline stage
"""

"""Tools that an agent can run: typed functions, or any `Runnable` object. Pure.

- `function_tool`: `@asides.tool`, and the tools of an agent in all their forms
- `signatures`, `type_readers`: the parameters of a function, and readers of their types
- `call_arguments`: the arguments of a call as those types
- `executor`: the protocol of a tool, a job and its outcome
- `results`: the result for the model
"""

"""Typed answers: the type of an answer, the strategy to get it from a model, and its parsing from a reply. Pure.

output_type = read_output_type(Weather)                     once for each agent
strategy = choose_strategy(output_type, prompt, target)     once for each run: native, tool or instructed
apply_strategy(prompt, output_type, strategy)               the prompt of each step
parse_output(reply, output_type, strategy).value            the answer; OutputMismatch: ask the model again
"""

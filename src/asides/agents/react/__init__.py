"""ReAct, for models that cannot call tools: a prompt is encoded as text, and its reply is translated back.

prompt = encode_prompt(prompt, target)     tools as instructions, the history as text
translator = Translator(tools)             one for each reply: `feed` events, get events
problem = find_problem(reply, tools)       what is wrong with the form; None when it is right
message = build_correction(problem)        the message for the model
"""

"""How requests ask for thinking, and for none: the table (table), writing it into a request (write) and reading it from
one (read).
"""

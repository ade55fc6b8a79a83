"""The command line: arguments in; data on stdout, notes on stderr and an exit code out. It computes nothing itself.

`recorded` and `modules` read what a target names, `options` has those that several commands share, and all print
through `output`: `print_answer(form, kind, row, lines)`, or in JSON alone `print_facts(kind, row, next_commands)`. The
facts of the kind (`facts/answers.py`) read the row, and its schema is made of them; what of a long answer is printed by
default is in `report/envelope.py`. `agent_server` has the tools of `jaxprof agent mcp`.
"""

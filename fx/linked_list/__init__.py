"""Stage 01, linked-list graph: a program as an ordered list of named lines.

In comes one line at a time: an opcode, a target and the name it asks for.  Out
comes a graph that can be edited anywhere in constant time, also from inside a
loop over it, and whose lines all have names that Python accepts.  Here nothing
is known yet of values: which line uses the result of which is stage 02.

All four files are core: `linked_list` (the order), `opcodes` (the six kinds of
lines), `namespace` (names that are free) and `ordered_graph` (all together).
"""

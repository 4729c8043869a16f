"""Stage 05, codegen: a graph module written to disk.

In comes a `GraphModule`.  Out comes a folder that Python can import: the
generated code and the weights.  You need none of it to understand codegen.
"""

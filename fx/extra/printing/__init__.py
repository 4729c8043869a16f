"""Extra: code with comments and colours, and code that empties boxes.

Both are emitters: `CodeGen.emitter_of` says which one writes a graph.
"""

"""Stage 05, codegen: graph modules copied, and written to disk.

In comes a `GraphModule`.  Out comes a copy with the attributes that the user
gave it; or a folder with the generated code and the weights, which Python can
import; or one with the graph as data, and loading that runs none of its code.
You can understand codegen without this room.
"""

"""Stage 07, rewriter: replace each occurrence of a pattern in a graph.

In come a graph, a pattern and a replacement, all three traced from functions.
Out comes the same graph, edited: the matched nodes are erased, and their users
take the replacement's values.  Users call it through `fx/subgraph_rewriter.py`.

The core is `patterns` (what a pattern requires), `replacing` (the edits) and
`rules` (rewriting until nothing matches); the search itself is in
`fx/passes/utils/matcher_utils.py`.  The rest is `templates` (replacements,
checked), `places` (where new nodes go) and `snapshot` (undoing).
"""

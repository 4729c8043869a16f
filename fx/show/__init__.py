"""Passes: a page on which one can look at a graph.

    python -m fx.show torchvision.models:resnet18 --input 1,3,224,224 -o r.html

In: a module, perhaps inputs for it, perhaps the same module after a pass.  Out:
one HTML file that needs no network.  `measure` finds out about the values of
nodes, `describe` writes graphs down as data, and `document` makes the file from
`page.html`, `page.css` and the scripts, which draw only the rows in view.
"""

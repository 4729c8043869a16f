"""Extra: modules and names that torch.fx has and fx lacks.

fx does not write again what no stage is about and what torch.fx does well. For
such a module, `import fx.passes.splitter_base` loads torch's own file from the
installed torch, in which `torch.fx` means fx: it is *lent*. `lending` finds the
file, and `renaming` changes what the names in it mean while Python compiles it.
Nothing is copied, so that what is lent is as old or new as torch is.
"""

"""Extra: what fx promises beyond torch.fx, where the stages leave room.

The stages work without it. At a few places, the *seams*, a stage has a plain
default, and `register` puts something better there.
"""

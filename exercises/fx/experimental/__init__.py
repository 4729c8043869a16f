"""What torch.fx keeps here: make_fx, and some passes."""

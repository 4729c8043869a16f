"""What torch.fx keeps here, of which fx has make_fx."""

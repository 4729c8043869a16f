"""Stage 08, reinplace: `make_fx`, under torch.fx's path."""

"""A stand-in for torch.return_types, of which there are none."""

all_return_types: list[type] = []

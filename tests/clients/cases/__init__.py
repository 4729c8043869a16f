"""Programs that use torch.fx as other people do, each with its cases."""

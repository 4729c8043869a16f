"""The part of pymdownx that docs/machinery uses; pymdownx has no types."""

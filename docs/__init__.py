"""The site: its pages, and what draws them (`machinery`, `examples`)."""

"""The course itself: its checks, its tools, and proof that they teach."""

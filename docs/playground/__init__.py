"""What runs in the reader's browser, beside files of fx."""

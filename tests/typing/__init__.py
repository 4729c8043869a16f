"""What a type checker tells the users of fx."""

"""Passes that run passes, and that cut graphs for a back end."""

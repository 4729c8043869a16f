"""Passes: a name that pickles of fx 0.2 look up; nothing else uses it."""

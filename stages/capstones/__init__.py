"""The capstones: programs of one's own, from a page of specification alone.

`docs/capstones/NAME.md` says what is wanted.  The learner writes
`exercises/capstones/NAME.py`, for which there is no stub, and `pytest
stages/capstones/NAME` checks what it does from end to end.  A solution of ours
is in `solutions/`; the check measures both and says which is better.
"""

"""A mutant: a likely mistake in an exercise, and what the tests say about it.

Good tests find each likely mistake *and* tell the person who made it what it
was.  `stages/NN/mutants.py` lists such mistakes; `python -m stages prove`
makes each of them and compares what the tests say.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake in one function of the reference.

    Attributes:
        function: the exercise, `linked_list.linked_list.Link.prepend`.
        misconception: what a person who writes this believes, in a sentence.
        was: text that occurs exactly once in the reference's function.
        becomes: the text that replaces it, indented as in the file.
        told: a part of the sentence that the failing test must say.
    """

    function: str
    misconception: str
    was: str
    becomes: str
    told: str

    def applied_to(self, function_source: str) -> str:
        """The wrong version of the function.

        Args:
            function_source: the function as the reference has it.

        Raises:
            ValueError: `was` does not occur exactly once in it.
        """
        count = function_source.count(self.was)
        if count != 1:
            raise ValueError(
                f"mutant of {self.function}: {self.was!r} occurs {count} times "
                f"in the function, and must occur once"
            )
        return function_source.replace(self.was, self.becomes)

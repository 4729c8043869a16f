"""A mutant: one wrong way to write an exercise, and what the check says.

A stage's tests are worth something if each likely mistake is found *and* the
person who made it is told what it was.  `stages/NN/mutants.py` lists such
mistakes; `python -m stages.prove` makes each of them and reads the answer.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake in one function of the reference.

    Attributes:
        function: the exercise, `ordered.linked_list.Link.prepend`.
        misconception: what one believes who writes this, in a sentence.
        was: text of the reference function; it stands there once.
        becomes: what the mutant has in its place, indented as in the file.
        told: what the failing check must say, a part of its sentence.
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
            ValueError: `was` does not stand there exactly once.
        """
        count = function_source.count(self.was)
        if count != 1:
            raise ValueError(
                f"mutant of {self.function}: {self.was!r} stands {count} times "
                f"in the function, and must stand there once"
            )
        return function_source.replace(self.was, self.becomes)

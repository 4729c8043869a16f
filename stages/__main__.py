"""`python -m stages`: shows your progress in the course, and helps with it."""

import sys

try:
    from stages.cli import main
except ModuleNotFoundError as error:
    sys.exit(
        f"{error}. The course runs in .venv: source .venv/bin/activate "
        f"(`make tour` makes it)"
    )

if __name__ == "__main__":
    sys.exit(main())

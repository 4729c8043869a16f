"""The check of a capstone: a static memory planner."""

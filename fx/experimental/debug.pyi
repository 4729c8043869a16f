# Lent: the file is torch's, and its names are not checked (fx/extra/lending).
from typing import Any

def __getattr__(name: str) -> Any: ...

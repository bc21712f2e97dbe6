"""Forks of the process that runs the tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable


def fork() -> int:
    """Fork, whatever libraries that other tests have imported say of that: a warning is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def in_fork(act: Callable[[], object]) -> int:
    """Do something in a fork that ends without its parent's stack; return 0 if nothing was raised."""
    child = fork()
    if not child:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

"""A call that ends with one of gRPC's statuses. No gRPC here: the doors have it."""

from __future__ import annotations


class CallError(Exception):
    """A call that ends with one of gRPC's statuses, by its name.

    Parameters
    ----------
    code : str
        "NOT_FOUND".
    text : str
        What is said with it.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class BadCallError(CallError):
    """The caller's mistake: INVALID_ARGUMENT.

    Parameters
    ----------
    text : str
        What is wrong.
    """

    def __init__(self, text: str) -> None:
        super().__init__("INVALID_ARGUMENT", text)

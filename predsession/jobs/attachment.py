"""What to attach to, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from predsession.errors import SourceError


@dataclass(frozen=True, slots=True)
class Attachment:
    """What to attach to: all jobs of a session, or one job.

    Parameters
    ----------
    session : str or None
        The session's id.
    uuid : str or None
        The job's.
    """

    session: str | None = None
    uuid: str | None = None

    def __post_init__(self) -> None:
        if (self.session is None) == (self.uuid is None):
            raise SourceError("attach to a session by its session_id, or to one job by its uuid: pass one")

    @property
    def description(self) -> str:
        """A few words for bars and reprs."""
        return f"session {self.session}" if self.session is not None else f"job {self.uuid}"

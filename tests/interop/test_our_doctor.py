"""The doctor examines Supervisely's own server, in both of its modes, and leaves nothing there."""

from __future__ import annotations

from interop.their_server import TheirServer

from predsession.doctor import Verdict, examine


def test_their_server_is_well(theirs: TheirServer) -> None:
    """Nothing is bad, the padding starts no job, and what it is, is told."""
    examination = examine(theirs.url)
    assert examination.verdict is Verdict.OK, examination
    texts = {finding.check: finding.text for finding in examination}
    assert "stock server" in texts["server"]
    assert "32 MiB are taken" in texts["upload"]
    assert "classes" in texts["model"]
    assert theirs.jobs() == {}

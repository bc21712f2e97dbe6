"""The doctor sees that Triton and MLServer speak another protocol, and says what to use."""

from __future__ import annotations

from interop.oip.theirs import Theirs

from predsession.doctor import Verdict, examine


def test_other_servers_are_pointed_out(theirs: Theirs) -> None:
    """HTTP is told apart from a server of jobs, gRPC is recognised; each with the command to use."""
    over_http = examine(theirs.http)
    assert over_http.verdict is Verdict.BAD
    assert "Open Inference Protocol" in over_http.findings[-1].text
    assert f"predsession tensor info {theirs.http}" in over_http.findings[-1].advice
    over_grpc = examine(f"grpc://{theirs.grpc}")
    assert over_grpc.verdict is Verdict.OK, over_grpc
    assert f"predsession tensor info grpc://{theirs.grpc}" in over_grpc.findings[-1].advice

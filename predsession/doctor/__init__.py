"""What is wrong with the way to a server, in plain words: `examine` looks at one thing after the other.

It asks what is harmless, and leaves nothing behind on the server. Nothing secret is in what it finds.
"""

from predsession.doctor.examining import examine
from predsession.doctor.findings import Examination, Finding, Verdict

__all__ = ["Examination", "Finding", "Verdict", "examine"]

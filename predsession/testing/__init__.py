"""For tests of your own code: a clock that does not wait, a server that makes faults."""

from predsession.testing.clock import FakeClock
from predsession.testing.faults import Fault, FaultyServer

__all__ = ["FakeClock", "Fault", "FaultyServer"]

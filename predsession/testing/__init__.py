"""For tests of your own code: a real server, one that makes faults, a clock that does not wait.

`number_picture` paints a number into a picture; the model ``pixels`` of a `RunningServer` reads it back, and
`box_number` reads it from the first box of its answer: a swapped, lost or doubled result cannot hide.
"""

from predsession.server.models.pixels import box_number, number_picture
from predsession.testing.clock import FakeClock
from predsession.testing.faults import Fault, FaultyServer, RandomFaults
from predsession.testing.servers import RunningServer

__all__ = [
    "FakeClock",
    "Fault",
    "FaultyServer",
    "RandomFaults",
    "RunningServer",
    "box_number",
    "number_picture",
]

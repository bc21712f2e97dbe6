"""Triton's system shared memory extension: what a tensor says whose bytes are in a region.

References
----------
.. [1] Triton, "System-Shared-Memory Extension".
"""

from __future__ import annotations

REGION = "shared_memory_region"
SIZE = "shared_memory_byte_size"
OFFSET = "shared_memory_offset"
EXTENSION = "system_shared_memory"
"""Its name in a server's metadata."""

"""The server's second door: the edge runtimes' interface over gRPC. Extra ``edge``.

No module here but `door` and those that it imports knows gRPC; `answer` runs in the workers.
"""

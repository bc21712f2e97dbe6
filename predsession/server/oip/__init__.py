"""The server as the Open Inference Protocol has it, over HTTP and gRPC. Extra ``tensor``.

`calls` answers in values; `routes` is HTTP's, `door` gRPC's. `models` has the models by name, `running` and
`pictures` run them, `keeping` holds what stays on the server.
"""

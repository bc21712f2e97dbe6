"""The edge runtime's gRPC interface as data: messages, tensors, masks, results. No socket, no clock.

``inference.proto`` is the interface; ``scripts/proto`` makes ``inference_pb2`` of it, which is checked in.
"""

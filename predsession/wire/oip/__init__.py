"""The Open Inference Protocol (KServe V2) as data: messages, JSON, tensors. Client and server share it."""

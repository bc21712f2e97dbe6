"""gRPC for clients: a connection, its calls and streams, what a fork and a status mean. Knows no service."""

"""The protocols as data: no socket, no clock, no sleep."""

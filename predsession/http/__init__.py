"""The job client's socket: send a call, get a reply, try again where that is safe."""

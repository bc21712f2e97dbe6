"""Models: what the server asks of one, the bundled ones, and how a user's own is found."""

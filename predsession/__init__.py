"""Run inputs through a deployed vision model and iterate its predictions."""

__version__ = "0.1.0"

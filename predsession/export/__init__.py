"""Predictions to files that people use."""

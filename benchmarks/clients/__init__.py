"""The processes that measure, each told in JSON what to do."""

"""The embedded server (extra ``server``): the stock protocol for everyone, more for those who ask."""

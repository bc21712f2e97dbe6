"""From a source to an ordered stream of results: jobs, their pace, their end."""

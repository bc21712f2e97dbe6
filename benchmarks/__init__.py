"""How fast, and how large in memory: against the ancestor, a bare loop of requests, and other libraries.

``scripts/bench`` runs it, ``docs/benchmarks.md`` says what came out. A case is a file in ``cases``: what is
measured, against what, and what is to be reached. Everything else here serves the cases:

=============  ====================================================================================
``row``        a line of the table, its target, and whether that was met
``bench``      one run of the whole: how often, how much; ours and the peer in both orders
``process``    a measurement is a process of its own, told in JSON what to do, and answering in JSON
``servers``    ours, and Supervisely's own
``models``     what they run, on ours
``pictures``   pictures of a given size, made once; ``clips`` are the videos
``clients``    the processes that measure: our session, the bare loop, ...
``theirs``     the same with Supervisely's package, run by the interpreter that ``scripts/interop`` makes
``table``      the rows as a table and as JSON
``plots``      the pictures of ``docs/benchmarks.md``
=============  ====================================================================================
"""

"""Every source that approxsvm reads, through every interface, compared with the source itself.

    specimens    what an entry, its source, an answer and a refusal are
    sources      the entries: one record for each source, by kind
    tables       rows with a dtype for each column, in any container
    hostile      rows that hurt a given source
    oracle       decision values in extended precision, apart from the package
    executors/   interfaces that answer rows: Python, C, C++, C99, ONNX, wasm, commands
    properties   what has to hold for each answer
    test_zoo     entries x executors x properties: a seeded selection
    composed     one random source, judged
    random_...   sources and rows; tampering: changes of fitted sources; shrinking: the smallest source with a fault
    workers      processes that try one source after the other
    past_faults  faults of the past as edits that put each back: does the zoo find it?

Everything, and sources composed at random, for as long as it is given: ``python -m tests.zoo --seconds 600``.
"""

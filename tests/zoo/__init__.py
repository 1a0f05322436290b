"""Every source that approxsvm reads, compared through every interface with the source itself.

    specimens    definitions: entries, their sources, answers and refusals
    sources      the entries: one record per source, by kind
    tables       rows with a dtype for each column, in any container
    hostile      rows that stress a given source
    oracle       decision values in extended precision, independent of the package
    executors/   interfaces that answer rows: Python, C, C++, C99, ONNX, wasm, commands
    properties   properties that every answer must have
    test_zoo     entries x executors x properties: a seeded selection
    composed     the test of one random source
    random_...   random sources and rows
    tampering    changes to fitted sources
    shrinking    reduction to the smallest source with a fault
    workers      processes that test one source after another
    past_faults  past faults as edits that restore them; the zoo must find them

``python -m tests.zoo --seconds 600`` tests all entries and randomly composed sources for the given time.
"""

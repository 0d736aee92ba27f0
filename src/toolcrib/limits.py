"""Every bound in one place, with its unit in the name and its reason beside it."""

# Retrieval: texts
QUERY_MAX_CHARS = 512
"""Characters of a query that are read (D7): the longest useful request is far shorter, a pasted file is far
longer."""
QUERY_MAX_TERMS = 128
"""Terms of a query that are weighed: n-grams of a full query in a script without spaces are many."""
TERM_MAX_CHARS = 64
"""Characters of one unbroken run that are read: longer ones are encoded data, not words."""
FIELD_MAX_RUNS = 400
"""Runs of one field that are indexed (D1): 99.9 % of real descriptions are shorter; the rest is stuffing or
a manual."""

# Retrieval: caches of one retriever
ANALYSED_MAX_DOCUMENTS = 250_000
"""Analysed documents that a retriever keeps, about 300 bytes each."""
VOCABULARY_MAX_TERMS = 1_000_000
"""Terms that a retriever numbers before it starts over; 100,000 real tools have about 110,000."""
RUN_MEMO_MAX_RUNS = 50_000
"""Written forms that a retriever remembers between two builds, about 200 bytes each."""
DELTA_MAX_SHARE = 0.02
"""Share of an index that may have changed before its postings are built anew instead of being amended."""
DELTA_MIN_DOCUMENTS = 64
"""Changed documents that are always amended: below this, a whole build costs more than every search saves."""

# Retrieval: answers
RESULTS_MAX_HITS = 100
"""Hits of one search, whatever limit was asked for."""

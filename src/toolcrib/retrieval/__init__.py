"""Finding the right tool: documents in, a ranking out.

Nothing here knows about sessions, scopes or calls. An index is a pure function of the documents it was built
from, and a ranking is a pure function of the index and the query: no clock, no network, no randomness.
"""

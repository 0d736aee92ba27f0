"""Every bound, with its unit and its reason, on one screen."""

DEFINITION_MAX_BYTES = 512 * 1024
"""Compact JSON of one definition. The largest of 7,915 real ones has 94 kB."""

DESCRIPTION_MAX_CHARS = 65_536
"""A real description reaches 43,000 characters; beyond this it is no description."""

SCHEMA_MAX_DEPTH = 64
"""Nesting of JSON containers in a definition. Real ones reach 40; parsers fail near 200."""

SCHEMA_MAX_NODES = 50_000
"""JSON values in one definition: keeps a walk over it in the low milliseconds."""

NAME_MAX_CHARS = 128
"""The longest name that the MCP specification allows a source to use."""

EXPOSED_NAME_MAX_CHARS = 64
"""The longest tool name that model APIs accept."""

TOOLS_PER_TOOLSET = 25_000
"""A source that offers more is cut there, and reported. The largest real one has 401; a flat cloud API
3,320."""

EXCERPT_MAX_CHARS = 120
"""Text that a screening finding quotes: enough to recognise the place, too little to be a second payload."""

SCREENED_KEPT = 250_000
"""Tools whose screening is kept by content; most have nothing to keep."""

SCREENED_MAX_CHARS = 131_072
"""Characters of one definition that the phrase rules read, which takes them at most some tens of milliseconds. The
largest of 7,915 real definitions has 94,000; what is not read is reported as such."""

DECODED_RUNS = 64
"""Encoded runs of one string that are decoded and read."""

DECODED_MAX_CHARS = 8_192
"""Characters of one encoded run that are decoded."""

LOCK_MAX_BYTES = 16 * 1024 * 1024
"""Size of a lock file: a line of about 200 bytes for each of 25,000 tools is 5 MB."""

INTAKE_REPORTS = 100
"""Lines that one look at the sources may add to the log and the feed; the rest is counted."""

QUERY_MAX_CHARS = 1_024
"""A longer query is cut: it is a few sentences, not a document."""

QUERY_READ_CHARS = 65_536
"""What is looked at of a query, to find what is asked beside pasted data; the rest is dropped on arrival."""

QUERY_SHOWN_CHARS = 400
"""What an answer repeats of a query, of one among several a fourth: enough to know it by. Who pastes a picture into one
does not pay for it twice."""

LANGUAGE_MAX_WORDS = 192
"""Words and marks of a query in another language that are said in English: more than a sentence is read by."""

QUERIES_PER_SEARCH = 8
"""Needs that one `tool_search` may state at once."""

NAMES_PER_DESCRIBE = 10
"""Names that one `tool_describe` may ask for at once."""

DESCRIBE_MAX_CHARS = 131_072
"""Whole answer of one `tool_describe`."""

HIT_DESCRIPTION_MAX_CHARS = 160
"""Description of a hit, at most its first sentence: half of 7,915 real first sentences have fewer than 80."""

SIGNATURE_MAX_CHARS = 600
"""Signature of a hit. Required parameters are kept even beyond it."""

ARGUMENTS_MAX_BYTES = 1024 * 1024
"""Arguments of one call."""

ARGUMENTS_MAX_DEPTH = 64
"""Nesting of the arguments of one call."""

REFUSAL_SCHEMA_MAX_CHARS = 8_000
"""Schema that goes with a refusal, about 2,000 tokens; of a larger one only what concerns the wrong arguments."""

RESULT_MAX_CHARS = 20_000
"""Text of one result that reaches the model; the rest is cut with a note that says so."""

RESULT_MAX_BLOCKS = 100
"""Content blocks of one result."""

FUNCTION_ITEMS = 1_000
"""Items of a generator that are read, as many as a model can make use of; a further one is told of."""

FUNCTION_THREADS = 64
"""Threads of one toolset of Python functions, those that hang included: four times its calls at once."""

CALL_DEADLINE_S = 120.0
"""Seconds that a tool may take."""

HOOK_DEADLINE_S = 5.0
"""Seconds that one hook, guardrail or checkpoint may take; a slower guard counts as a no."""

APPROVAL_TTL_S = 600.0
"""Seconds that a grant stays valid when it is not used, and that a question waits for an answer, if nothing is set."""

APPROVAL_TTL_MAX_S = 31_536_000.0
"""Seconds after which a question that was left for a person is gone, whatever is set: a year."""

APPROVALS_PENDING = 5
"""Questions that one session may have open, so that nobody is worn down by a spray of prompts."""

ARGUMENTS_SHOWN_CHARS = 8_000
"""Characters of the arguments that somebody is asked about: a few pages are read, and a question fits its file."""

CONCURRENCY_GLOBAL = 256
CONCURRENCY_PER_TOOLSET = 16
CONCURRENCY_PER_SESSION = 8
"""Calls under way at once: in the process, in one toolset, in one session."""

QUEUE_WAIT_S = 10.0
"""Seconds that a call may wait for its place."""

ACTIVITY_EVENTS = 10_000
"""Events that the in-memory feed keeps."""

ACTIVITY_FILE_MAX_BYTES = 64 * 1024 * 1024
"""Size at which the JSONL feed is rotated; one older file is kept."""

QUERY_WORDS_KEPT = 32
"""Words of one search that the feed keeps, if it may keep any."""

SEARCHES_REMEMBERED = 8
"""Searches before a call that count as having led to it."""

LEARNED_WORDS_PER_TOOL = 6
"""Words that are proposed for one tool: more would make it answer to everything."""

CACHE_CATALOGS = 64
"""Catalogs, and the assemblies made of them, that a crib keeps by content."""

CACHE_CARDS = 2_048
"""Tools that were found, as answers show them, kept by content (about 1 kB each)."""

CACHE_VALIDATORS = 4_096
"""Compiled schemas that a crib keeps by content (about 10 kB each)."""

SEARCHES_SHORT = 2
"""Searches without progress that are answered shortly; further ones are answered firmly."""

SEARCHES_STALE = 6
"""Searches without progress after which searching is refused."""

SEARCHES_UNUSED = 24
"""Searches that found something new, one after the other, without any use of what they found."""

# The reference agent
AGENT_STEPS = 40
"""Requests to the model in one turn of the user; a model that spins stops here."""
AGENT_STARTUP_WAIT_S = 30.0
"""Seconds that MCP servers get before a conversation starts without those that are not up."""
AGENT_CALLS_PER_REPLY = 32
"""Calls of one reply that are run; further ones are answered with a refusal."""
AGENT_DEPTH = 2
"""Sub-agents below the agent that the person talks to."""
SUBAGENT_STEPS = 20
"""Requests to the model that one delegated task may take."""
DELEGATE_DEADLINE_S = 1_800.0
"""Seconds that a delegated task may take: it makes many calls of its own."""
MODEL_OUTPUT_TOKENS = 8_192
"""Tokens that one reply may have, where the API asks for a bound."""
MODEL_TIMEOUT_S = 300.0
"""Seconds that the endpoint may take between two pieces of a reply."""
CLARIFY_DEADLINE_S = 3_600.0
"""Seconds that a person may think about a question."""
QUESTION_MAX_CHARS = 2_000
"""Characters of a question to the person."""
TERMINAL_DEADLINE_S = 60.0
"""Seconds that a command may take if it does not ask for more."""
TERMINAL_DEADLINE_MAX_S = 600.0
"""Seconds that a command may ask for."""
OUTPUT_MAX_CHARS = 16_000
"""Output of a command or of code that is kept: the beginning and the end of it."""
FILE_MAX_BYTES = 10 * 1024 * 1024
"""Size of a file that the file tools read, write or patch."""
FILE_LINES = 500
"""Lines that one reading shows."""
SEARCH_FILES_VISITED = 20_000
"""Files that one file search looks at."""
SEARCH_FILES_HITS = 100
"""Hits that one file search shows."""
TODO_ITEMS = 100
"""Entries of the list of things to do."""
MEMORY_MAX_CHARS = 16_000
"""Characters of the memory file: it is read into the conversation."""
JSON_LINE_MAX_BYTES = 8 * 1024 * 1024
"""One line of a host in another language."""
CODE_DEADLINE_S = 120.0
"""Seconds that code may take, its calls included."""
CODE_CPU_S = 30
"""Processor seconds that code may use."""
CODE_MEMORY_BYTES = 1024 * 1024 * 1024
"""Address space of code."""
CODE_FILE_BYTES = 64 * 1024 * 1024
"""Size of a file that code may write."""
CODE_CALLS = 50
"""Calls of tools that one piece of code may make."""
CODE_MESSAGE_MAX_BYTES = 2 * 1024 * 1024
"""One call or one answer on the way between code and its session."""


# Retrieval: texts
QUERY_MAX_TERMS = 256
"""Terms of a query that are weighed: n-grams of a full query in a script without spaces are many."""
SPELLING_MARKED_WORDS = 30_000
"""Words of a vocabulary up to which unknown words are sifted before they are taken for misspelt (1 MB of marks)."""
NEIGHBOURS_PER_WORD = 12
"""Words of nearly the same meaning that a word of a query is also looked up by."""
QUERY_WORDS_CACHED = 2_048
"""Query words that an index remembers the weights of, up to 2 kB each with their neighbours."""
TERM_MAX_CHARS = 64
"""Characters of one unbroken run that are read: longer ones are encoded data, not words."""
FIELD_MAX_RUNS = 400
"""Runs of one field that are indexed (D1): 99.9 % of real descriptions are shorter; the rest is stuffing or
a manual."""


# Retrieval: caches of one retriever
WEIGHTED_MAX_BYTES = 24 * 1024 * 1024
"""Weighted postings that are kept for the queries to come: those of the commonest words at 100,000 tools."""
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
SELECTION_MAX_ROWS = 4_096
"""Rows that are looked at to find rivals of a toolset that fills an answer."""
QUERY_MAX_CLAUSES = 8
"""Clauses of a query that are also looked up each for itself; more is a text, not a request."""
CLAUSE_MAX_ROWS = 500
"""Best documents of a query whose clauses are looked at: further down, no clause brings one to the top."""
COMPARED_ROWS = 12
"""Best documents of a query that are compared with it piece by piece; 20 or 30 bring nothing more."""
NEAREST_NAMES = 5
"""Names that an abstaining search shows as the nearest: of 33 answers that were emptied wrongly, 20 named a right tool
among three, 23 among five (`bench/real_catalogs`)."""


# Retrieval: vectors
SEMANTIC_WORD_MAX_CHARS = 128
"""Characters of one unbroken run that are read: a sentence of a script without spaces, or encoded data."""
SEMANTIC_WORDS_CACHED = 100_000
"""Words whose rows a model remembers before it starts over; 100,000 real tools have about 110,000 terms."""
SEMANTIC_FIELD_MAX_CHARS = 1_500
"""Characters of one field that are embedded: what follows is detail, and dilutes the vector."""
SEMANTIC_FIELD_MAX_ROWS = 160
"""Rows of one field that are summed, for the same reason."""
SEMANTIC_CACHED_DOCUMENTS = 150_000
"""Document vectors that a model keeps by content before it starts over, about 400 bytes each."""
SEMANTIC_CACHED_QUERIES = 256
"""Queries whose vectors are remembered: a search asks for the same one several times."""
READER_MAX_PIECES = 48
"""Word pieces of a query that are read as a sentence: the cost grows with them."""
READER_TOOL_PIECES = 32
"""Word pieces of a tool that are read as a sentence; with half as many again the ranking is the same."""
READER_TOOL_CHARS = 200
"""Characters of a description that can hold as many."""
JOINT_TOOL_CHARS = 300
"""The same for a tool that is read together with a query, which is read as far as a query is: `READER_MAX_PIECES`."""
JOINT_ROWS = 3
"""Best documents that are read together with a query that is in doubt: some six milliseconds each. With two
abstention finds less, with five no more."""
JOINT_CLAUSES = 4
"""Clauses of a query in doubt that are looked up and read with their best document: some seven milliseconds each. With
eight abstention finds no more."""
JOINT_MOST_DOCUMENTS = 5_000
"""Documents up to which that is done: in larger catalogs little is absent, and a search takes longer as it is."""
READER_WORDS_CACHED = 50_000
"""Words whose pieces are remembered."""
READER_AT_ONCE = 256
"""Tools up to which an index is whole when it is made, half a second for that many; more are read while it is used."""
SEMANTIC_EXACT_DOCUMENTS = 25_000
"""Documents up to which every score is exact: 6 MB of vectors, a tenth of a millisecond a query with the kernel."""
SEMANTIC_REFINED_DOCUMENTS = 2_000
"""Nearest documents of a larger index whose scores are computed exactly."""


# Retrieval: vectors that are made in the background
FILL_BATCH_TEXTS = 16
"""Texts that are read between two reports of progress: about 30 ms."""
FILL_SAVE_EVERY_S = 20.0
"""Seconds of reading after which the file of vectors is written."""
FILL_SAVE_AT_ONCE = 64
"""New vectors from which on they are written at once; fewer are at the end."""
FILL_STOP_S = 2.0
"""Seconds that an ending process waits for the text that is being read."""
FILL_KEPT_VECTORS = 100_000
"""Records that are kept in memory; the oldest go first."""
FILL_FILE_VECTORS = 25_000
"""Records that the file keeps, 1,301 bytes each; the oldest go first. Every process reads all of them."""
FILL_SEARCH_WAIT_S = 30.0
"""Seconds that `toolcrib search` waits for vectors before it goes on with what there is."""


# Retrieval: an embeddings endpoint of the operator's choice
EMBEDDING_QUERY_BUDGET_S = 0.3
"""Seconds that a search waits for its query's vector (D4)."""
EMBEDDING_BREAKER_FAILURES = 3
"""Failures in a row after which the endpoint is left alone for a while."""
EMBEDDING_BREAKER_S = 30.0
"""Seconds for which it is left alone."""
EMBEDDING_REPORT_EVERY_S = 60.0
"""Seconds between two reports of a failing endpoint."""
EMBEDDING_CACHED_VECTORS = 50_000
"""Tool vectors of an endpoint that are kept by content, 4 kB each at 1,024 dimensions."""
EMBEDDING_BATCH_TEXTS = 64
"""Texts sent to an endpoint at once."""
EMBEDDING_DOCUMENT_MAX_CHARS = 2_000
"""Characters of a tool that an endpoint is sent."""
EMBEDDING_VECTOR_MAX_DIMENSIONS = 8_192
"""Numbers in one vector; the largest known model has 4,096."""
EMBEDDING_RESPONSE_MAX_BYTES = 32 * 1024 * 1024
"""Bytes of one answer of an endpoint: 64 vectors of the largest known model in JSON are about 6 MB."""
RERANKED_MAX_HITS = 50
"""Best hits that an endpoint or a second stage may reorder."""


# MCP: what is read from a server, and from a client
UPSTREAM_LINE_MAX_BYTES = 8 * 1024 * 1024
"""One message of an MCP server on its standard output; a longer one is a broken server."""
UPSTREAM_BODY_MAX_BYTES = 16 * 1024 * 1024
"""One response of an MCP server over HTTP, decompressed."""
REQUEST_MAX_BYTES = 4 * 1024 * 1024
"""One message of an MCP client: what the official SDK takes."""
REQUEST_READ_S = 15.0
"""Seconds that a client may take to send one request."""
HEAD_MAX_BYTES = 64 * 1024
"""Request line and fields of one request over HTTP; besides, what surrounds the chunks of its body."""
KEEP_ALIVE_S = 75.0
"""Seconds that a connection without a request is kept open."""
WRITE_STALL_S = 30.0
"""Seconds in which a client must have read at least something of what was sent to it."""
CONNECTIONS_MAX = 1_024
"""Connections of HTTP clients at once; a further one is told so."""
PIPELINE_MAX = 16
"""Requests that a client may send ahead of their replies; then its connection is not read."""
UPSTREAM_PAGES = 1_000
"""Pages of one list; a server that offers more is cut there, and reported."""
UPSTREAM_NOISE_BYTES_PER_MINUTE = 64 * 1024
"""What a server writes to its standard error, or garbage on its output, that is logged; more is only counted."""
PARKED_CALLS = 256
"""Calls that wait for a stateless client to come back with an answer."""
PARKED_SHARE = 0.5
"""Share of a principal's places that such calls keep while its further calls stand in line: the oldest makes room."""
PARKED_WANTED_S = 15.0
"""Seconds that such a call goes on waiting while others queue for the same server: its client may never come back."""
PARKED_S = 600.0
"""Seconds that such a call waits; the server's own deadline counts besides."""
INPUT_ROUNDS = 8
"""Times that one call may ask its caller for input."""

# MCP: starting and stopping servers
CONNECT_S = 60.0
"""Seconds until a server must have answered its first request: the slowest of 302 real ones took 25."""
PROBE_S = 20.0
"""Seconds after which a server that does not answer the modern probe is taken for an old one."""
SIGN_IN_S = 300.0
"""Seconds that a person may take to sign in at a server."""
SIGN_IN_AGAIN_S = 600.0
"""Seconds after a refused sign-in during which no page is opened again."""
SIGN_IN_BODY_MAX_BYTES = 256 * 1024
"""One response of an authorization server: metadata and tokens are a few kilobytes."""
SIGN_IN_TRIES_MAX = 3
"""Tokens tried for one request: ours, one that somebody else renewed meanwhile, and one that is renewed for it."""
LIST_S = 30.0
"""Seconds for one page of a list."""
RESTART_MIN_S = 1.0
RESTART_MAX_S = 60.0
"""Pause before a restart: full jitter up to a bound that doubles with every failure."""
BREAKER_FAILURES = 5
BREAKER_WINDOW_S = 60.0
"""So many failed starts within this time, and the server is left alone for as long."""
IDLE_STOP_S = 300.0
"""Seconds without a call after which an `idle_stop` server is stopped."""
REFRESH_EVERY_S = 1.0
"""Seconds between two refreshes of one server's lists, however often it says that they changed."""
TERMINATE_S = 2.0
"""Seconds between closing a server's input, the polite signal and the final one."""
EXIT_CODE_S = 2.0
"""Seconds after the end of a server's output in which its exit code, which says more, still counts as the reason."""
DRAIN_S = 10.0
"""Seconds that calls under way may take to end when the gateway is told to stop."""
SSE_PING_S = 15.0
"""Seconds of silence after which an open stream gets a comment, so that no proxy closes it."""

# The gateway's process and its clients
GC_EVERY_OBJECTS = 10_000
"""New objects after which the collector of cycles looks at the youngest: some megabytes."""
SESSIONS_MAX = 1_000
"""Sessions of old clients kept at once; of who has the most, the longest unused one is ended for a new one."""
SESSION_IDLE_S = 1_800.0
"""Seconds after which an unused session is ended."""
LOOK_EVERY_S = 1.0
"""Seconds between two looks at what clients keep open: so long somebody goes on hearing whose token was revoked."""
STREAM_BACKLOG = 1_024
"""Messages waiting for a client that does not read; then its stream is ended."""
LISTENERS_MAX = 256
"""Open subscription streams; who has the most gives one up for who has fewer."""
SUBSCRIPTIONS_PER_CLIENT = 1_000
"""Resources that one old client follows: each is a request to its server, and again after every start."""
AUTH_FAILURES_PER_MINUTE = 10
"""Wrong tokens from one address before it is told to wait."""
AUTH_ADDRESSES = 10_000
"""Addresses whose failures are counted at once."""
# Clients' files
CLIENT_FILE_MAX_BYTES = 64 * 1024 * 1024
"""A client's settings file. One that also keeps the history of years has 20 MB."""
CLIENT_FILE_MAX_DEPTH = 200
"""Nesting of values in it: what a reader that calls itself can take."""


# Audit
AUDIT_BIGGEST_TOOLS = 10
"""Largest definitions that a report names."""
AUDIT_START_S = 60.0
"""Seconds that a server may take to list its tools: a first start may have to fetch its program."""
AUDIT_CLOSE_S = 10.0
"""Seconds that a server may take to end before it is left to the system."""
AUDIT_SAMPLE_SEARCHES = 25
"""Searches that the median cost of a search is taken from: enough for a stable figure, done in a moment."""
EVAL_SAMPLE_SEARCHES = 500
"""Queries whose answers an evaluation weighs: enough for a steady p95, in a second or two."""

# Doctor
DOCTOR_START_S = 30.0
"""Seconds that a server may take before it counts as not answering: most of 302 real ones take under six."""
DOCTOR_ENDPOINT_S = 10.0
"""Seconds for an embeddings endpoint that may first have to load its model."""
DOCTOR_ITEMS = 10
"""Findings of one kind that a page shows; all are in the JSON."""
CLIENT_WINDOW_TOKENS = 200_000
"""The context window that `install` takes a client's model to have, unless the client's file or the person says."""

CLIENT_TOOLS_MAX = 128
"""Tools that several clients and model APIs take in one request."""
CLIENT_NAME_MAX_CHARS = 64
"""Characters of a tool's name that model APIs take, the client's prefix included."""

# The console
ANNEX_CONNECTIONS = 64
"""Connections at once to the console on an address of its own: descriptors are for clients and servers."""
CONSOLE_BODY_MAX_BYTES = 64 * 1024
"""Body of a request to the console: the longest question is a few thousand characters."""
CONSOLE_CODE_S = 3_600.0
"""Seconds that the printed link may wait to be opened: a terminal remembers it for longer."""
CONSOLE_SESSIONS = 32
"""People signed in at once; the longest ago one is signed out for a new one."""
CONSOLE_SESSION_S = 43_200.0
"""Seconds after which somebody has to sign in again: a working day."""
CONSOLE_STREAMS = 16
"""Open streams of live activity; a further one is told so."""
CONSOLE_BEAT_S = 0.5
"""Seconds between two looks at the feed while somebody watches; nobody reads faster."""
CONSOLE_BEAT_NOTES = 100
"""Notes of the feed that are shown of one beat, two for a call. A gateway may do thousands: the last ones are shown."""
CONSOLE_RECENT_NOTES = 400
"""Notes that somebody who begins to watch sees at once."""
CONSOLE_BACKLOG = 8
"""Beats that wait for a page that does not read, about a megabyte; then its stream is ended."""

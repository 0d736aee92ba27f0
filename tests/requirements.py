"""What Toolcrib promises, by id: every id here has a test that names it, and no test names another."""

IMPLEMENTED = {
    # The core design
    "S1": "three reserved names that no source can register, in any spelling or look-alike",
    "S2": "the bridge replaces the deferred tools, after the visible ones, in a fixed order, for at most 300 tokens",
    "S3": "tool_search: blank query, limits, and what the answer carries",
    "S4": "tool_describe: the full schema of one tool, or a clear answer",
    "S5": "tool_call is unwrapped before any hook; arguments as object, JSON string or null",
    "S6": "the bridge never reaches itself; core tools through it are answered with the direct call",
    "S7": "the transcript keeps the model's entry; everything else sees the real name, on every route",
    "S8": "core tools never defer, and an assembly that would lose one raises",
    "S9": "what cannot be classified stays visible; a plugin cannot make a core name deferrable",
    "S10": "MCP and non-core plugin tools are deferrable, nothing else",
    "S11": "assembly is idempotent, and drops stray bridge tools",
    "S12": "off never, on with one deferrable tool, auto at the threshold; below it an exact pass-through",
    "S13": "an unknown window means 20,000 tokens; the estimate is characters of compact JSON over four",
    "S14": "the window is the session's own",
    "S15": "decided again at every assembly",
    "S16": "the decision is a value with its reason, and one log line on activation",
    "S17": "the threshold is capped, so that a large window does not switch the gate off",
    "S18": "caches are keyed by content: unchanged costs nothing, changed is never stale",
    "S19": "search, describe, call, counts and texts see the session's slice and nothing else; narrow only narrows",
    "S20": "a call outside the slice is refused before any hook, where it is unwrapped and where it is dispatched",
    "S21": "a bridge call never changes what another session resolves",
    "S22": "a missing required tool fails loudly before a model is called",
    "S23": "BM25 over name, description and parameter names, with a substring fallback",
    # Beyond it
    "X1": "fields with weights, split identifiers, Unicode words, names that win",
    "X3": "a search ends in a call: signatures, schemas of the best hits, within a budget",
    "X4": "several needs in one call",
    "X5": "arguments are checked offline and bounded; a wrong call is repaired in one turn",
    "X6": "one world of names",
    "X7": "the progress guard",
    "X9": "the listing",
    "X10": "assembly with a previous turn keeps its bytes",
    "X11": "same input, same bytes",
    "X12": "native reveal where the model API has it, the bridge elsewhere and after a refusal",
    "X13": "one list of stages",
    "X14": "approval binds to what finally runs, once, with expiry",
    "X15": "activity: one event per stage",
<<<<<<< HEAD
    "X28": "a reference agent that closes the loop: core tools, sub-agents, scheduled turns, the feed",
=======
    "X21": "intake: what is hidden, changed or new is found, reported and held back before a model reads it",
>>>>>>> main
}

LATER: dict[str, str] = {}

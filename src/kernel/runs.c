/* Runs: what runs of letters and digits stand for, remembered for `retrieval.analysis`. */

#include "stretches.h"

#define PROBES 32 /* places looked at for one run: whoever makes runs collide gains no more than a look-up in Python */

typedef struct {
    uint64_t hash; /* none: free */
    uint32_t start, size;
    int32_t code; /* the number of the one term, or where several of them stand, counted down from -2 */
} Place;

struct Runs {
    Place *places;
    size_t room, used; /* room is a power of two */
    char *letters;
    size_t letters_room, letters_used;
    int32_t *several; /* the terms of runs that have not exactly one, each row of them after its length */
    size_t several_room, several_used;
    Vocabulary *vocabulary; /* the one whose numbers these are, and whose seed hashes runs and terms alike */
};

static void free_runs(PyObject *capsule)
{
    Runs *held = PyCapsule_GetPointer(capsule, RUNS);
    if (held) {
        Py_XDECREF(held->vocabulary);
        PyMem_Free(held->places);
        PyMem_Free(held->letters);
        PyMem_Free(held->several);
        PyMem_Free(held);
    }
}

/* runs(vocabulary) -> an empty memo of runs and their codes: the numbers of terms of this vocabulary and of no other. */
PyObject *runs(PyObject *module, PyObject *vocabulary)
{
    if (!as_vocabulary(vocabulary))
        return PyErr_Format(PyExc_TypeError, "runs takes a vocabulary");
    Runs *held = PyMem_Calloc(1, sizeof(Runs));
    PyObject *capsule = held ? PyCapsule_New(held, RUNS, free_runs) : PyErr_NoMemory();
    if (capsule)
        held->vocabulary = (Vocabulary *)Py_NewRef(vocabulary);
    else
        PyMem_Free(held);
    return capsule;
}

Vocabulary *vocabulary_of(const Runs *held) { return held->vocabulary; }

/* run_count(runs) -> how many runs the memo holds. */
PyObject *run_count(PyObject *module, PyObject *memo)
{
    Runs *held = PyCapsule_GetPointer(memo, RUNS);
    return held ? PyLong_FromSize_t(held->used) : NULL;
}

/* The place of a run, or the free one where it belongs; NULL if neither is near. */
static Place *place_of(const Runs *held, uint64_t hash, const char *run, size_t size)
{
    for (size_t probe = 0; held->room && probe < PROBES; probe++) {
        Place *place = &held->places[((hash >> 1) + probe) & (held->room - 1)];
        if (!place->hash
            || (place->hash == hash && place->size == size && !memcmp(held->letters + place->start, run, size)))
            return place;
    }
    return NULL;
}

/* Makes room for one more run of this size. */
static int grow_runs(Runs *held, size_t size)
{
    if (grow_letters(&held->letters, &held->letters_room, held->letters_used + size) < 0)
        return -1;
    if (held->used * 2 < held->room)
        return 0;
    Runs larger = *held;
    larger.room = !held->room ? 1024 : held->room < 1 << 14 ? held->room * 4 : held->room * 2;
    larger.places = PyMem_Calloc(larger.room, sizeof(Place));
    if (!larger.places)
        return -1;
    for (size_t at = 0; at < held->room; at++) {
        Place *old = &held->places[at];
        Place *place = old->hash ? place_of(&larger, old->hash, held->letters + old->start, old->size) : NULL;
        if (place)
            *place = *old;
    }
    PyMem_Free(held->places);
    *held = larger;
    return 0;
}

/* Notes the terms of a run, behind all others; where they stand, or -1 with an error set. */
static Py_ssize_t note_terms(Runs *held, const char *run, size_t size)
{
    Piece pieces[PIECES_MAX];
    size_t count = pieces_of_run(run, size, pieces), start = held->several_used;
    if (start + count + 1 > held->several_room) {
        size_t room = (start + count + 1) * 2 + 256;
        int32_t *several = room < INT32_MAX ? PyMem_Realloc(held->several, room * sizeof(int32_t)) : NULL;
        if (!several) {
            PyErr_NoMemory();
            return -1;
        }
        held->several = several;
        held->several_room = room;
    }
    int32_t *to = held->several + start;
    *to++ = (int32_t)count;
    for (size_t at = 0; at < count; at++) {
        char term[WORD_MAX];
        for (Py_ssize_t place = 0; place < pieces[at].size; place++)
            term[place] = lower_of(pieces[at].start[place]);
        if ((*to++ = number_term(held->vocabulary, term, (size_t)pieces[at].size)) < 0)
            return -1;
    }
    held->several_used = start + count + 1;
    return (Py_ssize_t)start;
}

/* Finds the terms of a run that is new, and remembers them: its place, or NULL. Sets an error, or none if the memo has no
   room for the run. */
static Place *add_place(Runs *held, const Met *met, size_t longest)
{
    const char *run = met->run;
    size_t size = met->size;
    Place *place = grow_runs(held, size) == 0 ? place_of(held, met->hash, run, size) : NULL;
    if (!place)
        return NULL;
    Py_ssize_t code = note_terms(held, run, size < longest ? size : longest);
    if (code < 0)
        return NULL;
    if (held->several[code] == 1) { /* `Read` has one term as well */
        held->several_used = (size_t)code;
        code = held->several[code + 1];
    }
    else
        code = -2 - code;
    *place = (Place){met->hash, (uint32_t)held->letters_used, (uint32_t)size, (int32_t)code};
    memcpy(held->letters + held->letters_used, run, size);
    held->letters_used += size;
    held->used++;
    return place;
}

/* Letters and digits among 64 bytes, and lower-case letters. */
typedef struct {
    uint64_t word, lower;
} Letters;

static inline Letters letters_in(const char *at)
{
    Letters bits = {0, 0};
    for (int which = 0; which < STRETCH; which += BYTES) {
        Bytes all = bytes_at(at + which), lower = is_from(all, 'a', 25);
        Bytes others = either(is_from(all, 'A', 25), is_from(all, '0', 9));
        bits.word |= pack(either(lower, others)) << which;
        bits.lower |= pack(lower) << which;
    }
    return bits;
}

/* Notes a run, and has its place fetched. */
static inline void meet(uint64_t seed, const uint32_t *places, uint64_t mask, const char *run, size_t size, int plain, Met *met)
{
    uint64_t hash = hash_run(seed, run, size);
    *met = (Met){run, size, hash | !plain, plain};
    FETCH(&places[hash & mask]);
}

const char *meet_runs(const Runs *held, const char *at, const char *stop, size_t longest, Met *met, size_t *used,
                      size_t most)
{
    static const uint32_t NOWHERE[1] = {0};
    const Vocabulary *vocabulary = held->vocabulary;
    const uint64_t seed = vocabulary->seed, mask = vocabulary->room ? vocabulary->room - 1 : 0;
    const uint32_t *places = vocabulary->room ? vocabulary->places : NOWHERE;
    Met *next_met = met + *used, *last_met = met + most;
    for (const char *next; at < stop; at = next) {
        Letters bits = letters_in(at);
        next = stop - at > STRETCH ? at + STRETCH : stop;
        uint64_t word = bits.word & ones((size_t)(next - at)), lower = bits.lower;
        if (next < stop && !~word) { /* one run, and it goes on */
            if (next_met == last_met)
                break;
            for (; next < stop && is_wordly(*next); next++)
                lower &= is_lower(*next) ? ~(uint64_t)0 : 0;
            size_t size = (size_t)(next - at);
            meet(seed, places, mask, at, size, !~lower && size <= longest, next_met++);
            continue;
        }
        if (next < stop) { /* the last run may go on: it is left to the next stretch */
            size_t open = STRETCH - (size_t)highest(~word) - 1;
            next -= open;
            word &= ones(STRETCH - open);
        }
        /* Where runs start, and behind where they end: nothing for one that ends with the stretch. */
        uint64_t starts = word & ~(word << 1), ends = ~word & word << 1, others = word & ~lower;
        for (; starts && next_met < last_met; starts &= starts - 1, ends &= ends - 1) {
            uint64_t run = (ends & -ends) - (starts & -starts);
            int first = lowest(starts);
            size_t size = (size_t)((ends ? lowest(ends) : STRETCH) - first);
            meet(seed, places, mask, at + first, size, !(others & run) && size <= longest, next_met++);
        }
        if (starts) {
            at += lowest(starts);
            break;
        }
    }
    *used = (size_t)(next_met - met);
    return at;
}

int terms_of_run(Runs *held, const Met *met, size_t longest, const int32_t **numbers)
{
    Place *place = NULL;
    if (met->size <= UINT32_MAX / 4) {
        place = place_of(held, met->hash, met->run, met->size);
        if (!place || !place->hash)
            place = add_place(held, met, longest);
    }
    if (!place)
        return PyErr_Occurred() ? -1 : -2;
    if (place->code >= 0) {
        *numbers = &place->code;
        return 1;
    }
    *numbers = held->several + (-2 - place->code) + 1;
    return held->several[-2 - place->code];
}

/* Runs: what runs of letters and digits stand for, remembered for `retrieval.analysis`. */

#include "kernel.h"

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
    PyObject *found = PyList_New(0);
    if (!found || add_run(found, run, (Py_ssize_t)size) < 0) {
        Py_XDECREF(found);
        return -1;
    }
    size_t count = (size_t)PyList_GET_SIZE(found), start = held->several_used;
    if (start + count + 1 > held->several_room) {
        size_t room = (start + count + 1) * 2 + 256;
        int32_t *several = room < INT32_MAX ? PyMem_Realloc(held->several, room * sizeof(int32_t)) : NULL;
        if (!several) {
            Py_DECREF(found);
            PyErr_NoMemory();
            return -1;
        }
        held->several = several;
        held->several_room = room;
    }
    int32_t *to = held->several + start;
    *to++ = (int32_t)count;
    for (size_t at = 0; at < count; at++) {
        Py_ssize_t letters;
        const char *term = ascii_of(PyList_GET_ITEM(found, (Py_ssize_t)at), &letters);
        if (!term || (*to++ = number_term(held->vocabulary, term, (size_t)letters)) < 0) {
            Py_DECREF(found);
            return -1;
        }
    }
    Py_DECREF(found);
    held->several_used = start + count + 1;
    return (Py_ssize_t)start;
}

/* Finds the terms of a run that is new, and remembers them: its place, or NULL. Sets an error, or none if the memo has no
   room for the run. */
static Place *add_place(Runs *held, const Met *met, size_t longest)
{
    const char *run = met->run;
    size_t size = met->size;
    if (grow_runs(held, size) < 0 || !place_of(held, met->hash, run, size))
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
    /* A list was made, and the collector may have run: the memo may be another one now. */
    Place *place = grow_runs(held, size) == 0 ? place_of(held, met->hash, run, size) : NULL;
    if (place && !place->hash) {
        *place = (Place){met->hash, (uint32_t)held->letters_used, (uint32_t)size, (int32_t)code};
        memcpy(held->letters + held->letters_used, run, size);
        held->letters_used += size;
        held->used++;
    }
    return place;
}

/* Where the run that begins here ends; whether there is anything else in it than lower-case letters. */
static inline const char *end_of_run(const char *at, const char *stop, const char *end, int *mixed)
{
    uint64_t others = 0;
#if PY_LITTLE_ENDIAN
    const uint64_t ones = ~(uint64_t)0 / 255, tops = ones << 7;
    for (uint64_t eight, odd; !others && end - at >= 8 && at < stop; at += others ? lowest(others) / 8 : 8) {
        memcpy(&eight, at, 8);
        eight &= ~tops; /* what is not ASCII stands behind the text */
        /* The highest bit of a byte says whether it is at least the first, and then whether it is beyond the last. */
        const uint64_t lower = (eight + ones * (128 - 'a')) & ~(eight + ones * (127 - 'z'));
        const uint64_t upper = (eight + ones * (128 - 'A')) & ~(eight + ones * (127 - 'Z'));
        const uint64_t digits = (eight + ones * (128 - '0')) & ~(eight + ones * (127 - '9'));
        others = ~(lower | upper | digits) & tops;
        odd = (upper | digits) & tops;
        *mixed |= odd && (!others || lowest(odd) < lowest(others)) && at + lowest(odd) / 8 < stop;
    }
#endif
    if (!others)
        for (; at < stop && is_wordly(*at); at++)
            *mixed |= !is_lower(*at);
    return at < stop ? at : stop;
}

const char *meet_runs(const Runs *held, const char *at, const char *stop, const char *end, size_t longest, Met *met,
                      size_t *used, size_t most)
{
    const Vocabulary *vocabulary = held->vocabulary;
    const uint64_t seed = vocabulary->seed;
    while (*used < most) {
        while (at < stop && !is_wordly(*at))
            at++;
        if (at == stop)
            break;
        Met *each = &met[(*used)++];
        int mixed = 0;
        each->run = at;
        at = end_of_run(at, stop, end, &mixed);
        each->size = (size_t)(at - each->run);
        each->plain = !mixed && each->size <= longest;
        uint64_t hash = hash_start(seed, each->size);
        for (const char *eight = each->run; eight < at; eight += 8) {
            size_t left = (size_t)(at - eight);
            char last[8] = {0};
            if (end - eight < 8)
                memcpy(last, eight, left);
            hash = hash_step(seed, hash, letters_at(end - eight < 8 ? last : eight, left));
        }
        each->hash = each->plain ? hash : hash | 1;
        if (each->plain && vocabulary->room)
            FETCH(&vocabulary->places[hash & (vocabulary->room - 1)]);
    }
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

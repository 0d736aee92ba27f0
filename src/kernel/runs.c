/* Runs: what runs of letters and digits stand for, remembered for `retrieval.analysis`. */

#include "kernel.h"

#define PROBES 32 /* places looked at for one run: whoever makes runs collide gains no more than a look-up in Python */

typedef struct {
    uint64_t hash, head; /* no hash: free; the first letters, which are all of a short run */
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
    uint64_t seed;
};

static void free_runs(PyObject *capsule)
{
    Runs *held = PyCapsule_GetPointer(capsule, RUNS);
    if (held) {
        PyMem_Free(held->places);
        PyMem_Free(held->letters);
        PyMem_Free(held->several);
        PyMem_Free(held);
    }
}

/* runs(seed) -> an empty memo of runs and their codes; the seed keeps others from guessing where runs go. */
FAST(runs)
{
    Runs *held = count == 1 ? PyMem_Calloc(1, sizeof(Runs)) : NULL;
    if (!held)
        return count == 1 ? PyErr_NoMemory() : PyErr_Format(PyExc_TypeError, "runs takes a seed");
    held->seed = PyLong_AsUnsignedLongLongMask(args[0]);
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(held, RUNS, free_runs);
    if (!capsule)
        PyMem_Free(held);
    return capsule;
}

/* run_count(runs) -> how many runs the memo holds. */
PyObject *run_count(PyObject *module, PyObject *memo)
{
    Runs *held = PyCapsule_GetPointer(memo, RUNS);
    return held ? PyLong_FromSize_t(held->used) : NULL;
}

/* The letters from here on, at most eight, in one number. At least eight bytes can be read. */
static inline uint64_t letters_at(const char *run, size_t size)
{
    uint64_t word;
    memcpy(&word, run, sizeof word);
    if (size < sizeof word) /* without what stands behind the run */
#if PY_BIG_ENDIAN
        word &= ~(~(uint64_t)0 >> (8 * size));
#else
        word &= ~(~(uint64_t)0 << (8 * size));
#endif
    return word;
}

/* At least eight bytes behind the run can be read. */
static uint64_t hash_of(const Runs *held, const char *run, size_t size)
{
    uint64_t hash = held->seed ^ (size * 0x9e3779b97f4a7c15u);
    for (size_t at = 0; at < size; at += sizeof hash) {
        hash = (hash ^ letters_at(run + at, size - at)) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
        hash *= held->seed | 1;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* The place of a run, or the free one where it belongs; NULL if neither is near. */
static Place *place_of(const Runs *held, uint64_t hash, uint64_t head, const char *run, size_t size)
{
    for (size_t probe = 0; held->room && probe < PROBES; probe++) {
        Place *place = &held->places[((hash >> 1) + probe) & (held->room - 1)];
        if (!place->hash
            || (place->hash == hash && place->size == size && place->head == head
                && (size <= sizeof head || !memcmp(held->letters + place->start, run, size))))
            return place;
    }
    return NULL;
}

/* Makes room for one more run of this size. */
static int grow_runs(Runs *held, size_t size)
{
    if (held->letters_used + size > held->letters_room) {
        size_t room = (held->letters_used + size) * 2 + 4096;
        char *letters = room < UINT32_MAX ? PyMem_Realloc(held->letters, room) : NULL;
        if (!letters)
            return -1;
        held->letters = letters;
        held->letters_room = room;
    }
    if (held->used * 2 < held->room)
        return 0;
    Runs larger = *held;
    larger.room = !held->room ? 1024 : held->room < 1 << 14 ? held->room * 4 : held->room * 2;
    larger.places = PyMem_Calloc(larger.room, sizeof(Place));
    if (!larger.places)
        return -1;
    for (size_t at = 0; at < held->room; at++) {
        Place *old = &held->places[at];
        Place *place = old->hash ? place_of(&larger, old->hash, old->head, held->letters + old->start, old->size) : NULL;
        if (place)
            *place = *old;
    }
    PyMem_Free(held->places);
    *held = larger;
    return 0;
}

/* The number of a term, a new one if it has none; -1 with an error set. Lets go of the term, which may be none. */
static int32_t number_term(PyObject *vocabulary, PyObject *term)
{
    PyObject *fresh = term ? PyLong_FromSsize_t(PyDict_GET_SIZE(vocabulary)) : NULL;
    PyObject *number = fresh ? PyDict_SetDefault(vocabulary, term, fresh) : NULL;
    long value = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(fresh);
    Py_XDECREF(term);
    if (value >= 0 && value < PyDict_GET_SIZE(vocabulary) && value <= INT32_MAX)
        return (int32_t)value;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a term has no number");
    return -1;
}

static int is_plain(const char *run, size_t size)
{
    for (size_t at = 0; at < size; at++)
        if (!is_lower(run[at]))
            return 0;
    return 1;
}

/* Notes the terms of a run that is not plain letters, behind all others; where they stand, or -1 with an error set. */
static Py_ssize_t note_terms(Runs *held, PyObject *vocabulary, const char *run, size_t size)
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
    for (size_t at = 0; at < count; at++)
        if ((*to++ = number_term(vocabulary, Py_NewRef(PyList_GET_ITEM(found, (Py_ssize_t)at)))) < 0) {
            Py_DECREF(found);
            return -1;
        }
    Py_DECREF(found);
    held->several_used = start + count + 1;
    return (Py_ssize_t)start;
}

/* Finds the terms of a run that is new, and remembers them: its place, or NULL. Sets an error, or none if the memo has no
   room for the run. */
static Place *add_place(Runs *held, PyObject *vocabulary, Place wanted, const char *run, size_t most)
{
    size_t size = wanted.size, read = size < most ? size : most;
    Py_ssize_t code;
    if (grow_runs(held, size) < 0 || !place_of(held, wanted.hash, wanted.head, run, size))
        return NULL;
    if (is_plain(run, read)) {
        PyObject *term = PyUnicode_New((Py_ssize_t)read, 127);
        if (term)
            memcpy(PyUnicode_DATA(term), run, read);
        code = number_term(vocabulary, term);
    }
    else {
        code = note_terms(held, vocabulary, run, read);
        if (code >= 0 && held->several[code] == 1) { /* `Read` has one term as well */
            held->several_used = (size_t)code;
            code = held->several[code + 1];
        }
        else if (code >= 0)
            code = -2 - code;
    }
    if (code == -1)
        return NULL;
    /* A list was made, and the collector may have run: the memo may be another one now. */
    Place *place = grow_runs(held, size) == 0 ? place_of(held, wanted.hash, wanted.head, run, size) : NULL;
    if (place && !place->hash) {
        wanted.start = (uint32_t)held->letters_used;
        wanted.code = (int32_t)code;
        *place = wanted;
        memcpy(held->letters + held->letters_used, run, size);
        held->letters_used += size;
        held->used++;
    }
    return place;
}

/* Where the run that begins here ends. */
static inline const char *end_of_run(const char *at, const char *stop, const char *end)
{
#if PY_LITTLE_ENDIAN
    const uint64_t ones = ~(uint64_t)0 / 255, tops = ones << 7;
    for (uint64_t eight; end - at >= 8 && at < stop; at += 8) {
        memcpy(&eight, at, 8);
        eight &= ~tops; /* what is not ASCII stands behind the text */
        /* The highest bit of a byte says whether it is at least the first, and then whether it is beyond the last. */
        const uint64_t lower = eight | ones << 5;
        const uint64_t letters = (lower + ones * (128 - 'a')) & ~(lower + ones * (127 - 'z'));
        const uint64_t digits = (eight + ones * (128 - '0')) & ~(eight + ones * (127 - '9'));
        const uint64_t others = ~(letters | digits) & tops;
        if (others) {
            at += lowest(others) / 8;
            return at < stop ? at : stop;
        }
    }
#endif
    while (at < stop && is_wordly(*at))
        at++;
    return at < stop ? at : stop;
}

const char *meet_runs(const Runs *held, const char *at, const char *stop, const char *end, Met *met, size_t *used,
                      size_t most)
{
    while (*used < most) {
        while (at < stop && !is_wordly(*at))
            at++;
        if (at == stop)
            break;
        const char *run = at;
        at = end_of_run(at, stop, end);
        Met *each = &met[(*used)++];
        each->run = run;
        each->size = (size_t)(at - run);
        each->hash = each->head = 0;
        if (end - at >= 8) {
            each->hash = hash_of(held, run, each->size);
            each->head = letters_at(run, each->size);
        }
        else if (each->size <= WORD_MAX) {
            char last[WORD_MAX + 8] = {0};
            memcpy(last, run, each->size);
            each->hash = hash_of(held, last, each->size);
            each->head = letters_at(last, each->size);
        }
        if (held->room)
            FETCH(&held->places[(each->hash >> 1) & (held->room - 1)]);
    }
    return at;
}

int terms_of_run(Runs *held, PyObject *vocabulary, const Met *met, size_t most, const int32_t **numbers)
{
    Place *place = NULL;
    if (met->hash && met->size <= UINT32_MAX / 4) {
        place = place_of(held, met->hash, met->head, met->run, met->size);
        if (!place || !place->hash) {
            Place wanted = {.hash = met->hash, .head = met->head, .size = (uint32_t)met->size};
            place = add_place(held, vocabulary, wanted, met->run, most);
        }
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

/* Runs: the codes of many texts at once, as `retrieval.numbering` gives them. */

#include "kernel.h"

#define RUNS "toolcrib.runs"
#define BORDER 0x1e
#define PROBES 32 /* places looked at for one run: whoever makes runs collide gains no more than a look-up in Python */

typedef struct {
    uint64_t hash; /* 0: free */
    uint32_t start, size;
    int32_t code;
} Place;

typedef struct {
    Place *places;
    size_t room, used; /* room is a power of two */
    char *letters;
    size_t letters_room, letters_used;
    uint64_t seed;
} Runs;

static void free_runs(PyObject *capsule)
{
    Runs *held = PyCapsule_GetPointer(capsule, RUNS);
    if (held) {
        PyMem_Free(held->places);
        PyMem_Free(held->letters);
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

/* At least eight bytes behind the run can be read. */
static uint64_t hash_of(const Runs *held, const char *run, size_t size)
{
    uint64_t hash = held->seed ^ (size * 0x9e3779b97f4a7c15u), word;
    for (size_t at = 0; at < size; at += sizeof word) {
        memcpy(&word, run + at, sizeof word);
        if (size - at < sizeof word) /* without what stands behind the run */
#if PY_BIG_ENDIAN
            word &= ~(uint64_t)0 << (64 - 8 * (size - at));
#else
            word &= ~(uint64_t)0 >> (64 - 8 * (size - at));
#endif
        hash = (hash ^ word) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
        hash *= held->seed | 1;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* The place of a run, or the free one where it belongs; NULL if neither is near. */
static Place *place_of(const Runs *held, uint64_t hash, const char *run, size_t size)
{
    for (size_t probe = 0; held->room && probe < PROBES; probe++) {
        Place *place = &held->places[((hash >> 1) + probe) & (held->room - 1)];
        if (!place->hash || (place->hash == hash && place->size == size && !memcmp(held->letters + place->start, run, size)))
            return place;
    }
    return NULL;
}

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
    larger.room = held->room ? held->room * 2 : 1024;
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

static int32_t as_code(PyObject *number)
{
    long code = number ? PyLong_AsLong(number) : -1;
    return (int32_t)code;
}

/* The code of a run: the number of its term, or what `several` says for the numbers of its terms. Sets an error. */
static int32_t find_code(PyObject *vocabulary, PyObject *several, const char *run, size_t size, size_t most)
{
    PyObject *found = PyList_New(0), *code = NULL;
    if (!found || add_run(found, run, (Py_ssize_t)(size < most ? size : most)) < 0)
        Py_CLEAR(found);
    for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(found); at++) {
        PyObject *number = PyLong_FromSsize_t(PyDict_GET_SIZE(vocabulary));
        PyObject *held = number ? PyDict_SetDefault(vocabulary, PyList_GET_ITEM(found, at), number) : NULL;
        Py_XINCREF(held);
        Py_XDECREF(number);
        if (!held || PyList_SetItem(found, at, held) < 0)
            Py_CLEAR(found);
    }
    if (found)
        code = PyList_GET_SIZE(found) == 1 ? Py_NewRef(PyList_GET_ITEM(found, 0)) : PyObject_CallOneArg(several, found);
    int32_t result = as_code(code);
    Py_XDECREF(code);
    Py_XDECREF(found);
    return result;
}

/* The code of a run by way of the memo. Sets an error. */
static int32_t code_of(Runs *held, PyObject *const *args, const char *run, size_t size, size_t most)
{
    char last[WORD_MAX + 8] = {0};
    uint64_t hash;
    if (run + size + 8 <= PyBytes_AS_STRING(args[4]) + PyBytes_GET_SIZE(args[4]))
        hash = hash_of(held, run, size);
    else if (size > WORD_MAX)
        hash = 0;
    else
        hash = hash_of(held, memcpy(last, run, size), size);
    Place *place = hash ? place_of(held, hash, run, size) : NULL;
    if (place && place->hash)
        return place->code;
    if (grow_runs(held, size) < 0)
        place = NULL;
    else
        place = hash ? place_of(held, hash, run, size) : NULL;
    if (!place) { /* the memo has no room for it: Python's has */
        PyObject *key = PyBytes_FromStringAndSize(run, (Py_ssize_t)size);
        PyObject *number = key ? PyObject_GetItem(args[2], key) : NULL;
        int32_t code = as_code(number);
        Py_XDECREF(key);
        Py_XDECREF(number);
        return code;
    }
    int32_t code = find_code(args[1], args[3], run, size, most);
    /* Python may have run, and other threads with it: the place may be another one, or taken. */
    if (!PyErr_Occurred() && grow_runs(held, size) == 0 && (place = place_of(held, hash, run, size)) && !place->hash) {
        *place = (Place){hash, (uint32_t)held->letters_used, (uint32_t)size, code};
        memcpy(held->letters + held->letters_used, run, size);
        held->letters_used += size;
        held->used++;
    }
    return code;
}

/* codes(runs, vocabulary, others, several, text, most, border) -> the codes of all runs of an ASCII text, as bytes of
   integers of 32 bits. `several` gives the code of several terms, `others` that of a run which the memo cannot hold. */
FAST(codes)
{
    if (count != 7 || !PyDict_CheckExact(args[1]) || !PyBytes_CheckExact(args[4]))
        return PyErr_Format(PyExc_TypeError, "codes takes runs, a vocabulary, others, several, a text, a bound, a code");
    Runs *held = PyCapsule_GetPointer(args[0], RUNS);
    size_t most = PyLong_AsSize_t(args[5]), size = (size_t)PyBytes_GET_SIZE(args[4]), used = 0;
    long border = PyLong_AsLong(args[6]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size + 1) * 4));
    const char *text = PyBytes_AS_STRING(args[4]);
    for (size_t at = 0, start; found && at < size;) {
        int32_t code = (int32_t)border;
        if (is_wordly(text[at])) {
            for (start = at++; is_wordly(text[at]);) /* a zero stands behind the text */
                at++;
            code = code_of(held, args, text + start, at - start, most);
            if (code == -1 && PyErr_Occurred()) {
                Py_CLEAR(found);
                break;
            }
        }
        else if (text[at++] != BORDER)
            continue;
        memcpy(PyBytes_AS_STRING(found) + 4 * used++, &code, 4);
    }
    if (found)
        _PyBytes_Resize(&found, (Py_ssize_t)(4 * used));
    return found;
}

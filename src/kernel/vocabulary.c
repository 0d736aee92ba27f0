/* The vocabulary: terms with their numbers, which count them in the order in which they came. Behaves like as much of a
   dictionary as `retrieval` uses of one, and holds no object per term. */

#include "kernel.h"

#define USUAL_TERMS 8192 /* more than some hundreds of tools have: moving them takes as long as finding many */

/* Room for one more term of this size. */
static int grow_vocabulary(Vocabulary *held, size_t size)
{
    if (grow_letters(&held->letters, &held->letters_room, held->letters_used + size) < 0)
        return -1;
    if (held->used == held->terms_room) {
        size_t room = held->used * 2 + USUAL_TERMS;
        Term *terms = room < INT32_MAX ? PyMem_Realloc(held->terms, room * sizeof(Term)) : NULL;
        if (!terms)
            return -1;
        held->terms = terms;
        held->terms_room = room;
    }
    if ((held->used + 1) * 2 <= held->room)
        return 0;
    size_t room = held->room ? held->room * 2 : 2 * USUAL_TERMS;
    uint32_t *places = PyMem_Calloc(room, sizeof *places);
    if (!places)
        return -1;
    for (size_t number = 0; number < held->used; number++) {
        uint64_t probe = held->terms[number].hash;
        while (places[probe & (room - 1)])
            probe++;
        places[probe & (room - 1)] = (uint32_t)number + 1;
    }
    PyMem_Free(held->places);
    held->places = places;
    held->room = room;
    return 0;
}

int32_t add_term(Vocabulary *held, uint64_t hash, const char *letters, size_t size)
{
    if (grow_vocabulary(held, size) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(held->letters + held->letters_used, letters, size);
    held->terms[held->used] = (Term){hash, (uint32_t)held->letters_used, (uint32_t)size};
    held->letters_used += size;
    *place_of_term(held, hash, letters, size) = (uint32_t)++held->used;
    return (int32_t)held->used - 1;
}

/* The hash of letters behind which nothing may be readable. */
static uint64_t hash_alone(const Vocabulary *held, const char *letters, size_t size)
{
    uint64_t hash = hash_start(held->seed, size);
    for (size_t at = 0; at < size || at < 16; at += 8) {
        char last[8] = {0};
        size_t left = at < size ? size - at : 0;
        if (left)
            memcpy(last, letters + at, left < 8 ? left : 8);
        hash = (at ? hash_on : hash_step)(held->seed, hash, letters_at(last, left));
    }
    return hash;
}

int32_t number_of(const Vocabulary *held, const char *letters, size_t size)
{
    return held->room ? (int32_t)*place_of_term(held, hash_alone(held, letters, size), letters, size) - 1 : -1;
}

int32_t number_term(Vocabulary *held, const char *letters, size_t size)
{
    return give_number(held, hash_alone(held, letters, size), letters, size);
}

/* What Python sees of it. */

static void drop(PyObject *self)
{
    Vocabulary *held = (Vocabulary *)self;
    PyMem_Free(held->terms);
    PyMem_Free(held->places);
    PyMem_Free(held->letters);
    PyObject_Free(self);
}

/* The number of a text: -1 if it is no term. Never fails: what is no text, or none that can be encoded, is no term. */
static int32_t look_up(PyObject *self, PyObject *term)
{
    Py_ssize_t size = 0;
    const char *letters = PyUnicode_Check(term) ? PyUnicode_AsUTF8AndSize(term, &size) : NULL;
    if (!letters) {
        PyErr_Clear();
        return -1;
    }
    return number_of((Vocabulary *)self, letters, (size_t)size);
}

static Py_ssize_t length(PyObject *self) { return (Py_ssize_t)((Vocabulary *)self)->used; }

static int contains(PyObject *self, PyObject *term) { return look_up(self, term) >= 0; }

/* The term of a number: what lets it be gone through, forwards and backwards. */
static PyObject *item(PyObject *self, Py_ssize_t number)
{
    const Vocabulary *held = (Vocabulary *)self;
    if (number < 0 || (size_t)number >= held->used)
        return PyErr_Format(PyExc_IndexError, "there is no term of this number");
    const Term *term = &held->terms[number];
    return PyUnicode_DecodeUTF8(held->letters + term->start, term->size, NULL);
}

static PyObject *get(PyObject *self, PyObject *term)
{
    int32_t number = look_up(self, term);
    return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(number);
}

static PyObject *subscript(PyObject *self, PyObject *term)
{
    int32_t number = look_up(self, term);
    if (number >= 0)
        return PyLong_FromLong(number);
    PyErr_SetObject(PyExc_KeyError, term);
    return NULL;
}

static PyObject *setdefault(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Vocabulary *held = (Vocabulary *)self;
    Py_ssize_t size, next = count == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    const char *letters = next >= 0 && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8AndSize(args[0], &size) : NULL;
    if (!letters)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "setdefault takes a term and the next number");
    int32_t number = number_of(held, letters, (size_t)size);
    if (number < 0 && (size_t)next != held->used)
        return PyErr_Format(PyExc_ValueError, "the next number is another one");
    if (number < 0 && (number = number_term(held, letters, (size_t)size)) < 0)
        return NULL;
    return PyLong_FromLong(number);
}

static PyMethodDef METHODS[] = {
    {"get", get, METH_O, NULL},
    {"setdefault", (PyCFunction)(void (*)(void))setdefault, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods SEQUENCE = {.sq_length = length, .sq_item = item, .sq_contains = contains};
static PyMappingMethods MAPPING = {.mp_length = length, .mp_subscript = subscript};

PyTypeObject VOCABULARY = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "toolcrib._kernel.Vocabulary",
    .tp_basicsize = sizeof(Vocabulary),
    .tp_dealloc = drop,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_as_sequence = &SEQUENCE,
    .tp_as_mapping = &MAPPING,
    .tp_methods = METHODS,
};

/* vocabulary(seed) -> an empty vocabulary; the seed keeps others from guessing where terms go. */
PyObject *vocabulary(PyObject *module, PyObject *seed)
{
    uint64_t number = PyLong_AsUnsignedLongLongMask(seed);
    Vocabulary *made = PyErr_Occurred() ? NULL : PyObject_New(Vocabulary, &VOCABULARY);
    if (made) {
        memset((char *)made + sizeof(PyObject), 0, sizeof(Vocabulary) - sizeof(PyObject));
        made->seed = number;
    }
    return (PyObject *)made;
}

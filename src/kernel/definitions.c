/* Definitions: what a list of plain JSON values looked like. */

#include "definitions.h"

#include <math.h>

#define KEPT "toolcrib.kept"
#define DEPTH_MAX 200
#define LINE 64  /* bytes that the processor fetches at once */
#define AHEAD 16 /* containers */

static char DICT[1], LIST[1]; /* marks whose addresses no value has */

Kept *new_kept(void) { return PyMem_Calloc(1, sizeof(Kept)); }

void drop_kept(Kept *kept)
{
    for (Py_ssize_t at = 0; at < kept->slots.used; at++) {
        if (kept->slots.at[at] == DICT || kept->slots.at[at] == LIST)
            at++; /* its length */
        else
            Py_DECREF((PyObject *)kept->slots.at[at]);
    }
    PyMem_Free(kept->slots.at);
    PyMem_Free(kept->places.at);
    PyMem_Free(kept);
}

static void free_kept(PyObject *capsule)
{
    Kept *kept = PyCapsule_GetPointer(capsule, KEPT);
    if (kept)
        drop_kept(kept);
}

static int is_leaf(PyObject *value)
{
    return PyUnicode_CheckExact(value) || value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value)
        || PyFloat_CheckExact(value);
}

static int is_finite(PyObject *leaf)
{
    return !PyFloat_CheckExact(leaf) || isfinite(PyFloat_AS_DOUBLE(leaf));
}

int widen(Row *row, Py_ssize_t room)
{
    void **at = PyMem_Realloc(row->at, (size_t)room * sizeof(void *));
    if (!at) {
        PyErr_NoMemory();
        return -1;
    }
    row->at = at;
    row->room = room;
    return 0;
}

static int keep_value(Kept *kept, PyObject *value, int depth, Py_ssize_t most);

static int keep_items(Kept *kept, PyObject *dict, int depth, Py_ssize_t most)
{
    PyObject *key, *item;
    Py_ssize_t place = 0;
    while (PyDict_Next(dict, &place, &key, &item)) {
        int done = PyUnicode_CheckExact(key) ? put_leaf(&kept->slots, key) : 0;
        if (done <= 0 || (done = keep_value(kept, item, depth, most)) <= 0)
            return done;
    }
    return 1;
}

int keep_head(Kept *kept, PyObject *value, int depth, Py_ssize_t most)
{
    if (kept->slots.used >= most)
        return 0;
    if (is_leaf(value)) {
        kept->odd |= !is_finite(value);
        return put_leaf(&kept->slots, value) < 0 ? -1 : LEAF;
    }
    int is_dict = PyDict_CheckExact(value);
    if (depth >= DEPTH_MAX || !(is_dict || PyList_CheckExact(value)))
        return 0;
    Py_ssize_t size = is_dict ? PyDict_GET_SIZE(value) : PyList_GET_SIZE(value);
    void *table = is_dict ? (void *)((PyDictObject *)value)->ma_keys : (void *)((PyListObject *)value)->ob_item;
    if (put(&kept->places, value) < 0 || put(&kept->places, table) < 0
        || put(&kept->slots, is_dict ? DICT : LIST) < 0)
        return -1;
    if (put(&kept->slots, (void *)size) < 0) {
        kept->slots.used--; /* a container without its length cannot be dropped */
        return -1;
    }
    return CONTAINER;
}

/* 1: kept; 0: not plain, too deep, or more than `most` slots; -1: an error is set. */
static int keep_value(Kept *kept, PyObject *value, int depth, Py_ssize_t most)
{
    int done = keep_head(kept, value, depth, most);
    if (done != CONTAINER)
        return done;
    if (PyDict_CheckExact(value))
        return keep_items(kept, value, depth + 1, most);
    for (Py_ssize_t at = 0; done > 0 && at < PyList_GET_SIZE(value); at++)
        done = keep_value(kept, PyList_GET_ITEM(value, at), depth + 1, most);
    return done > 0 ? 1 : done;
}

static int same_leaf(PyObject *one, PyObject *other)
{
    if (one == other)
        return 1;
    if (Py_TYPE(one) != Py_TYPE(other))
        return 0;
    if (PyUnicode_CheckExact(one)) {
#if PY_VERSION_HEX < 0x030C0000
        if (PyUnicode_READY(one) < 0 || PyUnicode_READY(other) < 0) {
            PyErr_Clear();
            return 0;
        }
#endif
        return PyUnicode_GET_LENGTH(one) == PyUnicode_GET_LENGTH(other) && PyUnicode_KIND(one) == PyUnicode_KIND(other)
            && !memcmp(PyUnicode_DATA(one), PyUnicode_DATA(other),
                       (size_t)PyUnicode_GET_LENGTH(one) * (size_t)PyUnicode_KIND(one));
    }
    if (PyLong_CheckExact(one))
        return PyObject_RichCompareBool(one, other, Py_EQ) == 1;
    if (PyFloat_CheckExact(one)) {
        double first = PyFloat_AS_DOUBLE(one), second = PyFloat_AS_DOUBLE(other);
        return !memcmp(&first, &second, sizeof first);
    }
    return 0;
}

typedef struct {
    void **slots, **places, **end;
} Walk;

/* Whether a value is the one that was kept; goes no deeper than that. */
static int same_value(Walk *walk, PyObject *value)
{
    void *first = *walk->slots;
    int is_dict = first == DICT;
    if (!is_dict && first != LIST)
        return same_leaf((PyObject *)*walk->slots++, value);
    Py_ssize_t size = (Py_ssize_t)walk->slots[1];
    void **ahead = walk->places += 2;
    if (walk->end - ahead > 2 * AHEAD) {
        ahead += 2 * AHEAD;
        FETCH(ahead[0]);
        FETCH(ahead[1]);
        FETCH((char *)ahead[1] + LINE);
        FETCH((char *)ahead[1] + 2 * LINE);
    }
    walk->slots += 2;
    if (is_dict) {
        PyObject *key, *item;
        Py_ssize_t place = 0;
        if (!PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != size)
            return 0;
        while (PyDict_Next(value, &place, &key, &item)) {
            PyObject *expected = (PyObject *)*walk->slots++;
            if (key != expected && !same_leaf(expected, key))
                return 0;
            if (item == (PyObject *)*walk->slots) /* a leaf */
                walk->slots++;
            else if (!same_value(walk, item))
                return 0;
        }
        return 1;
    }
    if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != size)
        return 0;
    for (Py_ssize_t at = 0; at < size; at++)
        if (!same_value(walk, PyList_GET_ITEM(value, at)))
            return 0;
    return 1;
}

static void fit(Row *row)
{
    void **at = row->used ? PyMem_Realloc(row->at, (size_t)row->used * sizeof(void *)) : NULL;
    if (at) {
        row->at = at;
        row->room = row->used;
    }
}

PyObject *close_kept(Kept *kept)
{
    fit(&kept->slots);
    fit(&kept->places);
    return PyCapsule_New(kept, KEPT, free_kept);
}

/* keep(value, encode, most) -> what was kept, encode(value), and whether all numbers are finite; None if the value is
   not plain. */
FAST(keep)
{
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "keep takes a value, an encoder and a bound");
    Py_ssize_t most = PyLong_AsSsize_t(args[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    Kept *kept = new_kept();
    if (!kept)
        return PyErr_NoMemory();
    int done = keep_value(kept, args[0], 0, most);
    if (done <= 0) {
        drop_kept(kept);
        if (done < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    /* At once, and of plain values only: no other thread gets a turn between the walk and the encoding. */
    PyObject *encoded = PyObject_CallOneArg(args[1], args[0]);
    if (!encoded) {
        drop_kept(kept);
        return NULL;
    }
    PyObject *capsule = close_kept(kept);
    if (!capsule) {
        drop_kept(kept);
        Py_DECREF(encoded);
        return NULL;
    }
    return Py_BuildValue("NNN", capsule, encoded, PyBool_FromLong(!kept->odd));
}

/* same(kept, value) -> whether the value is exactly what was kept: types, order, content. */
FAST(same)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "same takes what was kept and a value");
    Kept *kept = PyCapsule_GetPointer(args[0], KEPT);
    if (!kept)
        return NULL;
    Walk walk = {kept->slots.at, kept->places.at, kept->places.at + kept->places.used};
    return PyBool_FromLong(same_value(&walk, args[1]));
}

static int all_plain(PyObject *value, int depth)
{
    PyObject *key, *item;
    Py_ssize_t place = 0;
    if (is_leaf(value))
        return is_finite(value);
    if (depth >= DEPTH_MAX)
        return 0;
    if (PyDict_CheckExact(value)) {
        while (PyDict_Next(value, &place, &key, &item))
            if (!PyUnicode_CheckExact(key) || !all_plain(item, depth + 1))
                return 0;
        return 1;
    }
    for (; PyList_CheckExact(value) && place < PyList_GET_SIZE(value); place++)
        if (!all_plain(PyList_GET_ITEM(value, place), depth + 1))
            return 0;
    return PyList_CheckExact(value);
}

/* plain(value) -> whether all of it is of the built-in types of JSON themselves, and every number finite. */
PyObject *plain(PyObject *module, PyObject *value)
{
    return PyBool_FromLong(all_plain(value, 0));
}

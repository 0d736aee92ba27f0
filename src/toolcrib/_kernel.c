/* The inner loops of Toolcrib that Python cannot run fast enough: optional, and never another answer than Python's.

   `toolcrib.kernel` says what is here and who uses it; the Python beside each use is the reference. Rules of this file:
   - No function lets Python code run while it looks into somebody's containers: only exact built-in types are walked,
     leaves are compared by value in C. The interpreter's lock is held throughout, so no thread can change them either.
   - Depth and size of what is walked are bounded; whatever is not plain is handed back to the reference.
   - Numbers are added, multiplied and compared in the order and the width in which numpy does it (build with
     -ffp-contract=off): sums are the same bits. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define INTERFACE 1
#define DEPTH_MAX 200

/* ---- Definitions: what a list of plain JSON values looked like -------------------------------------------------- */

#define KEPT "toolcrib.kept"

/* All values in the order of a walk: a container as its type and its length, a leaf as a reference to itself. Keys and
   leaves are immutable, so one that is the same object is the same value; containers are never trusted. */
typedef struct {
    Py_ssize_t used, room;
    void **slots;
} Kept;

static void drop_kept(Kept *kept)
{
    for (Py_ssize_t at = 0; at < kept->used; at++) {
        if (kept->slots[at] == (void *)&PyDict_Type || kept->slots[at] == (void *)&PyList_Type)
            at++; /* its length */
        else
            Py_DECREF((PyObject *)kept->slots[at]);
    }
    PyMem_Free(kept->slots);
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

static int make_room(Kept *kept)
{
    Py_ssize_t room = kept->room ? kept->room * 2 : 1024;
    void **slots = PyMem_Realloc(kept->slots, (size_t)room * sizeof(void *));
    if (!slots) {
        PyErr_NoMemory();
        return -1;
    }
    kept->slots = slots;
    kept->room = room;
    return 0;
}

/* 1: kept; 0: not plain, or deeper or longer than `most` slots allow; -1: an error is set. */
static int keep_value(Kept *kept, PyObject *value, int depth, Py_ssize_t most)
{
    if (kept->used >= most)
        return 0;
    if (kept->used + 2 > kept->room && make_room(kept) < 0)
        return -1;
    if (is_leaf(value)) {
        kept->slots[kept->used++] = Py_NewRef(value);
        return 1;
    }
    int is_dict = PyDict_CheckExact(value);
    if (depth >= DEPTH_MAX || !(is_dict || PyList_CheckExact(value)))
        return 0;
    Py_ssize_t size = is_dict ? PyDict_GET_SIZE(value) : PyList_GET_SIZE(value);
    kept->slots[kept->used++] = is_dict ? (void *)&PyDict_Type : (void *)&PyList_Type;
    kept->slots[kept->used++] = (void *)size;
    if (!is_dict) {
        for (Py_ssize_t at = 0; at < size; at++) {
            int done = keep_value(kept, PyList_GET_ITEM(value, at), depth + 1, most);
            if (done <= 0)
                return done;
        }
        return 1;
    }
    PyObject *key, *item;
    Py_ssize_t place = 0;
    while (PyDict_Next(value, &place, &key, &item)) {
        if (!PyUnicode_CheckExact(key))
            return 0;
        if (kept->used + 1 > kept->room && make_room(kept) < 0)
            return -1;
        kept->slots[kept->used++] = Py_NewRef(key);
        int done = keep_value(kept, item, depth + 1, most);
        if (done <= 0)
            return done;
    }
    return 1;
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

/* Where the walk of an equal value ends; NULL for another value. Goes no deeper than what was kept. */
static void **same_value(void **slots, PyObject *value)
{
    if (*slots == (void *)&PyDict_Type) {
        PyObject *key, *item;
        Py_ssize_t place = 0;
        if (!PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != (Py_ssize_t)slots[1])
            return NULL;
        slots += 2;
        while (PyDict_Next(value, &place, &key, &item)) {
            if (key != (PyObject *)*slots && !same_leaf((PyObject *)*slots, key))
                return NULL;
            slots++;
            if (item == (PyObject *)*slots)
                slots++;
            else if (!(slots = same_value(slots, item)))
                return NULL;
        }
        return slots;
    }
    if (*slots == (void *)&PyList_Type) {
        Py_ssize_t size = (Py_ssize_t)slots[1];
        if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != size)
            return NULL;
        slots += 2;
        for (Py_ssize_t at = 0; at < size; at++)
            if (!(slots = same_value(slots, PyList_GET_ITEM(value, at))))
                return NULL;
        return slots;
    }
    return same_leaf((PyObject *)*slots, value) ? slots + 1 : NULL;
}

/* keep(value, encode, most) -> (kept, encode(value)), or None if the value is not plain. */
static PyObject *keep(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "keep takes a value, an encoder and a bound");
    Py_ssize_t most = PyLong_AsSsize_t(args[2]);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    Kept *kept = PyMem_Calloc(1, sizeof(Kept));
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
    void **fitted = PyMem_Realloc(kept->slots, (size_t)kept->used * sizeof(void *));
    if (fitted)
        kept->slots = fitted;
    PyObject *capsule = PyCapsule_New(kept, KEPT, free_kept);
    if (!capsule) {
        drop_kept(kept);
        Py_DECREF(encoded);
        return NULL;
    }
    return Py_BuildValue("NN", capsule, encoded);
}

/* same(kept, value) -> whether the value is exactly what was kept: types, order, content. */
static PyObject *same(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "same takes what was kept and a value");
    Kept *kept = PyCapsule_GetPointer(args[0], KEPT);
    if (!kept)
        return NULL;
    return PyBool_FromLong(same_value(kept->slots, args[1]) != NULL);
}

static PyMethodDef METHODS[] = {
    {"keep", (PyCFunction)(void (*)(void))keep, METH_FASTCALL, NULL},
    {"same", (PyCFunction)(void (*)(void))same, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)fill}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_size = 0, .m_methods = METHODS, .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&MODULE);
}

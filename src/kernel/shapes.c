/* The shape of a call's arguments, as `activity.shape_of` tells it: keys, types and lengths, and no value. */

#include "kernel.h"

/* A kind and how many it holds, such as `string(12)`. */
static PyObject *sized(const char *kind, Py_ssize_t size)
{
    char text[64], *at = text + sizeof text;
    size_t letters = strlen(kind);
    *--at = ')';
    do
        *--at = (char)('0' + size % 10);
    while (size /= 10);
    *--at = '(';
    at -= letters;
    memcpy(at, kind, letters);
    return PyUnicode_DecodeASCII(at, text + sizeof text - at, NULL);
}

/* The shape, or NULL: without an error for what only Python can tell. */
static PyObject *shape_of(PyObject *value, Py_ssize_t levels, Py_ssize_t keys, Py_ssize_t chars, Py_ssize_t narrows)
{
    if (PyUnicode_CheckExact(value))
        return sized("string", PyUnicode_GET_LENGTH(value));
    if (PyList_CheckExact(value))
        return sized("array", PyList_GET_SIZE(value));
    if (!PyDict_CheckExact(value)) {
        const char *kind = value == Py_None           ? "null"
                           : PyBool_Check(value)       ? "boolean"
                           : PyLong_CheckExact(value)  ? "integer"
                           : PyFloat_CheckExact(value) ? "number"
                                                       : NULL;
        return kind ? PyUnicode_DecodeASCII(kind, (Py_ssize_t)strlen(kind), NULL) : NULL;
    }
    if (!levels)
        return sized("object", PyDict_GET_SIZE(value));
    PyObject *shape = PyDict_New(), *key, *item;
    for (Py_ssize_t at = 0, left = keys; shape && left-- > 0 && PyDict_Next(value, &at, &key, &item);) {
        int plain = PyUnicode_CheckExact(key);
        Py_INCREF(item);
        key = !plain ? NULL : PyUnicode_GET_LENGTH(key) <= chars ? Py_NewRef(key) : PyUnicode_Substring(key, 0, chars);
        PyObject *inner = key ? shape_of(item, levels - 1, keys / narrows, chars, narrows) : NULL;
        if (!inner || PyDict_SetItem(shape, key, inner) < 0)
            Py_CLEAR(shape);
        Py_XDECREF(inner);
        Py_XDECREF(key);
        Py_DECREF(item);
    }
    return shape;
}

/* Keys, types and lengths of a value, so many levels, keys (so many times fewer each level down) and letters of a key; nothing
   if it is no plain JSON. */
FAST(shape)
{
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "shape(value, levels, keys, chars, narrows)");
        return NULL;
    }
    Py_ssize_t levels = PyLong_AsSsize_t(args[1]), keys = PyLong_AsSsize_t(args[2]), chars = PyLong_AsSsize_t(args[3]);
    Py_ssize_t narrows = PyLong_AsSsize_t(args[4]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *found = shape_of(args[0], levels, keys, chars, narrows > 0 ? narrows : 1);
    if (!found && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}

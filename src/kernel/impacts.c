/* Impacts: what the terms of documents are worth, as `retrieval.analysis` works it out. */

#include "kernel.h"

#include <math.h>

#define FIELD_BITS 3

typedef struct {
    double coverage, saturation, scale;
} Shape;

/* Sorts keys, byte by byte from the lowest; `spare` has room for as many. */
static uint32_t *sorted(uint32_t *keys, uint32_t *spare, size_t size)
{
    uint32_t all = 0;
    for (size_t at = 0; at < size; at++)
        all |= keys[at];
    for (int shift = 0; shift < 32 && all >> shift; shift += 8) {
        size_t starts[257] = {0};
        for (size_t at = 0; at < size; at++)
            starts[(keys[at] >> shift & 255) + 1]++;
        for (int byte = 1; byte < 257; byte++)
            starts[byte] += starts[byte - 1];
        for (size_t at = 0; at < size; at++)
            spare[starts[keys[at] >> shift & 255]++] = keys[at];
        uint32_t *done = keys;
        keys = spare;
        spare = done;
    }
    return keys;
}

/* The terms of one document with the codes of their impacts; how many there are. Keys are terms with fields, sorted. */
static size_t weigh(const uint32_t *keys, size_t size, const double *each, Shape shape, int32_t *terms, uint8_t *codes)
{
    size_t used = 0, named = 0;
    for (size_t at = 0; at < size; at++)
        named += !(keys[at] & ((1 << FIELD_BITS) - 1)) && (!at || keys[at - 1] != keys[at]);
    for (size_t at = 0; at < size;) {
        uint32_t term = keys[at] >> FIELD_BITS;
        /* The name is field 0, so a term of the name begins with it. */
        double head = 0.0, rest = 0.0, cover = keys[at] & ((1 << FIELD_BITS) - 1) ? 0.0 : shape.coverage / (double)(named ? named : 1);
        int field = 0;
        for (; at < size && keys[at] >> FIELD_BITS == term; field++) {
            uint32_t key = keys[at];
            double count = 0.0;
            for (; at < size && keys[at] == key; at++)
                count += 1.0;
            double share = count * each[key & ((1 << FIELD_BITS) - 1)];
            /* As numpy adds up: the first to the sum of the others. */
            if (!field)
                head = share;
            else
                rest = field > 1 ? rest + share : share;
        }
        double sum = field > 1 ? head + rest : head;
        terms[used] = (int32_t)term;
        codes[used++] = (uint8_t)(shape.scale * sqrt(sum / (shape.saturation + sum) + cover) + 0.5);
    }
    return used;
}

/* impacts(numbers, places, each, fields, coverage, saturation, scale) -> sizes, terms and codes of documents, packed.
   `each` has the worth of one occurrence in every field of every document; a place is a field of a document. */
FAST(impacts)
{
    Py_buffer views[3] = {{0}};
    static const Py_ssize_t WIDTHS[] = {4, 4, 8};
    if (count != 7)
        return PyErr_Format(PyExc_TypeError, "impacts takes three arrays, a number of fields and three numbers");
    size_t fields = PyLong_AsSize_t(args[3]);
    Shape shape = {PyFloat_AsDouble(args[4]), PyFloat_AsDouble(args[5]), PyFloat_AsDouble(args[6])};
    for (int which = 0; !PyErr_Occurred() && which < 3; which++)
        if (PyObject_GetBuffer(args[which], &views[which], PyBUF_CONTIG_RO) == 0 && !has_width(&views[which], WIDTHS[which]))
            PyErr_Format(PyExc_TypeError, "array %d has items of another size or place", which);
    const int32_t *numbers = views[0].buf, *places = views[1].buf;
    size_t size = (size_t)views[0].len / 4, slots = (size_t)views[2].len / 8, used = 0;
    if (!PyErr_Occurred() && (views[1].len != views[0].len || !fields || fields > 1 << FIELD_BITS || slots % fields))
        PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
    for (size_t at = 0; !PyErr_Occurred() && at < size; at++)
        if (numbers[at] < 0 || numbers[at] >= 1 << (31 - FIELD_BITS) || places[at] < 0 || (size_t)places[at] >= slots)
            PyErr_SetString(PyExc_ValueError, "a number or a place is out of bounds");
    size_t documents = PyErr_Occurred() ? 0 : slots / fields;
    size_t *ends = PyMem_Calloc(documents + 2, sizeof(size_t));
    uint32_t *keys = PyMem_Malloc((size + 1) * 4), *spare = PyMem_Malloc((size + 1) * 4);
    PyObject *sizes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(documents * 8)), *result = NULL;
    PyObject *terms = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * 4));
    PyObject *codes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!PyErr_Occurred() && !(ends && keys && spare && sizes && terms && codes))
        PyErr_NoMemory();
    if (!PyErr_Occurred()) {
        for (size_t at = 0; at < size; at++)
            ends[(size_t)places[at] / fields + 2]++;
        for (size_t row = 2; row < documents + 2; row++)
            ends[row] += ends[row - 1];
        for (size_t at = 0; at < size; at++)
            keys[ends[(size_t)places[at] / fields + 1]++] = (uint32_t)numbers[at] << FIELD_BITS
                                                            | (uint32_t)((size_t)places[at] % fields);
        for (size_t row = 0; row < documents; row++) {
            size_t start = ends[row], length = ends[row + 1] - start;
            const uint32_t *own = sorted(keys + start, spare, length);
            int64_t held = (int64_t)weigh(own, length, (const double *)views[2].buf + row * fields, shape,
                                          (int32_t *)PyBytes_AS_STRING(terms) + used,
                                          (uint8_t *)PyBytes_AS_STRING(codes) + used);
            memcpy(PyBytes_AS_STRING(sizes) + row * 8, &held, 8);
            used += (size_t)held;
        }
        if (_PyBytes_Resize(&terms, (Py_ssize_t)(used * 4)) == 0 && _PyBytes_Resize(&codes, (Py_ssize_t)used) == 0)
            result = PyTuple_Pack(3, sizes, terms, codes);
    }
    for (int which = 0; which < 3; which++)
        if (views[which].obj)
            PyBuffer_Release(&views[which]);
    PyMem_Free(ends);
    PyMem_Free(keys);
    PyMem_Free(spare);
    Py_XDECREF(sizes);
    Py_XDECREF(terms);
    Py_XDECREF(codes);
    return result;
}

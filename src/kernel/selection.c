/* The best of many scores, as `retrieval.selection` looks for them. */

#include "kernel.h"

#include <math.h>

#define BLOCK 64   /* scores looked at together */
#define FEW 32     /* rows wanted at most without memory of their own */
#define LIKELY 512 /* rows remembered, so that scores are passed through once */

/* Whether some of the scores are not below the edge: compared many at a time, and none is told which. */
static int any_from(const float *scores, Py_ssize_t size, float edge)
{
    int any = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        any |= scores[at] >= edge;
    return any;
}

static void sift(float *heap, Py_ssize_t size, Py_ssize_t at)
{
    float value = heap[at];
    for (Py_ssize_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

/* The least positive number is an edge that is zero itself where the processor was told to take tiny numbers for it. */
static int is_best(float score, float edge) { return score >= edge && score > 0.0f; }

/* Appends a row and its negative score: 0, or -1 with an error set. */
static int put_row(PyObject *rows, PyObject *values, Py_ssize_t row, float score)
{
    return append(rows, PyLong_FromSsize_t(row)) < 0 || append(values, PyFloat_FromDouble(-score)) < 0 ? -1 : 0;
}

PyObject *best_rows(const float *scores, Py_ssize_t size, Py_ssize_t limit)
{
    float few[FEW] = {0}, *heap = few; /* the least on top; of zeros at first: the least is always the one to go */
    int32_t likely[LIKELY];            /* rows that were among the best when they were seen */
    Py_ssize_t seen = 0;
    limit = limit < size ? limit : size;
    if (limit > FEW && !(heap = PyMem_Calloc((size_t)limit, sizeof(float))))
        return PyErr_NoMemory();
    const float least = nextafterf(0.0f, INFINITY);
    float edge = least;
    for (Py_ssize_t start = 0; start < size; start += BLOCK) {
        Py_ssize_t end = start + BLOCK < size ? start + BLOCK : size;
        if (!any_from(scores + start, end - start, edge))
            continue;
        for (Py_ssize_t at = start; at < end; at++)
            if (scores[at] >= edge) {
                if (seen < LIKELY)
                    likely[seen] = (int32_t)at;
                seen++;
                if (scores[at] > heap[0]) {
                    heap[0] = scores[at];
                    sift(heap, limit, 0);
                    edge = heap[0] > 0.0f ? heap[0] : least;
                }
            }
    }
    if (heap != few)
        PyMem_Free(heap);
    PyObject *rows = PyList_New(0), *values = PyList_New(0), *found = NULL;
    int failed = !rows || !values;
    if (seen <= LIKELY)
        for (Py_ssize_t which = 0; !failed && which < seen; which++)
            failed = is_best(scores[likely[which]], edge) && put_row(rows, values, likely[which], scores[likely[which]]) < 0;
    else
        for (Py_ssize_t at = 0; !failed && at < size; at++)
            failed = is_best(scores[at], edge) && put_row(rows, values, at, scores[at]) < 0;
    if (!failed)
        found = PyTuple_Pack(2, rows, values);
    Py_XDECREF(rows);
    Py_XDECREF(values);
    return found;
}

/* best(scores, limit) -> `best_rows` of an array. */
FAST(best)
{
    Py_buffer view;
    Py_ssize_t limit = count == 2 ? PyLong_AsSsize_t(args[1]) : 0;
    if (limit < 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "best takes scores and a positive limit");
    if (PyObject_GetBuffer(args[0], &view, PyBUF_CONTIG_RO) < 0)
        return NULL;
    PyObject *found = NULL;
    if (has_width(&view, 4))
        found = best_rows(view.buf, view.len / 4, limit);
    else
        PyErr_SetString(PyExc_ValueError, "the scores have another size or place");
    PyBuffer_Release(&view);
    return found;
}

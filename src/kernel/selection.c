/* The best of many scores, as `retrieval.selection` looks for them. */

#include "kernel.h"

#include <math.h>
#include <stdlib.h>

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

typedef struct {
    float score;
    int32_t row;
} Scored;

/* The better one first; of equal ones the row that comes first. */
static int compare(const void *one, const void *other)
{
    const Scored *first = one, *second = other;
    int better = (first->score < second->score) - (first->score > second->score);
    return better ? better : (first->row > second->row) - (first->row < second->row);
}

/* The rows and the scores in their order: two lists in a tuple. */
static PyObject *in_order(Scored *found, size_t many)
{
    qsort(found, many, sizeof *found, compare);
    PyObject *rows = PyList_New((Py_ssize_t)many), *scores = PyList_New((Py_ssize_t)many), *both = NULL;
    for (size_t at = 0; rows && scores && at < many; at++) {
        PyObject *row = PyLong_FromLong(found[at].row), *score = PyFloat_FromDouble(found[at].score);
        if (!row || !score) {
            Py_XDECREF(row);
            Py_XDECREF(score);
            Py_CLEAR(rows);
            break;
        }
        PyList_SET_ITEM(rows, (Py_ssize_t)at, row);
        PyList_SET_ITEM(scores, (Py_ssize_t)at, score);
    }
    if (rows && scores)
        both = PyTuple_Pack(2, rows, scores);
    Py_XDECREF(rows);
    Py_XDECREF(scores);
    return both;
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
    Scored some[LIKELY], *found = some;
    size_t many = 0;
    if (seen <= LIKELY)
        for (Py_ssize_t which = 0; which < seen; which++) {
            found[many] = (Scored){scores[likely[which]], likely[which]};
            many += is_best(found[many].score, edge);
        }
    else {
        for (Py_ssize_t at = 0; at < size; at++)
            many += is_best(scores[at], edge);
        if (many > LIKELY && !(found = PyMem_Malloc(many * sizeof *found)))
            return PyErr_NoMemory();
        many = 0;
        for (Py_ssize_t at = 0; at < size; at++)
            if (is_best(scores[at], edge))
                found[many++] = (Scored){scores[at], (int32_t)at};
    }
    PyObject *both = in_order(found, many);
    if (found != some)
        PyMem_Free(found);
    return both;
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

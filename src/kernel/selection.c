/* The best of many scores, as `retrieval.selection` looks for them. */

#include "kernel.h"

#define BLOCK 64 /* scores looked at together */

static int32_t most_of(const int32_t *scores, Py_ssize_t size)
{
    int32_t most = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        most = scores[at] > most ? scores[at] : most;
    return most;
}

void sift(int32_t *heap, Py_ssize_t size, Py_ssize_t at)
{
    int32_t value = heap[at];
    for (Py_ssize_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

/* best(scores, limit) -> rows of the `limit` best positive scores, ties at the edge included, and the negative scores. */
FAST(best)
{
    Py_buffer view;
    Py_ssize_t limit = count == 2 ? PyLong_AsSsize_t(args[1]) : 0;
    if (limit < 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "best takes scores and a positive limit");
    if (PyObject_GetBuffer(args[0], &view, PyBUF_CONTIG_RO) < 0)
        return NULL;
    Py_ssize_t size = view.len / 4, held = 0;
    limit = limit < size ? limit : size;
    const int32_t *scores = view.buf;
    int32_t *heap = has_width(&view, 4) ? PyMem_Calloc((size_t)limit + 1, sizeof(int32_t)) : NULL; /* the least on top */
    PyObject *rows = PyList_New(0), *values = PyList_New(0);
    if (!heap || !rows || !values) {
        if (!has_width(&view, 4))
            PyErr_SetString(PyExc_ValueError, "the scores have another size or place");
        else
            PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t start = 0; start < size; start += BLOCK) {
        Py_ssize_t end = start + BLOCK < size ? start + BLOCK : size;
        if (most_of(scores + start, end - start) <= heap[0])
            continue;
        for (Py_ssize_t at = start; at < end; at++)
            if (scores[at] > heap[0]) {
                heap[0] = scores[at]; /* a heap of zeros at first: the least is always the one to go */
                sift(heap, limit, 0);
                held++;
            }
    }
    int32_t edge = heap[0] > 0 ? heap[0] : 1;
    for (Py_ssize_t start = 0; held && start < size; start += BLOCK) {
        Py_ssize_t end = start + BLOCK < size ? start + BLOCK : size;
        if (most_of(scores + start, end - start) < edge)
            continue;
        for (Py_ssize_t at = start; at < end; at++)
            if (scores[at] >= edge) {
                float value;
                memcpy(&value, &scores[at], 4);
                if (append(rows, PyLong_FromSsize_t(at)) < 0 || append(values, PyFloat_FromDouble(-value)) < 0)
                    goto failed;
            }
    }
    PyMem_Free(heap);
    PyBuffer_Release(&view);
    return Py_BuildValue("NN", rows, values);
failed:
    PyMem_Free(heap);
    PyBuffer_Release(&view);
    Py_XDECREF(rows);
    Py_XDECREF(values);
    return NULL;
}

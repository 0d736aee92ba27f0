/* Postings: sums over the rows of a segment, as `retrieval.reading` makes them. */

#include "kernel.h"

#define POSTINGS "toolcrib.postings"

enum { STARTS, DOCUMENTS, CODES, IMPACTS, ARRAYS };

typedef struct {
    Py_buffer arrays[ARRAYS];
    Py_ssize_t terms, rows;
    float *best; /* zero between two uses */
    float *sums; /* of the last question, for the next; none while one is being answered */
} Postings;

static void drop_postings(Postings *held)
{
    for (int which = 0; which < ARRAYS; which++)
        if (held->arrays[which].obj)
            PyBuffer_Release(&held->arrays[which]);
    PyMem_Free(held->best);
    PyMem_Free(held->sums);
    PyMem_Free(held);
}

static void free_postings(PyObject *capsule)
{
    Postings *held = PyCapsule_GetPointer(capsule, POSTINGS);
    if (held)
        drop_postings(held);
}

/* postings(rows, starts, documents, codes, impacts) -> the postings of a segment. What the first two arrays hold is
   checked here once and trusted after that, so nobody may be able to write to them. */
FAST(postings)
{
    static const Py_ssize_t WIDTHS[] = {4, 4, 1, 4};
    if (count != 1 + ARRAYS)
        return PyErr_Format(PyExc_TypeError, "postings takes a number of rows and four arrays");
    Postings *held = PyMem_Calloc(1, sizeof(Postings));
    if (!held)
        return PyErr_NoMemory();
    held->rows = PyLong_AsSsize_t(args[0]);
    for (int which = 0; !PyErr_Occurred() && which < ARRAYS; which++) {
        if (PyObject_GetBuffer(args[1 + which], &held->arrays[which], PyBUF_CONTIG_RO) < 0)
            break;
        if (!has_width(&held->arrays[which], WIDTHS[which]))
            PyErr_Format(PyExc_TypeError, "array %d has items of another size or place", which);
        else if (which <= DOCUMENTS && !held->arrays[which].readonly)
            PyErr_Format(PyExc_ValueError, "array %d can be written to", which);
    }
    if (!PyErr_Occurred()) {
        const int32_t *starts = held->arrays[STARTS].buf, *rows = held->arrays[DOCUMENTS].buf;
        Py_ssize_t size = held->arrays[CODES].len;
        int fit = held->arrays[DOCUMENTS].len == 4 * size && held->arrays[IMPACTS].len == 4 * 256 && held->rows >= 0
               && held->rows <= INT32_MAX;
        held->terms = held->arrays[STARTS].len / 4 - 1;
        for (Py_ssize_t at = 0; fit && at <= held->terms; at++)
            fit = starts[at] >= (at ? starts[at - 1] : 0) && starts[at] <= size;
        for (Py_ssize_t at = 0; fit && at < size; at++)
            fit = rows[at] >= 0 && rows[at] < held->rows;
        if (!fit)
            PyErr_Format(PyExc_ValueError, "the arrays do not belong together");
    }
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(held, POSTINGS, free_postings);
    if (!capsule)
        drop_postings(held);
    return capsule;
}

typedef struct {
    const int32_t *rows;
    const uint8_t *codes;
    Py_ssize_t size;
    float weight;
} Span;

/* The postings of a weighted term: a tuple of its number and its weight. */
static int read_span(const Postings *held, PyObject *pair, Span *span)
{
    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "a weighted term is a number and a weight");
        return -1;
    }
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0));
    double weight = PyFloat_AsDouble(PyTuple_GET_ITEM(pair, 1));
    if (PyErr_Occurred())
        return -1;
    Py_ssize_t start = 0, end = 0;
    if (number >= 0 && number < held->terms) {
        const int32_t *starts = held->arrays[STARTS].buf;
        start = starts[number];
        end = starts[number + 1];
    }
    span->rows = (const int32_t *)held->arrays[DOCUMENTS].buf + start;
    span->codes = (const uint8_t *)held->arrays[CODES].buf + start;
    span->size = end - start;
    span->weight = (float)weight;
    return 0;
}

/* The sums of all rows, writable. */
static float *read_total(PyObject *array, Py_buffer *view, Py_ssize_t rows)
{
    if (PyObject_GetBuffer(array, view, PyBUF_CONTIG) < 0)
        return NULL;
    if (has_width(view, 4) && view->len == 4 * rows)
        return view->buf;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "the sums are not those of these rows");
    return NULL;
}

/* Adds the weighted impacts of terms, one after the other: 0, or -1 with an error set. */
static int add_terms(const Postings *held, float *total, PyObject *weighted)
{
    const float *impacts = held->arrays[IMPACTS].buf;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(weighted); at++) {
        Span span;
        if (read_span(held, PyList_GET_ITEM(weighted, at), &span) < 0)
            return -1;
        /* In places of their own: what is written to the sums could be the span for all that a compiler knows. */
        const int32_t *rows = span.rows;
        const uint8_t *codes = span.codes;
        const float weight = span.weight;
        for (const int32_t *end = rows + span.size; rows < end; rows++, codes++)
            total[*rows] += impacts[*codes] * weight;
    }
    return 0;
}

/* add(postings, total, weighted): adds the weighted impacts of terms, one after the other. */
FAST(add)
{
    if (count != 3 || !PyList_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "add takes postings, sums and a list of weighted terms");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Py_buffer view;
    float *total = held ? read_total(args[1], &view, held->rows) : NULL;
    if (!total)
        return NULL;
    int done = add_terms(held, total, args[2]);
    PyBuffer_Release(&view);
    if (done < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* merge(postings, weighted, counted) -> rows and what is added to each: what the best of some weighted impacts has more
   than those that were counted together, where that is more than nothing. Packed: all rows, then all numbers. */
FAST(merge)
{
    if (count != 3 || !PyTuple_CheckExact(args[1]) || !PyTuple_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "merge takes postings and two tuples of weighted terms");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    if (!held)
        return NULL;
    Py_ssize_t near = PyTuple_GET_SIZE(args[1]), all = near + PyTuple_GET_SIZE(args[2]), most = 0, used = 0;
    Span *spans = PyMem_Calloc((size_t)all + 1, sizeof(Span));
    if (!held->best)
        held->best = PyMem_Calloc((size_t)held->rows + 1, sizeof(float));
    if (!spans || !held->best) {
        PyMem_Free(spans);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < all; at++) {
        PyObject *pair = at < near ? PyTuple_GET_ITEM(args[1], at) : PyTuple_GET_ITEM(args[2], at - near);
        if (read_span(held, pair, &spans[at]) < 0) {
            PyMem_Free(spans);
            return NULL;
        }
        most += at < near ? spans[at].size : 0;
    }
    most = most < held->rows ? most : held->rows;
    int32_t *rows = PyMem_Malloc((size_t)most * 4 + 4);
    float *worth = PyMem_Malloc((size_t)most * 4 + 4), *best = held->best;
    const float *impacts = held->arrays[IMPACTS].buf;
    PyObject *packed = NULL;
    if (!rows || !worth) {
        PyErr_NoMemory();
        goto done;
    }
    for (Span *span = spans; span < spans + near; span++)
        for (Py_ssize_t at = 0; at < span->size; at++) {
            float impact = impacts[span->codes[at]] * span->weight;
            if (impact > best[span->rows[at]])
                best[span->rows[at]] = impact;
        }
    for (Span *span = spans + near; span < spans + all; span++)
        for (Py_ssize_t at = 0; at < span->size; at++)
            best[span->rows[at]] -= impacts[span->codes[at]] * span->weight;
    for (Span *span = spans; span < spans + all; span++)
        for (Py_ssize_t at = 0; at < span->size; at++) {
            int32_t row = span->rows[at];
            if (span < spans + near && best[row] > 0.0f) {
                rows[used] = row;
                worth[used++] = best[row];
            }
            best[row] = 0.0f;
        }
    packed = PyBytes_FromStringAndSize(NULL, used * 8);
    if (packed) {
        memcpy(PyBytes_AS_STRING(packed), rows, (size_t)used * 4);
        memcpy(PyBytes_AS_STRING(packed) + used * 4, worth, (size_t)used * 4);
    }
done:
    PyMem_Free(spans);
    PyMem_Free(rows);
    PyMem_Free(worth);
    return packed;
}

/* Adds what `merge` found for these postings. */
static void add_packed(const Postings *held, float *total, PyObject *packed)
{
    Py_ssize_t size = PyBytes_GET_SIZE(packed) / 8;
    const char *bytes = PyBytes_AS_STRING(packed);
    for (Py_ssize_t at = 0; at < size; at++) {
        int32_t row;
        float worth;
        memcpy(&row, bytes + 4 * at, 4);
        memcpy(&worth, bytes + 4 * (size + at), 4);
        if (row >= 0 && row < held->rows)
            total[row] += worth;
    }
}

/* add_merged(postings, total, packed): adds what `merge` found for these postings. */
FAST(add_merged)
{
    if (count != 3 || !PyBytes_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "add_merged takes postings, sums and what was merged");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Py_buffer view;
    float *total = held ? read_total(args[1], &view, held->rows) : NULL;
    if (!total)
        return NULL;
    add_packed(held, total, args[2]);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* leading(postings, weighted, merged, limit) -> the best rows of all that was added up, terms first: `add`, `add_merged` and
   `best` in one, without an array that leaves the kernel. */
FAST(leading)
{
    if (count != 4 || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "leading takes postings, two lists and a limit");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Py_ssize_t limit = held ? PyLong_AsSsize_t(args[3]) : 0;
    if (limit < 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the limit must be positive");
    /* Taken, not borrowed: lists are made below, the collector may run then, and somebody else may ask. */
    float *sums = held->sums ? held->sums : PyMem_Malloc((size_t)(held->rows + 1) * sizeof(float));
    if (!sums)
        return PyErr_NoMemory();
    held->sums = NULL;
    memset(sums, 0, (size_t)held->rows * sizeof(float));
    int failed = add_terms(held, sums, args[1]) < 0;
    for (Py_ssize_t at = 0; !failed && at < PyList_GET_SIZE(args[2]); at++) {
        if ((failed = !PyBytes_CheckExact(PyList_GET_ITEM(args[2], at))))
            PyErr_SetString(PyExc_TypeError, "what was merged is bytes");
        else
            add_packed(held, sums, PyList_GET_ITEM(args[2], at));
    }
    PyObject *found = failed ? NULL : best_rows(sums, held->rows, limit);
    PyMem_Free(held->sums);
    held->sums = sums;
    return found;
}

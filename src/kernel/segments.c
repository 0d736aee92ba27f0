/* Segments: the postings of documents in the order of their terms, as `retrieval.postings` sorts them. */

#include "kernel.h"

/* Which document each row is; -1 with an error set if the rows are not all different and within bounds. */
static int turn_rows(const int64_t *rows, int64_t *document, size_t count)
{
    for (size_t at = 0; at < count; at++)
        document[at] = -1;
    for (size_t at = 0; at < count; at++) {
        int64_t row = rows ? rows[at] : (int64_t)at;
        if (row < 0 || (size_t)row >= count || document[row] >= 0) {
            PyErr_SetString(PyExc_ValueError, "every document has a row of its own");
            return -1;
        }
        document[row] = (int64_t)at;
    }
    return 0;
}

/* Where the postings of each document start; how many there are in all, or -1 with an error set. */
static int64_t add_sizes(const int64_t *sizes, int64_t *starts, size_t count, size_t most)
{
    int64_t all = 0;
    for (size_t at = 0; at < count; at++) {
        starts[at] = all;
        if (sizes[at] < 0 || (size_t)sizes[at] > most - (size_t)all) {
            PyErr_SetString(PyExc_ValueError, "the sizes and the terms do not belong together");
            return -1;
        }
        all += sizes[at];
    }
    return all;
}

/* segment(sizes, terms, codes, rows) -> starts, documents and codes of postings by term, those of a term by row, packed.
   Without `rows` each document is the row of its place. */
FAST(segment)
{
    static const Py_ssize_t WIDTHS[] = {8, 4, 1, 8};
    Py_buffer views[4] = {{0}};
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "segment takes sizes, terms, codes and rows");
    for (int which = 0; !PyErr_Occurred() && which < 4; which++)
        if (!(which == 3 && args[which] == Py_None)
            && PyObject_GetBuffer(args[which], &views[which], PyBUF_CONTIG_RO) == 0 && !has_width(&views[which], WIDTHS[which]))
            PyErr_Format(PyExc_TypeError, "array %d has items of another size or place", which);
    const int64_t *sizes = views[0].buf, *rows = views[3].obj ? views[3].buf : NULL;
    const int32_t *terms = views[1].buf;
    size_t documents = (size_t)views[0].len / 8, size = (size_t)views[1].len / 4, widest = 0;
    if (!PyErr_Occurred() && ((size_t)views[2].len != size || (rows && views[3].len != views[0].len) || size > INT32_MAX
                              || documents > INT32_MAX))
        PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
    for (size_t at = 0; !PyErr_Occurred() && at < size; at++) {
        if (terms[at] < 0)
            PyErr_SetString(PyExc_ValueError, "a term is out of bounds");
        else if ((size_t)terms[at] >= widest)
            widest = (size_t)terms[at] + 1;
    }
    int64_t *turned = NULL, *begins = NULL;
    PyObject *starts = NULL, *held = NULL, *codes = NULL, *result = NULL;
    if (!PyErr_Occurred()) {
        turned = PyMem_Malloc((documents + 1) * 8);
        begins = PyMem_Malloc((documents + 1) * 8);
        starts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(widest + 1) * 4);
        held = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size * 4);
        codes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
        if (!(turned && begins && starts && held && codes) && !PyErr_Occurred())
            PyErr_NoMemory();
    }
    if (!PyErr_Occurred() && turn_rows(rows, turned, documents) == 0) {
        int64_t all = add_sizes(sizes, begins, documents, size);
        if (all >= 0 && (size_t)all != size)
            PyErr_SetString(PyExc_ValueError, "the sizes and the terms do not belong together");
        else if (all >= 0) {
            int32_t *at = (int32_t *)PyBytes_AS_STRING(starts), *row_at = (int32_t *)PyBytes_AS_STRING(held);
            char *code_at = PyBytes_AS_STRING(codes);
            memset(at, 0, (widest + 1) * 4);
            for (size_t which = 0; which < size; which++)
                at[terms[which]]++;
            int32_t before = 0;
            for (size_t term = 0; term <= widest; term++) {
                int32_t own = at[term];
                at[term] = before;
                before += own;
            }
            for (size_t row = 0; row < documents; row++) {
                size_t first = (size_t)begins[turned[row]], last = first + (size_t)sizes[turned[row]];
                for (size_t which = first; which < last; which++) {
                    int32_t place = at[terms[which]]++;
                    row_at[place] = (int32_t)row;
                    code_at[place] = ((const char *)views[2].buf)[which];
                }
            }
            /* Each start has moved to the next one's place. */
            memmove(at + 1, at, widest * 4);
            at[0] = 0;
            result = PyTuple_Pack(3, starts, held, codes);
        }
    }
    for (int which = 0; which < 4; which++)
        if (views[which].obj)
            PyBuffer_Release(&views[which]);
    PyMem_Free(turned);
    PyMem_Free(begins);
    Py_XDECREF(starts);
    Py_XDECREF(held);
    Py_XDECREF(codes);
    return result;
}

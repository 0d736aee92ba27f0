/* The best rows of a query without the sums of all: as `retrieval.reading` adds them up and `selection` picks them.

   Rows of the lists that can give most are put together first, in the order of their rows. As soon as what is left to be
   given is less than what the last of the best has already, no further row can be among them: the other lists are only
   asked about rows that still can be. Those that are left at the end are added up anew, in the order and the width in
   which all sums are made; before that, sums only have to be right to within `SLACK`. */

#include "postings.h"

#include <math.h>

#define SLACK 2e-4f  /* more than a sum of so many numbers can be wrong by */
#define MOST_LISTS 64

typedef struct {
    Span span;          /* codes of impacts, */
    const float *worth; /* or numbers as they are */
    float most;         /* the greatest number of the list */
} List;

/* Rows that may be among the best, in order, and what they have so far; gone ones have less than nothing. */
typedef struct {
    int32_t *rows;
    float *sums;
    Py_ssize_t used;
} Likely;

typedef struct {
    const float *impacts;
    List lists[MOST_LISTS];
    int order[MOST_LISTS]; /* the list that can give most first */
    int used;
    int32_t *heap; /* of the best sums, the least on top */
    Py_ssize_t limit;
} Question;

static inline float worth_of(const Question *all, const List *list, Py_ssize_t at)
{
    return list->worth ? list->worth[at] : all->impacts[list->span.codes[at]] * list->span.weight;
}

/* The greatest impact of a term: found out once. */
static float most_of_term(Postings *held, Py_ssize_t number, const Span *span)
{
    if (!held->most[number]) {
        const float *impacts = held->arrays[IMPACTS].buf;
        for (Py_ssize_t at = 0; at < span->size; at++)
            if (impacts[span->codes[at]] > held->most[number])
                held->most[number] = impacts[span->codes[at]];
    }
    return held->most[number];
}

/* Puts a list among the others by what it can give: 1, or 0 if it is one that cannot be told before. */
static int put_list(Question *all, List list)
{
    if (!list.span.size)
        return 1;
    if (all->used == MOST_LISTS || !(list.most >= 0.0f && list.most < 1e30f))
        return 0;
    int at = all->used;
    for (; at && all->lists[all->order[at - 1]].most < list.most; at--)
        all->order[at] = all->order[at - 1];
    all->order[at] = all->used;
    all->lists[all->used++] = list;
    return 1;
}

/* All lists of the question: 1; 0 if they are none that can be told before, -1 with an error set. */
static int read_lists(Question *all, Postings *held, PyObject *weighted, PyObject *merged)
{
    if (!held->most && !(held->most = PyMem_Calloc((size_t)held->terms + 1, sizeof(float)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(weighted); at++) {
        List list = {0};
        PyObject *pair = PyList_GET_ITEM(weighted, at);
        if (read_span(held, pair, &list.span) < 0)
            return -1;
        if (list.span.size)
            list.most = most_of_term(held, PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0)), &list.span) * list.span.weight;
        if (!(list.span.weight >= 0.0f) || !put_list(all, list))
            return 0;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(merged); at++) {
        PyObject *packed = PyList_GET_ITEM(merged, at);
        if (!PyBytes_CheckExact(packed)) {
            PyErr_SetString(PyExc_TypeError, "what was merged is bytes");
            return -1;
        }
        Py_ssize_t size = PyBytes_GET_SIZE(packed) / 8;
        List list = {.span = {.rows = (const int32_t *)PyBytes_AS_STRING(packed), .size = size}};
        list.worth = (const float *)(list.span.rows + size);
        for (Py_ssize_t place = 0; place < size; place++) {
            if (!(list.worth[place] >= 0.0f) || list.span.rows[place] < 0 || list.span.rows[place] >= held->rows)
                return 0;
            list.most = list.worth[place] > list.most ? list.worth[place] : list.most;
        }
        if (!put_list(all, list))
            return 0;
    }
    return 1;
}

/* What the last of the best has, of some numbers; nothing if there are not as many. */
static float edge_of(const Question *all, const float *sums, Py_ssize_t size, const float *more, Py_ssize_t others)
{
    int32_t *heap = all->heap;
    memset(heap, 0, (size_t)all->limit * sizeof *heap);
    for (Py_ssize_t at = 0; at < size + others; at++) {
        int32_t bits = rank_bits(at < size ? sums[at] : more[at - size]);
        if (bits > heap[0]) {
            heap[0] = bits;
            sift(heap, all->limit, 0);
        }
    }
    float edge;
    memcpy(&edge, &heap[0], 4);
    return edge;
}

/* The rows of a list and those that are likely already. */
static void join(const Question *all, const List *list, const Likely *from, Likely *to)
{
    const Span *span = &list->span;
    Py_ssize_t one = 0, other = 0, used = 0;
    while (one < from->used && other < span->size) {
        int32_t first = from->rows[one], second = span->rows[other];
        float sum = first <= second ? from->sums[one] : 0.0f;
        to->rows[used] = first <= second ? first : second;
        to->sums[used++] = second <= first ? sum + worth_of(all, list, other) : sum;
        one += first <= second;
        other += second <= first;
    }
    for (; one < from->used; one++, used++) {
        to->rows[used] = from->rows[one];
        to->sums[used] = from->sums[one];
    }
    for (; other < span->size; other++, used++) {
        to->rows[used] = span->rows[other];
        to->sums[used] = worth_of(all, list, other);
    }
    to->used = used;
}

/* The first place from `at` on whose row is not before this one. */
static Py_ssize_t seek(const Span *span, Py_ssize_t at, int32_t row)
{
    Py_ssize_t step = 1, end = span->size;
    if (at == end || span->rows[at] >= row)
        return at;
    for (; step < end - at && span->rows[at + step] < row; step *= 2)
        at += step;
    end = step < end - at ? at + step : end;
    while (end - at > 1) { /* the row at `at` is before, the one at `end` is not */
        Py_ssize_t middle = at + (end - at) / 2;
        if (span->rows[middle] < row)
            at = middle;
        else
            end = middle;
    }
    return end;
}

/* Leaves those that can still reach the edge with what is to come. */
static void drop(Likely *likely, float edge, float rest)
{
    Py_ssize_t used = 0;
    float least = edge * (1.0f - SLACK) - rest * (1.0f + SLACK);
    for (Py_ssize_t at = 0; at < likely->used; at++) {
        likely->rows[used] = likely->rows[at];
        likely->sums[used] = likely->sums[at];
        used += likely->sums[at] * (1.0f + SLACK) >= least && likely->sums[at] > 0.0f;
    }
    likely->used = used;
}

/* Adds what a list gives to rows that are likely already. */
static void meet(const Question *all, const List *list, Likely *likely)
{
    Py_ssize_t place = 0;
    for (Py_ssize_t at = 0; at < likely->used; at++) {
        place = seek(&list->span, place, likely->rows[at]);
        if (place == list->span.size)
            return;
        if (list->span.rows[place] == likely->rows[at])
            likely->sums[at] += worth_of(all, list, place);
    }
}

/* The rows that may be among the best, with their true sums: which of both; NULL if they are too many to be worth it. */
static Likely *find(const Question *all, Likely *likely, Likely *other, Py_ssize_t room)
{
    float rest = 0.0f, edge = 0.0f;
    for (int which = 0; which < all->used; which++)
        rest += all->lists[which].most;
    int open = 1;
    Py_ssize_t work = 0;
    for (int which = 0; which < all->used; which++) {
        const List *list = &all->lists[all->order[which]];
        open = open && rest * (1.0f + SLACK) >= edge * (1.0f - SLACK);
        if (open) {
            work += likely->used + list->span.size;
            if (work > room)
                return NULL;
            join(all, list, likely, other);
            Likely *joined = other;
            other = likely;
            likely = joined;
        }
        else {
            drop(likely, edge, rest);
            meet(all, list, likely);
        }
        rest = fmaxf(rest - list->most, 0.0f) + rest * SLACK;
        edge = edge_of(all, likely->sums, likely->used, NULL, 0);
    }
    drop(likely, edge, 0.0f);
    memset(likely->sums, 0, (size_t)likely->used * sizeof(float));
    for (int which = 0; which < all->used; which++)
        meet(all, &all->lists[which], likely);
    return likely;
}

/* Rows from the edge on, and their negative sums. */
static PyObject *write_rows(const Likely *likely, const float *added, Py_ssize_t size, Py_ssize_t before, float edge)
{
    PyObject *rows = PyList_New(0), *values = PyList_New(0);
    for (Py_ssize_t at = 0; rows && values && at < likely->used + size; at++) {
        float sum = at < likely->used ? likely->sums[at] : added[at - likely->used];
        Py_ssize_t row = at < likely->used ? likely->rows[at] : before + at - likely->used;
        if (sum > 0.0f && sum >= edge
            && (append(rows, PyLong_FromSsize_t(row)) < 0 || append(values, PyFloat_FromDouble(-sum)) < 0))
            break;
    }
    if (!PyErr_Occurred())
        return Py_BuildValue("NN", rows, values);
    Py_XDECREF(rows);
    Py_XDECREF(values);
    return NULL;
}

/* Room for so many numbers, kept for the next question; NULL with an error set. */
static int32_t *room_for(Postings *held, size_t numbers)
{
    if (held->room_size < numbers) {
        void *larger = PyMem_Realloc(held->room, numbers * sizeof(int32_t));
        if (!larger)
            return PyErr_NoMemory(), NULL;
        held->room = larger;
        held->room_size = numbers;
    }
    return held->room;
}

/* leading(postings, weighted, merged, gone, added, limit) -> rows of the `limit` best sums of weighted terms and of what
   was merged, ties at the edge included, and the negative sums; None if adding up all rows takes no longer. Rows that
   are `gone`, in order, do not count; `added` are the sums of rows behind the last one. */
FAST(leading)
{
    if (count != 6 || !PyList_CheckExact(args[1]) || !PyList_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "leading takes postings, two lists, two arrays and a limit");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Question all; /* not cleared: only lists that are put in are looked at */
    all.limit = PyLong_AsSsize_t(args[5]);
    all.used = 0;
    Py_buffer gone = {0}, added = {0};
    if (PyErr_Occurred() || PyObject_GetBuffer(args[3], &gone, PyBUF_CONTIG_RO) < 0)
        return NULL;
    PyObject *found = NULL;
    if (PyObject_GetBuffer(args[4], &added, PyBUF_CONTIG_RO) < 0)
        goto done;
    if (!has_width(&gone, 4) || !has_width(&added, 4) || all.limit < 1 || all.limit > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the limit is not positive, or an array has items of another size or place");
        goto done;
    }
    all.impacts = held->arrays[IMPACTS].buf;
    int can = read_lists(&all, held, args[1], args[2]);
    if (can < 0)
        goto done;
    Py_ssize_t before = gone.len / 4, others = added.len / 4, most = 1024 + held->rows / 2 + before;
    Likely *likely = NULL;
    if (can) {
        int32_t *room = room_for(held, (size_t)(4 * most + all.limit));
        if (!room)
            goto done;
        Likely halves[2];
        for (int half = 0; half < 2; half++, room += 2 * most)
            halves[half] = (Likely){.rows = room, .sums = (float *)(room + most)};
        all.heap = room;
        memcpy(halves[0].rows, gone.buf, (size_t)gone.len);
        for (Py_ssize_t at = 0; at < before; at++)
            halves[0].sums[at] = -INFINITY;
        halves[0].used = before;
        likely = find(&all, &halves[0], &halves[1], most);
        if (likely) {
            float edge = edge_of(&all, likely->sums, likely->used, added.buf, others);
            found = write_rows(likely, added.buf, others, held->rows, edge);
        }
    }
    if (!likely)
        found = Py_NewRef(Py_None);
done:
    PyBuffer_Release(&gone);
    PyBuffer_Release(&added);
    return found;
}

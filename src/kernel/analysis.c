/* Analysis: documents as weighted terms, as `retrieval.analysis` works them out. */

#include "stretches.h"

#include <math.h>

enum { FIELDS = 6, DESCRIPTION = 2, PARAMETERS, NESTED, ALIASES };

/* The fields of a document as `analyse` gets them; the name of a tool comes before them. */
enum { KEY, LEAF, TOOLSET, SAID, INSIDE, ALSO, PARTS };

/* What is found of one term of a document while it is read. */
typedef struct {
    double head, rest; /* what the first field is worth, and what the others are together */
    int32_t term;
    uint32_t count; /* in the field that is being read */
    uint8_t fields, named;
} Found;

#define NUMBERS 512 /* terms that are counted at once, more than a run can have */
#define NEAR (1 << 15) /* places of a vocabulary that the processor has at hand anyway */
#define MET 64 /* runs that are met before their terms are looked at: meanwhile the memory comes */

typedef struct {
    Runs *held;
    Vocabulary *vocabulary;
    PyObject *odd;
    Met met[MET];
    size_t met_used;
    int32_t numbers[NUMBERS + MET]; /* of the terms that are to be counted */
    size_t numbers_used;
    size_t longest, runs, nested, levels, enumerated; /* bounds */
    const double *weights;                            /* of each field: weight, pivot, share of the length */
    double coverage, saturation, scale;
    Inside inside;
    char *text; /* of the field: its parts with a blank behind each, and for each character that is not ASCII */
    size_t text_used, text_room;
    uint32_t *seen; /* by term: which one of the found it is, counted from 1 */
    size_t seen_room;
    Found *found;
    uint32_t *touched; /* by the field that is being read */
    size_t found_used, found_room, touched_used;
    size_t read, length; /* runs and terms of the field */
    int32_t *terms;
    uint8_t *codes;
    size_t used, room;
} Analysis;

static int grow(void **at, size_t *room, size_t least, size_t width)
{
    if (least <= *room)
        return 0;
    size_t wanted = least * 2 + 256;
    void *larger = wanted < PY_SSIZE_T_MAX / width ? PyMem_Realloc(*at, wanted * width) : NULL;
    if (!larger) {
        PyErr_NoMemory();
        return -1;
    }
    *at = larger;
    *room = wanted;
    return 0;
}

/* Counts the terms whose numbers stand there, once more each in this field. Without a branch that nobody can foresee:
   whether a document had a term before is as good as chance. */
static int count_numbers(Analysis *all)
{
    size_t many = all->numbers_used, known = all->vocabulary->used, before = all->seen_room, room = all->found_room;
    if (known > before) {
        if (grow((void **)&all->seen, &all->seen_room, known, sizeof *all->seen) < 0)
            return -1;
        memset(all->seen + before, 0, (all->seen_room - before) * sizeof *all->seen);
    }
    if (grow((void **)&all->found, &room, all->found_used + many + 1, sizeof *all->found) < 0
        || grow((void **)&all->touched, &all->found_room, all->found_used + many + 1, sizeof *all->touched) < 0)
        return -1;
    uint32_t *seen = all->seen, *touched = all->touched + all->touched_used, used = (uint32_t)all->found_used;
    Found *found = all->found;
    for (const int32_t *number = all->numbers, *last = number + many; number < last; number++) {
        uint32_t place = seen[*number];
        found[used] = (Found){.term = *number};
        place = place ? place : used + 1;
        used += place > used;
        seen[*number] = place;
        *touched = place - 1;
        touched += !found[place - 1].count++;
    }
    all->touched_used = (size_t)(touched - all->touched);
    all->found_used = used;
    all->length += many;
    all->numbers_used = 0;
    return 0;
}

/* One more occurrence of each of these terms in this field. */
static inline int count_terms(Analysis *all, const int32_t *numbers, size_t many)
{
    if (all->numbers_used + many > NUMBERS && count_numbers(all) < 0)
        return -1;
    memcpy(all->numbers + all->numbers_used, numbers, many * sizeof *numbers);
    all->numbers_used += many;
    return 0;
}

/* The runs of a text that Python takes apart: a list with the numbers of each one's terms. */
static int add_odd(Analysis *all, PyObject *text)
{
    PyObject *runs = text ? PyObject_CallOneArg(all->odd, text) : NULL;
    int failed = !runs || !PyList_CheckExact(runs);
    if (runs && failed)
        PyErr_SetString(PyExc_TypeError, "the runs of a text are a list");
    for (Py_ssize_t which = 0; !failed && which < PyList_GET_SIZE(runs); which++) {
        PyObject *numbers = PyList_GET_ITEM(runs, which);
        if ((failed = !PyTuple_CheckExact(numbers)))
            PyErr_SetString(PyExc_TypeError, "the terms of a run are a tuple");
        for (Py_ssize_t at = 0; !failed && all->read < all->runs && at < PyTuple_GET_SIZE(numbers); at++) {
            long number = PyLong_AsLong(PyTuple_GET_ITEM(numbers, at));
            if (number < 0 || (size_t)number >= all->vocabulary->used) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_ValueError, "a term has no number");
                failed = 1;
            }
            else
                failed = count_terms(all, &(int32_t){(int32_t)number}, 1) < 0;
        }
        all->read++;
    }
    Py_XDECREF(runs);
    return failed ? -1 : 0;
}

static int add_run_alone(Analysis *all, const char *run, size_t size)
{
    PyObject *text = PyUnicode_DecodeASCII(run, (Py_ssize_t)size, NULL);
    int done = add_odd(all, text);
    Py_XDECREF(text);
    return done;
}

/* The terms of the runs that were met. */
static int add_met(Analysis *all)
{
    const Met *last = all->met + all->met_used;
    const Vocabulary *known = all->vocabulary;
    if (all->numbers_used + MET > NUMBERS && count_numbers(all) < 0)
        return -1;
    if (known->room > NEAR)
        for (const Met *met = all->met; met < last; met++)
            if (met->plain)
                FETCH(&known->terms[known->places[met->hash & (known->room - 1)]] - 1);
    for (const Met *met = all->met; met < last; met++) {
        /* Runs beyond the bound get their numbers, and count for nothing. */
        int counts = all->read < all->runs;
        if (met->plain) {
            int32_t own = give_number(all->vocabulary, met->hash, met->run, met->size);
            if (own < 0)
                return -1;
            all->numbers[all->numbers_used] = own; /* there is room for one of each that was met */
            all->numbers_used += (size_t)counts;
            all->read++;
            continue;
        }
        const int32_t *numbers;
        int count = terms_of_run(all->held, met, all->longest, &numbers);
        if (count == -1 || (count == -2 && add_run_alone(all, met->run, met->size) < 0))
            return -1;
        if (count < 0)
            continue;
        if (count > NUMBERS) {
            PyErr_SetString(PyExc_ValueError, "a run has too many terms");
            return -1;
        }
        if (counts && count_terms(all, numbers, (size_t)count) < 0)
            return -1;
        all->read++;
    }
    all->met_used = 0;
    return 0;
}

/* The runs of the text that was put together. */
static int add_runs(Analysis *all)
{
    const char *at = all->text, *stop = at + all->text_used;
    while (at < stop) {
        at = meet_runs(all->held, at, stop, all->longest, all->met, &all->met_used, MET);
        if (add_met(all) < 0)
            return -1;
    }
    all->text_used = 0;
    return 0;
}

/* Room for so many characters more; where they go, with a blank behind them. */
static inline char *extend(Analysis *all, size_t size)
{
    if (grow((void **)&all->text, &all->text_room, all->text_used + size + 1 + STRETCH, 1) < 0)
        return NULL;
    char *to = all->text + all->text_used;
    all->text_used += size + 1;
    to[size] = ' ';
    return to;
}

static inline int add_ascii(Analysis *all, const char *text, size_t size)
{
    char *to = extend(all, size);
    if (to)
        memcpy(to, text, size);
    return to ? 0 : -1;
}

/* One text. Characters that are neither ASCII nor of a word are blanks; with letters of other kinds it is Python's. */
static int add_text(Analysis *all, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return -1;
    }
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text) < 0)
        return -1;
#endif
    size_t size = (size_t)PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_ASCII(text))
        return add_ascii(all, PyUnicode_DATA(text), size);
    char *to = extend(all, size);
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (size_t at = 0; to && at < size; at++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, (Py_ssize_t)at);
        if (c >= 0x80 && Py_UNICODE_ISALNUM(c)) {
            all->text_used -= size + 1;
            return add_runs(all) < 0 ? -1 : add_odd(all, text);
        }
        to[at] = c < 0x80 ? (char)c : ' ';
    }
    return to ? 0 : -1;
}

static int add_piece(Analysis *all, Piece piece, size_t length)
{
    if (length == (size_t)piece.size)
        return add_ascii(all, piece.start, length);
    PyObject *text = PyUnicode_DecodeUTF8(piece.start, piece.size, NULL);
    int done = text ? add_text(all, text) : -1;
    Py_XDECREF(text);
    return done;
}

/* The end of a field: what its terms are worth. */
static int end_field(Analysis *all, int field)
{
    if (add_runs(all) < 0 || count_numbers(all) < 0)
        return -1;
    const double *weights = all->weights + 3 * field;
    double each = weights[0] / (1.0 - weights[2] + weights[2] * (double)all->length / weights[1]);
    for (size_t at = 0; at < all->touched_used; at++) {
        Found *found = &all->found[all->touched[at]];
        double share = (double)found->count * each;
        /* As numpy adds up: the first to the sum of the others. */
        if (!found->fields)
            found->head = share;
        else
            found->rest = found->fields > 1 ? found->rest + share : share;
        found->named |= !field;
        found->fields++;
        found->count = 0;
    }
    all->touched_used = all->read = all->length = 0;
    return 0;
}

static int add_texts(Analysis *all, PyObject *texts)
{
    if (!PyTuple_Check(texts)) {
        PyErr_SetString(PyExc_TypeError, "several texts are a tuple");
        return -1;
    }
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(texts); at++)
        if (add_text(all, PyTuple_GET_ITEM(texts, at)) < 0)
            return -1;
    return 0;
}

/* The words of a schema: read here, or by Python. */
static int add_inside(Analysis *all, PyObject *given, PyObject *read)
{
    if (!PyBytes_CheckExact(given)) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 2) {
            PyErr_SetString(PyExc_TypeError, "the words of a schema are its bytes, or names and a text");
            return -1;
        }
        if (add_texts(all, PyTuple_GET_ITEM(given, 0)) < 0 || end_field(all, PARAMETERS) < 0
            || add_text(all, PyTuple_GET_ITEM(given, 1)) < 0)
            return -1;
        return end_field(all, NESTED);
    }
    Inside *inside = &all->inside;
    int done = read_inside(inside, given, (Py_ssize_t)all->levels, (Py_ssize_t)all->enumerated);
    if (done < 0)
        return -1;
    if (!done) {
        PyObject *found = PyObject_CallOneArg(read, given);
        if (found && PyTuple_Check(found))
            done = add_inside(all, found, read);
        else if (found)
            PyErr_SetString(PyExc_TypeError, "the words of a schema are names and a text");
        Py_XDECREF(found);
        return found && done == 0 && !PyErr_Occurred() ? 0 : -1;
    }
    for (Py_ssize_t at = 0; at < inside->names.used; at++)
        if (add_piece(all, inside->names.at[at], (size_t)count_chars(inside->names.at[at])) < 0)
            return -1;
    if (end_field(all, PARAMETERS) < 0)
        return -1;
    size_t room = all->nested;
    for (Py_ssize_t at = 0; at < inside->words.used; at++) {
        Piece piece = inside->words.at[at];
        size_t length = (size_t)count_chars(piece);
        if (length >= room)
            break;
        room -= length + 1;
        if (add_piece(all, piece, length) < 0)
            return -1;
    }
    return end_field(all, NESTED);
}

/* The end of a document: its terms with the codes of their impacts; how many there are, or -1 with an error set. */
static int64_t end_document(Analysis *all)
{
    size_t count = all->found_used, named = 0, room = all->room;
    if (all->used + count > all->room
        && (grow((void **)&all->terms, &room, all->used + count, sizeof *all->terms) < 0
            || grow((void **)&all->codes, &all->room, all->used + count, 1) < 0))
        return -1;
    for (size_t at = 0; at < count; at++)
        named += all->found[at].named;
    double covered = all->coverage / (double)(named ? named : 1), last = -1.0;
    int as_last = 0;
    uint8_t code = 0;
    for (size_t at = 0; at < count; at++) {
        const Found *found = &all->found[at];
        double sum = found->fields > 1 ? found->head + found->rest : found->head;
        if (sum != last || found->named != as_last) { /* most terms are worth what the one before is */
            double exact = all->scale * sqrt(sum / (all->saturation + sum) + (found->named ? covered : 0.0)) + 0.5;
            code = exact >= 0.0 && exact < 256.0 ? (uint8_t)exact : 0;
            last = sum;
            as_last = found->named;
        }
        all->terms[all->used] = found->term;
        all->codes[all->used++] = code;
        all->seen[found->term] = 0;
    }
    all->found_used = 0;
    return (int64_t)count;
}

static int64_t add_document(Analysis *all, PyObject *document, PyObject *read)
{
    if (!PyTuple_CheckExact(document) || PyTuple_GET_SIZE(document) != PARTS) {
        PyErr_SetString(PyExc_TypeError, "a document is a tuple of its parts");
        return -1;
    }
    for (int part = LEAF; part <= SAID; part++)
        if (add_text(all, PyTuple_GET_ITEM(document, part)) < 0 || end_field(all, part - LEAF) < 0)
            return -1;
    if (add_inside(all, PyTuple_GET_ITEM(document, INSIDE), read) < 0
        || add_texts(all, PyTuple_GET_ITEM(document, ALSO)) < 0 || end_field(all, ALIASES) < 0)
        return -1;
    return end_document(all);
}

/* analyse(runs, odd, read, documents, weights, bounds) -> sizes, terms and codes of documents, packed; the
   terms of a document are in no order. `odd` gives the terms of every run of a text, `read` the words of a schema that
   is not read here. Weights are three numbers a field, coverage, saturation and scale; bounds are characters of a run,
   runs of a field, characters inside a schema, its levels, and values of an enumeration. */
FAST(analyse)
{
    Runs *held = count == 6 ? PyCapsule_GetPointer(args[0], RUNS) : NULL;
    if (PyErr_Occurred())
        return NULL;
    if (!held || !PyList_CheckExact(args[3]) || !PyTuple_CheckExact(args[5]) || PyTuple_GET_SIZE(args[5]) != 5)
        return PyErr_Format(PyExc_TypeError, "analyse takes runs, two functions, documents, weights and five bounds");
    Analysis all = {.held = held, .vocabulary = vocabulary_of(held), .odd = args[1]};
    size_t *bounds[] = {&all.longest, &all.runs, &all.nested, &all.levels, &all.enumerated};
    for (int which = 0; !PyErr_Occurred() && which < 5; which++)
        *bounds[which] = PyLong_AsSize_t(PyTuple_GET_ITEM(args[5], which));
    Py_buffer view = {0};
    if (PyErr_Occurred() || PyObject_GetBuffer(args[4], &view, PyBUF_CONTIG_RO) < 0)
        return NULL;
    PyObject *sizes = NULL, *result = NULL;
    if (!has_width(&view, 8) || view.len != (3 * FIELDS + 3) * 8 || !all.longest || all.longest > WORD_MAX
        || all.levels > 64 || all.enumerated > PY_SSIZE_T_MAX)
        PyErr_SetString(PyExc_ValueError, "the weights or the bounds are of another size or place");
    else {
        all.weights = view.buf;
        all.coverage = all.weights[3 * FIELDS];
        all.saturation = all.weights[3 * FIELDS + 1];
        all.scale = all.weights[3 * FIELDS + 2];
        sizes = PyBytes_FromStringAndSize(NULL, PyList_GET_SIZE(args[3]) * 8);
    }
    int64_t found = sizes ? 0 : -1;
    Py_ssize_t documents = sizes ? PyBytes_GET_SIZE(sizes) / 8 : 0;
    for (Py_ssize_t at = 0; found >= 0 && at < documents && at < PyList_GET_SIZE(args[3]); at++) {
        PyObject *document = Py_NewRef(PyList_GET_ITEM(args[3], at));
        found = add_document(&all, document, args[2]);
        memcpy(PyBytes_AS_STRING(sizes) + at * 8, &found, 8);
        Py_DECREF(document);
    }
    if (found >= 0 && PyList_GET_SIZE(args[3]) != documents)
        PyErr_SetString(PyExc_ValueError, "the documents changed");
    else if (found >= 0)
        result = Py_BuildValue("Oy#y#", sizes, all.terms ? (char *)all.terms : "", (Py_ssize_t)(4 * all.used),
                               all.codes ? (char *)all.codes : "", (Py_ssize_t)all.used);
    PyBuffer_Release(&view);
    Py_XDECREF(sizes);
    drop_inside(&all.inside);
    PyMem_Free(all.text);
    PyMem_Free(all.seen);
    PyMem_Free(all.found);
    PyMem_Free(all.touched);
    PyMem_Free(all.terms);
    PyMem_Free(all.codes);
    return result;
}

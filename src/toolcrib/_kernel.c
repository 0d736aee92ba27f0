/* The inner loops of Toolcrib that Python cannot run fast enough: optional, and never another answer than Python's.

   `toolcrib.kernel` says what is here and who uses it; the Python beside each use is the reference. Rules of this file:
   - No function lets Python code run while it looks into somebody's containers: only exact built-in types are walked,
     leaves are compared by value in C. The interpreter's lock is held throughout, so no thread can change them either.
   - Depth and size of what is walked are bounded; whatever is not plain is handed back to the reference.
   - Numbers are added, multiplied and compared in the order and the width in which numpy does it (build with
     -ffp-contract=off): sums are the same bits. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "floats are not computed in their own width here: sums would be other bits"
#endif

#define INTERFACE 6
#define DEPTH_MAX 200
#define LINE 64  /* bytes that the processor fetches at once */
#define AHEAD 16 /* containers */

#if defined(__GNUC__) || defined(__clang__)
#define FETCH(address) __builtin_prefetch(address)
#else
#define FETCH(address) ((void)(address))
#endif

/* ---- Definitions: what a list of plain JSON values looked like -------------------------------------------------- */

#define KEPT "toolcrib.kept"

/* All values in the order of a walk: a container as a mark and its length, a leaf as a reference to itself. Keys and
   leaves are immutable, so one that is the same object is the same value; containers are never trusted. Where they and
   their tables were is noted as a guess of what to fetch, and never looked into: a walk mostly waits for memory. */
static char DICT[1], LIST[1]; /* marks whose addresses no value has */

typedef struct {
    void **at;
    Py_ssize_t used, room;
} Row;

typedef struct {
    Row slots, places;
} Kept;

static void drop_kept(Kept *kept)
{
    for (Py_ssize_t at = 0; at < kept->slots.used; at++) {
        if (kept->slots.at[at] == DICT || kept->slots.at[at] == LIST)
            at++; /* its length */
        else
            Py_DECREF((PyObject *)kept->slots.at[at]);
    }
    PyMem_Free(kept->slots.at);
    PyMem_Free(kept->places.at);
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

static int put(Row *row, void *value)
{
    if (row->used == row->room) {
        Py_ssize_t room = row->room ? row->room * 2 : 512;
        void **at = PyMem_Realloc(row->at, (size_t)room * sizeof(void *));
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        row->at = at;
        row->room = room;
    }
    row->at[row->used++] = value;
    return 1;
}

static int put_leaf(Row *row, PyObject *leaf)
{
    return put(row, leaf) < 0 ? -1 : (Py_INCREF(leaf), 1);
}

static int keep_value(Kept *kept, PyObject *value, int depth, Py_ssize_t most);

static int keep_items(Kept *kept, PyObject *dict, int depth, Py_ssize_t most)
{
    PyObject *key, *item;
    Py_ssize_t place = 0;
    while (PyDict_Next(dict, &place, &key, &item)) {
        int done = PyUnicode_CheckExact(key) ? put_leaf(&kept->slots, key) : 0;
        if (done <= 0 || (done = keep_value(kept, item, depth, most)) <= 0)
            return done;
    }
    return 1;
}

/* 1: kept; 0: not plain, too deep, or more than `most` slots; -1: an error is set. */
static int keep_value(Kept *kept, PyObject *value, int depth, Py_ssize_t most)
{
    int is_dict = PyDict_CheckExact(value), done = 1;
    if (kept->slots.used >= most)
        return 0;
    if (is_leaf(value))
        return put_leaf(&kept->slots, value);
    if (depth >= DEPTH_MAX || !(is_dict || PyList_CheckExact(value)))
        return 0;
    Py_ssize_t size = is_dict ? PyDict_GET_SIZE(value) : PyList_GET_SIZE(value);
    void *table = is_dict ? (void *)((PyDictObject *)value)->ma_keys : (void *)((PyListObject *)value)->ob_item;
    if (put(&kept->places, value) < 0 || put(&kept->places, table) < 0
        || put(&kept->slots, is_dict ? DICT : LIST) < 0)
        return -1;
    if (put(&kept->slots, (void *)size) < 0) {
        kept->slots.used--; /* a container without its length cannot be dropped */
        return -1;
    }
    if (is_dict)
        return keep_items(kept, value, depth + 1, most);
    for (Py_ssize_t at = 0; done > 0 && at < size; at++)
        done = keep_value(kept, PyList_GET_ITEM(value, at), depth + 1, most);
    return done;
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

typedef struct {
    void **slots, **places, **end;
} Walk;

/* Whether a value is the one that was kept; goes no deeper than that. */
static int same_value(Walk *walk, PyObject *value)
{
    void *first = *walk->slots;
    int is_dict = first == DICT;
    if (!is_dict && first != LIST)
        return same_leaf((PyObject *)*walk->slots++, value);
    Py_ssize_t size = (Py_ssize_t)walk->slots[1];
    void **ahead = walk->places += 2;
    if (walk->end - ahead > 2 * AHEAD) {
        ahead += 2 * AHEAD;
        FETCH(ahead[0]);
        FETCH(ahead[1]);
        FETCH((char *)ahead[1] + LINE);
        FETCH((char *)ahead[1] + 2 * LINE);
    }
    walk->slots += 2;
    if (is_dict) {
        PyObject *key, *item;
        Py_ssize_t place = 0;
        if (!PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != size)
            return 0;
        while (PyDict_Next(value, &place, &key, &item)) {
            PyObject *expected = (PyObject *)*walk->slots++;
            if (key != expected && !same_leaf(expected, key))
                return 0;
            if (item == (PyObject *)*walk->slots) /* a leaf */
                walk->slots++;
            else if (!same_value(walk, item))
                return 0;
        }
        return 1;
    }
    if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != size)
        return 0;
    for (Py_ssize_t at = 0; at < size; at++)
        if (!same_value(walk, PyList_GET_ITEM(value, at)))
            return 0;
    return 1;
}

static void fit(Row *row)
{
    void **at = row->used ? PyMem_Realloc(row->at, (size_t)row->used * sizeof(void *)) : NULL;
    if (at) {
        row->at = at;
        row->room = row->used;
    }
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
    fit(&kept->slots);
    fit(&kept->places);
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
    Walk walk = {kept->slots.at, kept->places.at, kept->places.at + kept->places.used};
    return PyBool_FromLong(same_value(&walk, args[1]));
}

/* ---- Words: ASCII texts as `retrieval.text` takes them apart ---------------------------------------------------- */

#define WORD_MAX 256 /* characters, more than a term may have */

enum { LOWER = 1, UPPER = 2, DIGIT = 4, UNDERSCORE = 8, IN_RUN = 16, STOP = 32, HEX = 64 };

static unsigned char KINDS[256]; /* what each byte is; filled when the module is */
static uint32_t CRC[256];

static void fill_tables(void)
{
    for (int code = 0; code < 256; code++) {
        int kind = code >= 'a' && code <= 'z' ? LOWER : code >= 'A' && code <= 'Z' ? UPPER
                 : code >= '0' && code <= '9' ? DIGIT : code == '_' ? UNDERSCORE : 0;
        kind |= kind || code == '+' || code == '/' || code == '-' ? IN_RUN : 0;
        kind |= code < 0x20 || code >= 0x7f || code == '%' || code == '&' ? STOP : 0;
        kind |= (kind & DIGIT) || (code >= 'a' && code <= 'f') || (code >= 'A' && code <= 'F') || code == 'x' ? HEX : 0;
        KINDS[code] = (unsigned char)kind;
        uint32_t value = (uint32_t)code;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        CRC[code] = value;
    }
}

static int is_a(int kinds, char c) { return KINDS[(unsigned char)c] & kinds; }
static int is_lower(char c) { return is_a(LOWER, c); }
static int is_upper(char c) { return is_a(UPPER, c); }
static int is_digit(char c) { return is_a(DIGIT, c); }
static int is_wordly(char c) { return is_a(LOWER | UPPER | DIGIT, c); }
static char lower_of(char c) { return is_upper(c) ? (char)(c + 32) : c; }

/* The characters of an ASCII text; NULL for any other object. */
static const char *ascii_of(PyObject *text, Py_ssize_t *size)
{
    if (!PyUnicode_CheckExact(text) || !PyUnicode_IS_COMPACT_ASCII(text))
        return NULL;
    *size = PyUnicode_GET_LENGTH(text);
    return (const char *)PyUnicode_DATA(text);
}

static PyObject *lowered(const char *from, Py_ssize_t size)
{
    PyObject *made = PyUnicode_New(size, 127);
    if (made) {
        char *to = PyUnicode_DATA(made);
        for (Py_ssize_t at = 0; at < size; at++)
            to[at] = lower_of(from[at]);
    }
    return made;
}

static int append(PyObject *list, PyObject *item)
{
    int failed = !item || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* Where the part that starts here ends: capitals, a capitalised word, small letters, or digits. */
static Py_ssize_t part_end(const char *run, Py_ssize_t at, Py_ssize_t size)
{
    Py_ssize_t end = at + 1;
    if (is_upper(run[at])) {
        while (end < size && is_upper(run[end]))
            end++;
        if (end == size || !is_lower(run[end]))
            return end;
        if (end - at > 1)
            return end - 1; /* the last capital begins the next word */
    }
    else if (is_digit(run[at])) {
        while (end < size && is_digit(run[end]))
            end++;
        return end;
    }
    while (end < size && is_lower(run[end]))
        end++;
    return end;
}

/* The terms of one run of letters and digits: its parts that are longer than a letter, and the whole. */
static int add_run(PyObject *found, const char *run, Py_ssize_t size)
{
    Py_ssize_t first = part_end(run, 0, size);
    if (first < size)
        for (Py_ssize_t at = 0, end; at < size; at = end) {
            end = part_end(run, at, size);
            if (end - at > 1 && append(found, lowered(run + at, end - at)) < 0)
                return -1;
        }
    return append(found, lowered(run, size));
}

/* terms(text, most) -> the terms of an ASCII text, runs cut at `most` characters; None for any other text. */
static PyObject *terms(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t size, most;
    const char *text = count == 2 ? ascii_of(args[0], &size) : NULL;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "terms takes a text and a bound");
    if (!text)
        Py_RETURN_NONE;
    if ((most = PyLong_AsSsize_t(args[1])) < 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the bound must be positive");
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < size;) {
        if (!is_wordly(text[at])) {
            at++;
            continue;
        }
        Py_ssize_t start = at;
        while (at < size && is_wordly(text[at]))
            at++;
        if (add_run(found, text + start, at - start < most ? at - start : most) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static int ends(const char *word, Py_ssize_t size, const char *ending)
{
    Py_ssize_t length = (Py_ssize_t)strlen(ending);
    return size >= length && !memcmp(word + size - length, ending, (size_t)length);
}

static int has_vowel(const char *word, Py_ssize_t size)
{
    for (Py_ssize_t at = 0; at < size; at++)
        if (strchr("aeiouy", word[at]) && word[at])
            return 1;
    return 0;
}

/* The length of a verb without its ending, which takes so many characters. */
static Py_ssize_t verb_stem(const char *word, Py_ssize_t size, Py_ssize_t ending)
{
    Py_ssize_t stem = size - ending;
    if (stem < 3 || !has_vowel(word, stem))
        return size;
    char last = word[stem - 1];
    return last == word[stem - 2] && last != 'l' && last != 's' && last != 'z' && stem > 3 ? stem - 1 : stem;
}

/* The family of a word, written over it; its length. */
static Py_ssize_t family_of(char *word, Py_ssize_t size)
{
    if (size < 4 || !strchr("sgde", word[size - 1]))
        return size;
    if (size > 4 && ends(word, size, "ies")) {
        word[size - 3] = 'y';
        return size - 2;
    }
    if (ends(word, size, "es")
        && (ends(word, size - 2, "ss") || ends(word, size - 2, "sh") || ends(word, size - 2, "ch")
            || ends(word, size - 2, "x") || ends(word, size - 2, "z")))
        size -= 2;
    else if (ends(word, size, "s") && !ends(word, size, "ss") && !ends(word, size, "us") && !ends(word, size, "is"))
        size -= 1;
    if (ends(word, size, "ing"))
        size = verb_stem(word, size, 3);
    else if (ends(word, size, "ed") && !ends(word, size, "eed"))
        size = verb_stem(word, size, 2);
    return size > 4 && word[size - 1] == 'e' ? size - 1 : size;
}

/* The family of some characters as a text. */
static PyObject *family_text(const char *from, Py_ssize_t size)
{
    char word[2 * WORD_MAX + 1];
    memcpy(word, from, (size_t)size);
    word[size] = 0;
    Py_ssize_t length = family_of(word, size);
    return PyUnicode_FromStringAndSize(word, length);
}

/* family(word) -> its family; None if the word is no ASCII text of usual length. */
static PyObject *family(PyObject *module, PyObject *word)
{
    Py_ssize_t size;
    const char *text = ascii_of(word, &size);
    if (!text || size > WORD_MAX)
        Py_RETURN_NONE;
    if (size < 4 || !strchr("sgde", text[size - 1]))
        return Py_NewRef(word);
    return family_text(text, size);
}

/* Whether a family may have left its mark: 1 or 0, -1 with an error set. */
static int has_mark(PyObject *key, const char *marks, size_t places)
{
    Py_hash_t hash = key ? PyObject_Hash(key) : -1;
    return hash == -1 ? -1 : !marks || marks[(size_t)hash & (places - 1)];
}

static int read_marks(PyObject *given, const char **marks, size_t *places)
{
    if (!(PyByteArray_CheckExact(given) || given == Py_None)) {
        PyErr_SetString(PyExc_TypeError, "marks are a bytearray or None");
        return -1;
    }
    *marks = given == Py_None ? NULL : PyByteArray_AS_STRING(given);
    *places = *marks ? (size_t)PyByteArray_GET_SIZE(given) : 0;
    if (*marks && (!*places || *places & (*places - 1))) {
        PyErr_SetString(PyExc_ValueError, "the number of marks must be a power of two");
        return -1;
    }
    return 0;
}

/* halves(word, places, marks) -> (place, family of the head, family of the tail) for each of the places where both
   families have left their marks; None if the word is no ASCII text of usual length. */
static PyObject *halves(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const char *marks;
    size_t room;
    Py_ssize_t size;
    if (count != 3 || !PyTuple_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "halves takes a word, a tuple of places and marks");
    if (read_marks(args[2], &marks, &room) < 0)
        return NULL;
    const char *word = ascii_of(args[0], &size);
    if (!word || size > WORD_MAX)
        Py_RETURN_NONE;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t which = 0; found && which < PyTuple_GET_SIZE(args[1]); which++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[1], which));
        if (place < 0 || place > size) {
            Py_DECREF(found);
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a place outside of the word");
        }
        PyObject *head = family_text(word, place), *tail = NULL;
        int marked = has_mark(head, marks, room);
        if (marked > 0)
            marked = has_mark(tail = family_text(word + place, size - place), marks, room);
        if (marked > 0)
            marked = append(found, PyTuple_Pack(3, PyTuple_GET_ITEM(args[1], which), head, tail));
        if (marked < 0)
            Py_CLEAR(found);
        Py_XDECREF(head);
        Py_XDECREF(tail);
    }
    return found;
}

/* possible(terms, marks) -> (word, family) of each two neighbours put together, if the family has left its mark;
   None if some term is no ASCII text of usual length. */
static PyObject *possible(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const char *marks;
    size_t places;
    if (count != 2 || !PyList_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "possible takes a list of terms and marks");
    if (read_marks(args[1], &marks, &places) < 0)
        return NULL;
    PyObject *found = PyList_New(0);
    char word[2 * WORD_MAX];
    for (Py_ssize_t at = 0; found && at + 1 < PyList_GET_SIZE(args[0]); at++) {
        Py_ssize_t one = 0, two = 0;
        const char *first = ascii_of(PyList_GET_ITEM(args[0], at), &one);
        const char *second = ascii_of(PyList_GET_ITEM(args[0], at + 1), &two);
        if (!first || !second || one > WORD_MAX || two > WORD_MAX || one + two < 1) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
        memcpy(word, first, (size_t)one);
        memcpy(word + one, second, (size_t)two);
        PyObject *key = family_text(word, one + two), *whole = NULL;
        int marked = has_mark(key, marks, places);
        if (marked > 0) {
            whole = PyUnicode_FromStringAndSize(word, one + two);
            marked = append(found, whole ? PyTuple_Pack(2, whole, key) : NULL);
        }
        if (marked < 0)
            Py_CLEAR(found);
        Py_XDECREF(whole);
        Py_XDECREF(key);
    }
    return found;
}

/* The number of a term, borrowed; NULL if it has none or, with an error set, if that cannot be said. */
static PyObject *number_of(PyObject *vocabulary, const char *word, Py_ssize_t size)
{
    PyObject *term = PyUnicode_FromStringAndSize(word, size);
    PyObject *number = term ? PyDict_GetItemWithError(vocabulary, term) : NULL;
    Py_XDECREF(term);
    return number;
}

/* forms(vocabulary, key) -> the numbers of the terms whose family is the key, in the order of `possible_forms`, each
   once; None if the key is no ASCII text of usual length. */
static PyObject *forms(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    static const char *const ENDINGS[] = {"", "s", "es", "ing", "ings", "ed", "eds", "+ing", "+ings", "+ed", "+eds",
                                          "e", "eing", "eings", "eeing", "eeings"};
    Py_ssize_t size;
    if (count != 2 || !PyDict_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "forms takes a vocabulary and a key");
    const char *key = ascii_of(args[1], &size);
    if (!key || size < 1 || size > WORD_MAX)
        Py_RETURN_NONE;
    char form[WORD_MAX + 8], stem[WORD_MAX + 8];
    PyObject *found = PyList_New(0);
    for (size_t kind = 0; found && kind <= sizeof ENDINGS / sizeof *ENDINGS; kind++) {
        Py_ssize_t length = size;
        const char *ending = "ies"; /* the last one: of a key that ends in y */
        memcpy(form, key, (size_t)size);
        if (kind < sizeof ENDINGS / sizeof *ENDINGS) {
            ending = ENDINGS[kind];
            if (*ending == '+') { /* the last letter doubled */
                form[length++] = key[size - 1];
                ending++;
            }
        }
        else if (key[--length] != 'y')
            break;
        memcpy(form + length, ending, strlen(ending));
        length += (Py_ssize_t)strlen(ending);
        PyObject *number = kind ? number_of(args[0], form, length) : PyDict_GetItemWithError(args[0], args[1]);
        if (number) {
            memcpy(stem, form, (size_t)length);
            stem[length] = 0;
            if (family_of(stem, length) == size && !memcmp(stem, key, (size_t)size)
                && (!PySequence_Contains(found, number) && PyList_Append(found, number) < 0))
                Py_CLEAR(found);
        }
        else if (PyErr_Occurred())
            Py_CLEAR(found);
    }
    return found;
}

/* name_hash(name) -> the hash of an ASCII name without case and separators, 0 if nothing is left; None for any other. */
static PyObject *name_hash(PyObject *module, PyObject *name)
{
    Py_ssize_t size, letters = 0;
    const char *text = ascii_of(name, &size);
    if (!text)
        Py_RETURN_NONE;
    uint32_t hash = 0xFFFFFFFFu;
    for (Py_ssize_t at = 0; at < size; at++)
        if (is_wordly(text[at])) {
            hash = hash >> 8 ^ CRC[(hash ^ (unsigned char)lower_of(text[at])) & 255];
            letters++;
        }
    hash = ~hash;
    return PyLong_FromUnsignedLong(!letters ? 0 : hash ? hash : 1);
}

/* ---- Screening: the first look of `intake.glance` ---------------------------------------------------------------- */

#define WORDS "toolcrib.words"
#define WATCHED 64
#define WATCHED_CHARS 24

typedef struct {
    uint32_t sizes[256]; /* by first letter, which lengths there are */
    int used;
    struct {
        char letters[WATCHED_CHARS];
        int size;
    } words[WATCHED];
} Watched;

static void free_watched(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, WORDS));
}

/* words(words) -> a few short words to be looked for. */
static PyObject *words(PyObject *module, PyObject *given)
{
    PyObject *list = PySequence_List(given);
    Watched *watched = list ? PyMem_Calloc(1, sizeof(Watched)) : NULL;
    for (Py_ssize_t at = 0; watched && at < PyList_GET_SIZE(list); at++) {
        PyObject *word = PyList_GET_ITEM(list, at);
        Py_ssize_t size = PyBytes_CheckExact(word) ? PyBytes_GET_SIZE(word) : 0;
        if (size < 1 || size > WATCHED_CHARS || watched->used == WATCHED) {
            PyErr_SetString(PyExc_ValueError, "too many words, or words of another kind");
            break;
        }
        memcpy(watched->words[watched->used].letters, PyBytes_AS_STRING(word), (size_t)size);
        watched->words[watched->used++].size = (int)size;
        watched->sizes[(unsigned char)*PyBytes_AS_STRING(word)] |= 1u << size;
    }
    Py_XDECREF(list);
    if (!watched && !PyErr_Occurred())
        PyErr_NoMemory();
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(watched, WORDS, free_watched);
    if (!capsule)
        PyMem_Free(watched);
    return capsule;
}

static int is_one_of(const Watched *watched, const char *word, size_t size)
{
    if (!size || size > WATCHED_CHARS || !(watched->sizes[(unsigned char)*word] >> size & 1))
        return 0;
    for (int which = 0; which < watched->used; which++)
        if (watched->words[which].size == (int)size && !memcmp(watched->words[which].letters, word, size))
            return 1;
    return 0;
}

static int is_watched(const Watched *watched, const char *word, size_t size)
{
    char lower[WATCHED_CHARS];
    if (size > WATCHED_CHARS || !(watched->sizes[(unsigned char)lower_of(*word)] >> size & 1))
        return 0;
    for (size_t at = 0; at < size; at++)
        lower[at] = lower_of(word[at]);
    return is_one_of(watched, lower, size);
}

/* Whether a long run may be text in another notation: all hexadecimal, or of mixed case, unless it is the one usual. */
static int may_be_encoded(const char *run, size_t size, const char *start, const char *end)
{
    static const char USUAL[] = "additionalProperties";
    int some = 0, all = HEX;
    if (size == sizeof USUAL - 1 && !memcmp(run, USUAL, size) && run > start && run[-1] == '"' && run + size < end
        && run[size] == '"')
        return 0;
    for (size_t at = 0; at < size; at++) {
        some |= KINDS[(unsigned char)run[at]];
        all &= KINDS[(unsigned char)run[at]];
    }
    return !(some & LOWER) == !(some & UPPER) || all;
}

/* harmless(raw, words, long) -> whether compact JSON is plain ASCII with none of the words and no run so long that may
   be text in another notation. False is no answer: somebody has to look closer. */
static PyObject *harmless(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "harmless takes bytes, words and a length");
    const Watched *watched = PyCapsule_GetPointer(args[1], WORDS);
    size_t least = PyLong_AsSize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    /* Behind the last byte stands a zero, which stops every loop. */
    const char *start = PyBytes_AS_STRING(args[0]), *end = start + PyBytes_GET_SIZE(args[0]);
    for (const char *at = start; at < end;) {
        if (is_a(IN_RUN, *at)) {
            const char *run = at;
            while (is_a(IN_RUN, *at)) {
                const char *word = at;
                while (is_a(LOWER | UPPER | DIGIT | UNDERSCORE, *at))
                    at++;
                if (at > word && is_watched(watched, word, (size_t)(at - word)))
                    Py_RETURN_FALSE;
                while (is_a(IN_RUN, *at) && !is_a(LOWER | UPPER | DIGIT | UNDERSCORE, *at))
                    at++;
            }
            if ((size_t)(at - run) >= least && may_be_encoded(run, (size_t)(at - run), start, end))
                Py_RETURN_FALSE;
        }
        else if (is_a(STOP, *at) || (*at == '\\' && (!*++at || !strchr("ntr\"/", *at))))
            Py_RETURN_FALSE; /* among others any escape but those of usual blanks and quotes */
        else
            at++;
    }
    Py_RETURN_TRUE;
}

/* ---- Schemas: what `retrieval.documents` and `retrieval.signature` read of compact JSON --------------------------- */

/* A stretch of JSON as an encoder writes it: no blanks. Behind the last byte stands a zero, which no loop passes.
   Whatever is not as expected ends the reading with NULL, and the reference reads it instead. */
typedef struct {
    const char *start;
    Py_ssize_t size;
} Piece;

/* Where the string that starts here ends; escaped or not. */
static const char *skip_string(const char *at)
{
    const char *end = at;
    do {
        if (!(end = strchr(end + 1, '"')))
            return NULL;
        const char *before = end;
        while (before[-1] == '\\')
            before--;
        if ((end - before) % 2 == 0)
            return end + 1;
    } while (1);
}

/* The same, and the inside of the string; one with escapes is not read. */
static const char *read_string(const char *at, Piece *inside)
{
    const char *end = *at == '"' ? skip_string(at) : NULL;
    if (!end || memchr(at, '\\', (size_t)(end - at)))
        return NULL;
    *inside = (Piece){at + 1, end - at - 2};
    return end;
}

/* Where the value that starts here ends. Brackets are only counted: the bytes are an encoder's. */
static const char *skip_value(const char *at)
{
    Py_ssize_t depth = 0;
    do {
        if (*at == '"') {
            if (!(at = skip_string(at)))
                return NULL;
        }
        else if (*at == '{' || *at == '[')
            depth++, at++;
        else if (*at == '}' || *at == ']')
            depth--, at++;
        else if (!*at)
            return NULL;
        else if (depth)
            at++;
        else
            while (*at && !strchr(",]}", *at))
                at++;
    } while (depth > 0);
    return depth ? NULL : at;
}

/* Where the next member of an object, or item of a list, starts: behind its opening bracket or a comma. Sets `*at` to
   NULL if it is malformed; returns 0 at the end. */
static int has_next(const char **at, char open, char close)
{
    if (**at == open && (*at)[1] == close)
        *at += 2;
    else if (**at == close)
        *at += 1;
    else if (**at == open || **at == ',') {
        *at += 1;
        return 1;
    }
    else
        *at = NULL;
    return 0;
}

/* The next member of an object: its key, and where its value starts. `*at` then stands at the value. */
static int next_member(const char **at, Piece *key)
{
    if (!has_next(at, '{', '}'))
        return 0;
    *at = read_string(*at, key);
    if (*at && **at == ':')
        ++*at;
    else
        *at = NULL;
    return *at != NULL;
}

static int is_key(Piece key, const char *name)
{
    return key.size == (Py_ssize_t)strlen(name) && !memcmp(key.start, name, (size_t)key.size);
}

static int append_text(PyObject *list, Piece text)
{
    return append(list, PyUnicode_DecodeUTF8(text.start, text.size, NULL));
}

enum { PROPERTIES, ITEMS, ANY_OF, ONE_OF, ALL_OF, DESCRIPTION, ENUM, KEYWORDS };

/* Where the values of the keywords that hold words start. */
static int read_keywords(const char *at, const char *found[KEYWORDS])
{
    static const char *const NAMES[] = {"properties", "items", "anyOf", "oneOf", "allOf", "description", "enum"};
    Piece key;
    memset(found, 0, KEYWORDS * sizeof *found);
    while (next_member(&at, &key)) {
        for (int which = 0; which < KEYWORDS; which++)
            if (is_key(key, NAMES[which]))
                found[which] = at;
        if (!(at = skip_value(at)))
            return -1;
    }
    return at ? 0 : -1;
}

/* The words of one schema, and where the schemas inside it start. -1: not as expected, or an error is set. */
static int add_words(const char *schema, PyObject *words, Row *below, Py_ssize_t enumerated)
{
    const char *found[KEYWORDS], *at;
    Piece text;
    if (read_keywords(schema, found) < 0)
        return -1;
    if ((at = found[DESCRIPTION]) && *at == '"' && (!read_string(at, &text) || append_text(words, text) < 0))
        return -1;
    if ((at = found[ENUM]) && *at == '[') {
        for (Py_ssize_t count = 0; has_next(&at, '[', ']'); count++) {
            if (*at == '"' && count < enumerated && (!read_string(at, &text) || append_text(words, text) < 0))
                return -1;
            if (!(at = skip_value(at)))
                return -1;
        }
        if (!at)
            return -1;
    }
    for (int which = PROPERTIES; which <= ALL_OF; which++) {
        if (!(at = found[which]))
            continue;
        if (which == PROPERTIES && *at == '{') {
            while (next_member(&at, &text))
                if (append_text(words, text) < 0 || put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return -1;
        }
        else if (which == ITEMS && *at == '{') {
            if (put(below, (void *)at) < 0)
                return -1;
        }
        else if (which > ITEMS && *at == '[')
            while (has_next(&at, '[', ']'))
                if (put(below, (void *)at) < 0 || !(at = skip_value(at)))
                    return -1;
        if (!at)
            return -1;
    }
    return 0;
}

/* inside(schema, levels, enumerated) -> names of the parameters, and the words under them, level by level; None if the
   encoded schema is not as expected. */
static PyObject *inside(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "inside takes an encoded schema and two bounds");
    Py_ssize_t levels = PyLong_AsSsize_t(args[1]), enumerated = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    const char *schema = PyBytes_AS_STRING(args[0]), *found[KEYWORDS];
    Row level = {0}, below = {0};
    PyObject *names = PyList_New(0), *words = PyList_New(0);
    int failed = !names || !words || *schema != '{' || read_keywords(schema, found) < 0;
    if (!failed && found[PROPERTIES] && *found[PROPERTIES] == '{') {
        const char *at = found[PROPERTIES];
        Piece name;
        while (!failed && next_member(&at, &name))
            failed = append_text(names, name) < 0 || put(&level, (void *)at) < 0 || !(at = skip_value(at));
        failed |= !at;
    }
    for (; !failed && levels > 0 && level.used; levels--) {
        below.used = 0;
        for (Py_ssize_t at = 0; !failed && at < level.used; at++)
            if (*(const char *)level.at[at] == '{')
                failed = add_words(level.at[at], words, &below, enumerated) < 0;
        Row done = level;
        level = below;
        below = done;
    }
    PyMem_Free(level.at);
    PyMem_Free(below.at);
    if (!failed)
        return Py_BuildValue("NN", names, words);
    Py_XDECREF(names);
    Py_XDECREF(words);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

#define PARAMETERS 64

typedef struct {
    Piece name;
    PyObject *type; /* borrowed from the table of types */
    int required;
} Parameter;

/* The type of a parameter of which nothing else is to be said, borrowed; NULL if there is more. */
static PyObject *simple_type(const char *at, const Watched *simple, PyObject *types)
{
    Piece key, kind = {0};
    if (*at != '{')
        return NULL;
    while (next_member(&at, &key)) {
        if (!is_one_of(simple, key.start, (size_t)key.size))
            return NULL;
        if (is_key(key, "type") && (*at != '"' || !read_string(at, &kind)))
            return NULL;
        if (!(at = skip_value(at)))
            return NULL;
    }
    PyObject *name = at && kind.start ? PyUnicode_DecodeUTF8(kind.start, kind.size, "replace") : NULL;
    PyObject *type = name ? PyDict_GetItemWithError(types, name) : NULL;
    Py_XDECREF(name);
    return type;
}

static Py_ssize_t read_parameters(const char *at, Parameter *found, const Watched *simple, PyObject *types)
{
    Py_ssize_t used = 0;
    Piece name;
    while (next_member(&at, &name)) {
        if (used == PARAMETERS)
            return -1;
        found[used] = (Parameter){name, simple_type(at, simple, types), 0};
        if (!found[used++].type || !(at = skip_value(at)))
            return -1;
    }
    return at ? used : -1;
}

static int read_required(const char *at, Parameter *found, Py_ssize_t used)
{
    Piece name;
    while (has_next(&at, '[', ']')) {
        Py_ssize_t which = 0;
        if (!(at = read_string(at, &name)))
            return -1;
        while (which < used
               && !(found[which].name.size == name.size && !memcmp(found[which].name.start, name.start, (size_t)name.size)))
            which++;
        if (which == used)
            return -1;
        found[which].required = 1;
    }
    return at ? 0 : -1;
}

/* The parameters as a signature shows them, the required ones first; the length, or -1 if not all fit. */
static Py_ssize_t write_parameters(char *to, Py_ssize_t room, const Parameter *found, Py_ssize_t count)
{
    Py_ssize_t used = 0;
    for (int required = 1; required >= 0; required--)
        for (const Parameter *each = found; each < found + count; each++) {
            Py_ssize_t size;
            const char *type = each->required == required ? ascii_of(each->type, &size) : NULL;
            if (each->required != required)
                continue;
            if (!type || used + each->name.size + size + 7 > room) /* with what stands before, between and behind */
                return -1;
            if (used)
                used += (memcpy(to + used, ", ", 2), 2);
            for (Py_ssize_t at = 0; at < each->name.size; at++)
                if ((unsigned char)(to[used++] = each->name.start[at]) >= 0x80)
                    return -1;
            memcpy(to + used, required ? ": " : "?: ", required ? 2 : 3);
            used += required ? 2 : 3;
            memcpy(to + used, type, (size_t)size);
            used += size;
        }
    return used;
}

/* signature(name, schema, known, simple, types, most) -> the signature of a schema that has none but `known` keywords and
   whose parameters have none but `simple` ones, if it has at most so many characters; None for any other. */
static PyObject *signature(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 6 || !PyUnicode_Check(args[0]) || !PyBytes_CheckExact(args[1]) || !PyDict_CheckExact(args[4]))
        return PyErr_Format(PyExc_TypeError, "signature takes a name, a schema, two sets of words, types and a bound");
    const Watched *known = PyCapsule_GetPointer(args[2], WORDS), *simple = PyCapsule_GetPointer(args[3], WORDS);
    Py_ssize_t most = PyLong_AsSsize_t(args[5]), used = 0;
    if (PyErr_Occurred())
        return NULL;
    Parameter found[PARAMETERS];
    PyObject *parameters = NULL;
    char text[2048];
    const char *at = PyBytes_AS_STRING(args[1]), *properties = NULL, *required = NULL;
    Piece key;
    while (*at == '{' || *at == ',' || *at == '}') {
        if (!next_member(&at, &key))
            break;
        if (!is_one_of(known, key.start, (size_t)key.size))
            Py_RETURN_NONE;
        if (is_key(key, "properties"))
            properties = at;
        else if (is_key(key, "required"))
            required = at;
        if (!(at = skip_value(at)))
            Py_RETURN_NONE;
    }
    most = most < (Py_ssize_t)sizeof text ? most : (Py_ssize_t)sizeof text;
    if (at && !*at && properties && *properties == '{') {
        Py_ssize_t size = read_parameters(properties, found, simple, args[4]);
        if (size >= 0 && (!required || (*required == '[' && read_required(required, found, size) == 0))
            && (used = write_parameters(text, most, found, size)) >= 0)
            parameters = PyUnicode_FromStringAndSize(text, used);
        if (parameters) {
            PyObject *written = PyUnicode_FromFormat("%U(%U)", args[0], parameters);
            Py_DECREF(parameters);
            return written;
        }
    }
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Runs: the codes of many texts at once, as `retrieval.numbering` gives them ----------------------------------- */

#define RUNS "toolcrib.runs"
#define BORDER 0x1e
#define PROBES 32 /* places looked at for one run: whoever makes runs collide gains no more than a look-up in Python */

typedef struct {
    uint64_t hash; /* 0: free */
    uint32_t start, size;
    int32_t code;
} Place;

typedef struct {
    Place *places;
    size_t room, used; /* room is a power of two */
    char *letters;
    size_t letters_room, letters_used;
    uint64_t seed;
} Runs;

static void free_runs(PyObject *capsule)
{
    Runs *held = PyCapsule_GetPointer(capsule, RUNS);
    if (held) {
        PyMem_Free(held->places);
        PyMem_Free(held->letters);
        PyMem_Free(held);
    }
}

/* runs(seed) -> an empty memo of runs and their codes; the seed keeps others from guessing where runs go. */
static PyObject *runs(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Runs *held = count == 1 ? PyMem_Calloc(1, sizeof(Runs)) : NULL;
    if (!held)
        return count == 1 ? PyErr_NoMemory() : PyErr_Format(PyExc_TypeError, "runs takes a seed");
    held->seed = PyLong_AsUnsignedLongLongMask(args[0]);
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(held, RUNS, free_runs);
    if (!capsule)
        PyMem_Free(held);
    return capsule;
}

/* At least eight bytes can be read from the run on. */
static uint64_t hash_of(const Runs *held, const char *run, size_t size)
{
    uint64_t hash = held->seed ^ (size * 0x9e3779b97f4a7c15u), word;
    for (size_t at = 0; at < size; at += sizeof word) {
        memcpy(&word, run + at, sizeof word);
        if (size - at < sizeof word) /* without what stands behind the run */
#if PY_BIG_ENDIAN
            word &= ~(uint64_t)0 << (64 - 8 * (size - at));
#else
            word &= ~(uint64_t)0 >> (64 - 8 * (size - at));
#endif
        hash = (hash ^ word) * 0xd6e8feb86659fd93u;
        hash ^= hash >> 32;
        hash *= held->seed | 1;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* The place of a run, or the free one where it belongs; NULL if neither is near. */
static Place *place_of(const Runs *held, uint64_t hash, const char *run, size_t size)
{
    for (size_t probe = 0; held->room && probe < PROBES; probe++) {
        Place *place = &held->places[((hash >> 1) + probe) & (held->room - 1)];
        if (!place->hash || (place->hash == hash && place->size == size && !memcmp(held->letters + place->start, run, size)))
            return place;
    }
    return NULL;
}

static int grow_runs(Runs *held, size_t size)
{
    if (held->letters_used + size > held->letters_room) {
        size_t room = (held->letters_used + size) * 2 + 4096;
        char *letters = room < UINT32_MAX ? PyMem_Realloc(held->letters, room) : NULL;
        if (!letters)
            return -1;
        held->letters = letters;
        held->letters_room = room;
    }
    if (held->used * 2 < held->room)
        return 0;
    Runs larger = *held;
    larger.room = held->room ? held->room * 2 : 1024;
    larger.places = PyMem_Calloc(larger.room, sizeof(Place));
    if (!larger.places)
        return -1;
    for (size_t at = 0; at < held->room; at++) {
        Place *old = &held->places[at];
        Place *place = old->hash ? place_of(&larger, old->hash, held->letters + old->start, old->size) : NULL;
        if (place)
            *place = *old;
    }
    PyMem_Free(held->places);
    *held = larger;
    return 0;
}

static int32_t as_code(PyObject *number)
{
    long code = number ? PyLong_AsLong(number) : -1;
    return (int32_t)code;
}

/* The code of a run: the number of its term, or what `several` says for the numbers of its terms. Sets an error. */
static int32_t find_code(PyObject *vocabulary, PyObject *several, const char *run, size_t size, size_t most)
{
    PyObject *found = PyList_New(0), *code = NULL;
    if (!found || add_run(found, run, (Py_ssize_t)(size < most ? size : most)) < 0)
        Py_CLEAR(found);
    for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(found); at++) {
        PyObject *number = PyLong_FromSsize_t(PyDict_GET_SIZE(vocabulary));
        PyObject *held = number ? PyDict_SetDefault(vocabulary, PyList_GET_ITEM(found, at), number) : NULL;
        Py_XINCREF(held);
        Py_XDECREF(number);
        if (!held || PyList_SetItem(found, at, held) < 0)
            Py_CLEAR(found);
    }
    if (found)
        code = PyList_GET_SIZE(found) == 1 ? Py_NewRef(PyList_GET_ITEM(found, 0)) : PyObject_CallOneArg(several, found);
    int32_t result = as_code(code);
    Py_XDECREF(code);
    Py_XDECREF(found);
    return result;
}

/* The code of a run by way of the memo. Sets an error. */
static int32_t code_of(Runs *held, PyObject *const *args, const char *run, size_t size, size_t most)
{
    char last[WORD_MAX + 8] = {0};
    uint64_t hash;
    if (run + size + 8 <= PyBytes_AS_STRING(args[4]) + PyBytes_GET_SIZE(args[4]))
        hash = hash_of(held, run, size);
    else if (size > WORD_MAX)
        hash = 0;
    else
        hash = hash_of(held, memcpy(last, run, size), size);
    Place *place = hash ? place_of(held, hash, run, size) : NULL;
    if (place && place->hash)
        return place->code;
    if (grow_runs(held, size) < 0)
        place = NULL;
    else
        place = hash ? place_of(held, hash, run, size) : NULL;
    if (!place) { /* the memo has no room for it: Python's has */
        PyObject *key = PyBytes_FromStringAndSize(run, (Py_ssize_t)size);
        PyObject *number = key ? PyObject_GetItem(args[2], key) : NULL;
        int32_t code = as_code(number);
        Py_XDECREF(key);
        Py_XDECREF(number);
        return code;
    }
    int32_t code = find_code(args[1], args[3], run, size, most);
    /* Python may have run, and other threads with it: the place may be another one, or taken. */
    if (!PyErr_Occurred() && grow_runs(held, size) == 0 && (place = place_of(held, hash, run, size)) && !place->hash) {
        *place = (Place){hash, (uint32_t)held->letters_used, (uint32_t)size, code};
        memcpy(held->letters + held->letters_used, run, size);
        held->letters_used += size;
        held->used++;
    }
    return code;
}

/* codes(runs, vocabulary, others, several, text, most, border) -> the codes of all runs of an ASCII text, as bytes of
   integers of 32 bits. `several` gives the code of several terms, `others` that of a run which the memo cannot hold. */
static PyObject *codes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 7 || !PyDict_CheckExact(args[1]) || !PyBytes_CheckExact(args[4]))
        return PyErr_Format(PyExc_TypeError, "codes takes runs, a vocabulary, others, several, a text, a bound, a code");
    Runs *held = PyCapsule_GetPointer(args[0], RUNS);
    size_t most = PyLong_AsSize_t(args[5]), size = (size_t)PyBytes_GET_SIZE(args[4]), used = 0;
    long border = PyLong_AsLong(args[6]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size + 1) * 4));
    const char *text = PyBytes_AS_STRING(args[4]);
    for (size_t at = 0, start; found && at < size;) {
        int32_t code = (int32_t)border;
        if (is_wordly(text[at])) {
            for (start = at++; is_wordly(text[at]);) /* a zero stands behind the text */
                at++;
            code = code_of(held, args, text + start, at - start, most);
            if (code == -1 && PyErr_Occurred()) {
                Py_CLEAR(found);
                break;
            }
        }
        else if (text[at++] != BORDER)
            continue;
        memcpy(PyBytes_AS_STRING(found) + 4 * used++, &code, 4);
    }
    if (found)
        _PyBytes_Resize(&found, (Py_ssize_t)(4 * used));
    return found;
}

/* ---- Postings: sums over the rows of a segment, as `retrieval.reading` makes them -------------------------------- */

#define POSTINGS "toolcrib.postings"

enum { STARTS, DOCUMENTS, CODES, IMPACTS, ARRAYS };

typedef struct {
    Py_buffer arrays[ARRAYS];
    Py_ssize_t terms, rows;
    float *best; /* zero between two uses */
} Postings;

static void drop_postings(Postings *held)
{
    for (int which = 0; which < ARRAYS; which++)
        if (held->arrays[which].obj)
            PyBuffer_Release(&held->arrays[which]);
    PyMem_Free(held->best);
    PyMem_Free(held);
}

static void free_postings(PyObject *capsule)
{
    Postings *held = PyCapsule_GetPointer(capsule, POSTINGS);
    if (held)
        drop_postings(held);
}

/* postings(rows, starts, documents, codes, impacts) -> the postings of a segment, whose arrays stay as they are. */
static PyObject *postings(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
        if (held->arrays[which].itemsize != WIDTHS[which])
            PyErr_Format(PyExc_TypeError, "array %d has items of another size", which);
    }
    if (!PyErr_Occurred()) {
        const int32_t *starts = held->arrays[STARTS].buf, *rows = held->arrays[DOCUMENTS].buf;
        Py_ssize_t size = held->arrays[CODES].len;
        int fit = held->arrays[DOCUMENTS].len == 4 * size && held->arrays[IMPACTS].len == 4 * 256 && held->rows >= 0;
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
    if (view->itemsize == 4 && view->len == 4 * rows)
        return view->buf;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "the sums are not those of these rows");
    return NULL;
}

/* add(postings, total, weighted): adds the weighted impacts of terms, one after the other. */
static PyObject *add(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyList_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "add takes postings, sums and a list of weighted terms");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Py_buffer view;
    float *total = held ? read_total(args[1], &view, held->rows) : NULL;
    if (!total)
        return NULL;
    const float *impacts = held->arrays[IMPACTS].buf;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[2]); at++) {
        Span span;
        if (read_span(held, PyList_GET_ITEM(args[2], at), &span) < 0)
            break;
        for (Py_ssize_t place = 0; place < span.size; place++)
            total[span.rows[place]] += impacts[span.codes[place]] * span.weight;
    }
    PyBuffer_Release(&view);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* merge(postings, weighted, counted) -> rows and what is added to each: what the best of some weighted impacts has more
   than those that were counted together, where that is more than nothing. Packed: all rows, then all numbers. */
static PyObject *merge(PyObject *module, PyObject *const *args, Py_ssize_t count)
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

/* add_merged(postings, total, packed): adds what `merge` found for these postings. */
static PyObject *add_merged(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyBytes_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "add_merged takes postings, sums and what was merged");
    Postings *held = PyCapsule_GetPointer(args[0], POSTINGS);
    Py_buffer view;
    float *total = held ? read_total(args[1], &view, held->rows) : NULL;
    if (!total)
        return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(args[2]) / 8;
    const char *bytes = PyBytes_AS_STRING(args[2]);
    for (Py_ssize_t at = 0; at < size; at++) {
        int32_t row;
        float worth;
        memcpy(&row, bytes + 4 * at, 4);
        memcpy(&worth, bytes + 4 * (size + at), 4);
        if (row >= 0 && row < held->rows)
            total[row] += worth;
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* ---- The best of many scores, as `retrieval.selection` looks for them -------------------------------------------- */

#define BLOCK 64 /* scores looked at together */

/* Positive numbers are ordered like the integers of their bits, and integers are compared many at a time. */
static int32_t most_of(const int32_t *scores, Py_ssize_t size)
{
    int32_t most = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        most = scores[at] > most ? scores[at] : most;
    return most;
}

static void sift(int32_t *heap, Py_ssize_t size, Py_ssize_t at)
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
static PyObject *best(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    int32_t *heap = view.itemsize == 4 ? PyMem_Calloc((size_t)limit + 1, sizeof(int32_t)) : NULL; /* the least on top */
    PyObject *rows = PyList_New(0), *values = PyList_New(0);
    if (!heap || !rows || !values) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the scores have another size");
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

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef METHODS[] = {
    FUNCTION(keep), FUNCTION(same), FUNCTION(terms), FUNCTION(halves), FUNCTION(possible), FUNCTION(forms), FUNCTION(harmless), FUNCTION(inside), FUNCTION(signature), FUNCTION(runs),
    FUNCTION(codes), FUNCTION(postings), FUNCTION(add), FUNCTION(merge), FUNCTION(add_merged), FUNCTION(best), {"family", family, METH_O, NULL}, {"name_hash", name_hash, METH_O, NULL}, {"words", words, METH_O, NULL}, {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    fill_tables();
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

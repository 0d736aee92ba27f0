/* Words: ASCII texts as `retrieval.text` takes them apart. */

#include "kernel.h"

unsigned char KINDS[256];
static uint32_t CRC[256];

uint64_t FIRST[9];

void fill_tables(void)
{
    for (int size = 0; size <= 8; size++)
        memset(&FIRST[size], 255, (size_t)size);
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

size_t pieces_of_run(const char *run, size_t size, Piece *found)
{
    size_t many = 0;
    Py_ssize_t end = part_end(run, 0, (Py_ssize_t)size);
    if ((size_t)end < size)
        for (Py_ssize_t at = 0; (size_t)at < size; at = end) {
            end = part_end(run, at, (Py_ssize_t)size);
            if (end - at > 1)
                found[many++] = (Piece){run + at, end - at};
        }
    found[many++] = (Piece){run, (Py_ssize_t)size};
    return many;
}

/* The terms of one run. */
static int add_run(PyObject *found, const char *run, Py_ssize_t size)
{
    Piece pieces[PIECES_MAX];
    size_t many = pieces_of_run(run, (size_t)size, pieces);
    for (size_t at = 0; at < many; at++)
        if (append(found, lowered(pieces[at].start, pieces[at].size)) < 0)
            return -1;
    return 0;
}

/* terms(text, most) -> the terms of an ASCII text, runs cut at `most` characters; None for any other text. */
FAST(terms)
{
    Py_ssize_t size, most;
    const char *text = count == 2 ? ascii_of(args[0], &size) : NULL;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "terms takes a text and a bound");
    if (!text)
        Py_RETURN_NONE;
    most = PyLong_AsSsize_t(args[1]);
    if (most < 1 || most > WORD_MAX)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the bound is 1 to %d", WORD_MAX);
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
PyObject *family(PyObject *module, PyObject *word)
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

int read_marks(PyObject *given, const char **marks, size_t *places)
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
FAST(halves)
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
FAST(possible)
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

/* forms(vocabulary, key) -> the numbers of the terms whose family is the key, in the order of `possible_forms`, each
   once; None if the key is no ASCII text of usual length, or the vocabulary is not the kernel's. */
FAST(forms)
{
    static const char *const ENDINGS[] = {"", "s", "es", "ing", "ings", "ed", "eds", "+ing", "+ings", "+ed", "+eds",
                                          "e", "eing", "eings", "eeing", "eeings"};
    Py_ssize_t size;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "forms takes a vocabulary and a key");
    const Vocabulary *known = as_vocabulary(args[0]);
    const char *key = ascii_of(args[1], &size);
    if (!known || !key || size < 1 || size > WORD_MAX)
        Py_RETURN_NONE;
    char form[WORD_MAX + 8], stem[WORD_MAX + 8];
    int32_t numbers[sizeof ENDINGS / sizeof *ENDINGS + 1];
    Py_ssize_t used = 0;
    for (size_t kind = 0; kind <= sizeof ENDINGS / sizeof *ENDINGS; kind++) {
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
        int32_t number = number_of(known, form, (size_t)length);
        if (number < 0)
            continue;
        memcpy(stem, form, (size_t)length);
        stem[length] = 0;
        int fresh = family_of(stem, length) == size && !memcmp(stem, key, (size_t)size);
        for (Py_ssize_t at = 0; fresh && at < used; at++)
            fresh = numbers[at] != number;
        if (fresh)
            numbers[used++] = number;
    }
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < used; at++)
        if (append(found, PyLong_FromLong(numbers[at])) < 0)
            Py_CLEAR(found);
    return found;
}

uint32_t hash_letters(uint32_t hash, const char *text, Py_ssize_t size, Py_ssize_t *letters)
{
    for (Py_ssize_t at = 0; at < size; at++)
        if (is_wordly(text[at])) {
            hash = hash >> 8 ^ CRC[(hash ^ (unsigned char)lower_of(text[at])) & 255];
            ++*letters;
        }
    return hash;
}

/* name_hash(name) -> the hash of an ASCII name without case and separators, 0 if nothing is left; None for any other. */
PyObject *name_hash(PyObject *module, PyObject *name)
{
    Py_ssize_t size, letters = 0;
    const char *text = ascii_of(name, &size);
    if (!text)
        Py_RETURN_NONE;
    uint32_t hash = hash_letters(0xFFFFFFFFu, text, size, &letters);
    return PyLong_FromUnsignedLong(hash_end(hash, letters));
}

/* Two hashes that go on with the same letters: one does not have to wait for the other. */
static void hash_twice(uint32_t hashes[2], const char *text, Py_ssize_t size, Py_ssize_t *letters)
{
    uint32_t one = hashes[0], other = hashes[1];
    for (Py_ssize_t at = 0; at < size; at++)
        if (is_wordly(text[at])) {
            unsigned char letter = (unsigned char)lower_of(text[at]);
            one = one >> 8 ^ CRC[(one ^ letter) & 255];
            other = other >> 8 ^ CRC[(other ^ letter) & 255];
            ++*letters;
        }
    hashes[0] = one;
    hashes[1] = other;
}

/* name_hashes(documents) -> the hashes of key, leaf, and toolset with leaf of each of these tuples, packed; None if some
   name is not ASCII. */
PyObject *name_hashes(PyObject *module, PyObject *given)
{
    if (!PyList_CheckExact(given))
        return PyErr_Format(PyExc_TypeError, "name_hashes takes a list");
    Py_ssize_t count = PyList_GET_SIZE(given);
    PyObject *found = PyBytes_FromStringAndSize(NULL, count * 12);
    for (Py_ssize_t which = 0; found && which < count; which++) {
        PyObject *document = PyList_GET_ITEM(given, which);
        Py_ssize_t sizes[3], letters[3] = {0};
        const char *texts[3] = {0};
        for (int name = 0; name < 3; name++)
            if (PyTuple_Check(document) && PyTuple_GET_SIZE(document) >= 3)
                texts[name] = ascii_of(PyTuple_GET_ITEM(document, name), &sizes[name]);
        if (!texts[0] || !texts[1] || !texts[2]) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
        uint32_t hashes[3] = {0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu};
        hashes[2] = hash_letters(hashes[2], texts[2], sizes[2], &letters[2]);
        hash_twice(hashes + 1, texts[1], sizes[1], &letters[1]);
        letters[2] += letters[1];
        if (texts[0] == texts[1]) { /* a tool without a prefix */
            hashes[0] = hashes[1];
            letters[0] = letters[1];
        }
        else
            hashes[0] = hash_letters(hashes[0], texts[0], sizes[0], &letters[0]);
        for (int name = 0; name < 3; name++)
            hashes[name] = hash_end(hashes[name], letters[name]);
        memcpy(PyBytes_AS_STRING(found) + which * 12, hashes, 12);
    }
    return found;
}

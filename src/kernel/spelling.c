/* Spelling: known words one slip away from an unknown one, as `retrieval.spelling` looks for them. */

#include "kernel.h"

#define KEPT 5 /* letters of a mark */

/* Adds the word to those that were found if it is known: 0, or -1 with an error set. */
static int add_known(PyObject *found, const Vocabulary *known, const char *word, Py_ssize_t size)
{
    if (number_of(known, word, (size_t)size) < 0)
        return 0;
    PyObject *text = PyUnicode_FromStringAndSize(word, size);
    int added = text ? PySet_Add(found, text) : -1;
    Py_XDECREF(text);
    return added;
}

/* Whether some word has so many letters from the beginning of this one and the rest of five from its end; -1 with an
   error set. */
static int has_mark(const char *word, Py_ssize_t size, Py_ssize_t at, const char *marks, size_t places)
{
    char parts[KEPT + 1];
    memcpy(parts, word, (size_t)at);
    parts[at] = ' ';
    memcpy(parts + at + 1, word + size - KEPT + at, (size_t)(KEPT - at));
    PyObject *text = PyUnicode_FromStringAndSize(parts, KEPT + 1);
    Py_hash_t hash = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    return hash == -1 ? -1 : marks[(size_t)hash & (places - 1)] != 0;
}

/* respelt(word, known, marks) -> the set of known words that a missing, extra, wrong or swapped letter after the first
   one makes of a word; None if the word is no ASCII text of usual length, or what is known no vocabulary. Without marks
   every letter is tried. */
FAST(respelt)
{
    const char *marks;
    size_t places;
    Py_ssize_t size;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "respelt takes a word, known words and marks");
    if (read_marks(args[2], &marks, &places) < 0)
        return NULL;
    const char *word = ascii_of(args[0], &size);
    const Vocabulary *known = as_vocabulary(args[1]);
    if (!word || size < 1 || size >= WORD_MAX || (marks && size < KEPT) || !known)
        Py_RETURN_NONE;
    PyObject *found = PySet_New(NULL);
    char other[WORD_MAX + 1];
    int fits = found ? 1 : -1;
    for (Py_ssize_t at = 1; fits >= 0 && at <= size; at++) {
        size_t behind = (size_t)(size - at); /* letters from here on */
        if (marks && at <= KEPT && (fits = has_mark(word, size, at, marks, places)) < 0)
            break;
        int failed = 0;
        for (char letter = 'a'; fits && !failed && letter <= 'z'; letter++) {
            memcpy(other, word, (size_t)at);
            other[at] = letter;
            memcpy(other + at + 1, word + at, behind);
            failed = add_known(found, known, other, size + 1) < 0;
            if (behind && !failed) {
                memcpy(other + at + 1, word + at + 1, behind - 1);
                failed = add_known(found, known, other, size) < 0;
            }
        }
        if (behind && !failed) {
            memcpy(other, word, (size_t)at);
            memcpy(other + at, word + at + 1, behind - 1);
            failed = add_known(found, known, other, size - 1) < 0;
            if (behind > 1) {
                other[at + 1] = word[at];
                memcpy(other + at + 2, word + at + 2, behind - 2);
            }
            else
                other[at] = word[at];
            failed = failed || add_known(found, known, other, size) < 0;
        }
        fits = failed ? -1 : fits;
    }
    if (fits < 0 || PySet_Discard(found, args[0]) < 0)
        Py_CLEAR(found);
    return found;
}

/* Screening: the first look of `intake.glance`. */

#include "kernel.h"

static void free_watched(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, WORDS));
}

/* words(words) -> a few short words to be looked for. */
PyObject *words(PyObject *module, PyObject *given)
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

int is_one_of(const Watched *watched, const char *word, size_t size)
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
FAST(harmless)
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

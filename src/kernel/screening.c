/* Screening: the first look of `intake.glance`. */

#include "kernel.h"

static void free_watched(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, WORDS));
}

/* The first two letters of a word, whatever their case; what is no letter may be taken for one. */
static size_t pair_of(const char *word, size_t size) { return (size_t)(word[0] & 31) << 5 | (size_t)(word[size > 1] & 31); }

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
        watched->sizes[pair_of(PyBytes_AS_STRING(word), (size_t)size)] |= 1u << size;
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
    if (!size || size > WATCHED_CHARS || !(watched->sizes[pair_of(word, size)] >> size & 1))
        return 0;
    for (int which = 0; which < watched->used; which++)
        if (watched->words[which].size == (int)size && watched->words[which].letters[0] == *word
            && !memcmp(watched->words[which].letters, word, size))
            return 1;
    return 0;
}

static int is_watched(const Watched *watched, const char *word, size_t size)
{
    char lower[WATCHED_CHARS];
    if (size > WATCHED_CHARS || !(watched->sizes[pair_of(word, size)] >> size & 1))
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

/* Bytes of a stretch, one bit each. */
#define STRETCH 64

typedef struct {
    uint64_t word, run, stop; /* part of a word, part of a run, anything that needs a closer look */
} Bits;

/* The lowest bits of eight bytes, which are 0 or 1. */
static uint64_t pack(const unsigned char *flags)
{
    uint64_t eight;
    memcpy(&eight, flags, 8);
#if PY_BIG_ENDIAN
    return eight * 0x8040201008040201u >> 56;
#else
    return eight * 0x0102040810204080u >> 56;
#endif
}

/* Comparisons and no look-ups, so that the compiler can make them for many bytes at once. */
static Bits bits_of(const unsigned char *at)
{
    unsigned char word[STRETCH], run[STRETCH], stop[STRETCH];
    Bits bits = {0};
    for (int which = 0; which < STRETCH; which++) {
        unsigned char c = at[which], letter = (unsigned char)((c | 32) - 'a'), digit = (unsigned char)(c - '0');
        word[which] = (unsigned char)((letter < 26) | (digit < 10) | (c == '_'));
        run[which] = (unsigned char)(word[which] | (c == '+') | (c == '/') | (c == '-'));
        stop[which] = (unsigned char)((c < 0x20) | (c >= 0x7f) | (c == '%') | (c == '&') | (c == '\\'));
    }
    for (int eight = 0; eight < STRETCH; eight += 8) {
        bits.word |= pack(word + eight) << eight;
        bits.run |= pack(run + eight) << eight;
        bits.stop |= pack(stop + eight) << eight;
    }
    return bits;
}

/* Whether every word that ends in a stretch is none of the watched. `since` is where the last one began, if it goes on. */
static int passes(const Watched *watched, uint64_t bits, const char *at, const char **since)
{
    uint64_t before = bits << 1 | (*since != NULL), starts = bits & ~before, ends = ~bits & before;
    for (; ends; ends &= ends - 1) {
        const char *word = *since;
        if (word)
            *since = NULL;
        else {
            word = at + lowest(starts);
            starts &= starts - 1;
        }
        if (is_watched(watched, word, (size_t)(at + lowest(ends) - word)))
            return 0;
    }
    if (starts)
        *since = at + lowest(starts);
    return 1;
}

/* Bits from which on so many are set. */
static uint64_t rows_of(uint64_t bits, int size)
{
    int have = 1;
    for (; have * 2 <= size; have *= 2)
        bits &= bits >> have;
    return have < size ? bits & bits >> (size - have) : bits;
}

static int is_escaped(const char *at, const char *start) { return at > start && at[-1] == '\\'; }

/* Whether the run that this byte is part of may be text in another notation; where it ends. */
static int is_suspect(const char *at, const char *start, const char **end)
{
    const char *run = at, *stop = *end;
    while (run > start && is_a(IN_RUN, run[-1]) && !is_escaped(run - 1, start))
        run--;
    for (*end = at; *end < stop && is_a(IN_RUN, **end);)
        ++*end;
    return may_be_encoded(run, (size_t)(*end - run), start, stop);
}

/* An escape that says no more than a usual blank or quote does. */
static int is_usual(const char *at) { return *at == '\\' && at[1] && strchr("ntr\"/", at[1]); }

/* Whether compact JSON is plain ASCII with none of the words and no run so long that may be text in another notation. */
static int is_harmless(const char *start, const char *end, const Watched *watched, int least)
{
    const char *word = NULL, *seen = start; /* the word that goes on; what stands before this has no long run */
    uint64_t run = 0, escaped = 0;          /* of the stretch before */
    for (const char *at = start; at <= end; at += STRETCH) { /* at the end come blanks, which end words and runs */
        char last[STRETCH];
        size_t size = end - at < STRETCH ? (size_t)(end - at) : STRETCH;
        if (size < STRETCH)
            memset((char *)memcpy(last, at, size) + size, ' ', STRETCH - size);
        Bits bits = bits_of((const unsigned char *)(size < STRETCH ? last : at));
        for (uint64_t stops = bits.stop; stops; stops &= stops - 1) {
            int place = lowest(stops);
            if (!is_usual(at + place))
                return 0;
            escaped |= (uint64_t)2 << place;
        }
        /* The letter of an escape is part of no word. */
        bits.word &= ~escaped;
        bits.run &= ~escaped;
        escaped = bits.stop >> (STRETCH - 1);
        if (!passes(watched, bits.word, at, &word))
            return 0;
        /* Long runs, by halves of stretches: what begins in one half ends in the next, or is seen again there. */
        for (int half = 0; half < 2; half++) {
            uint64_t both = half ? bits.run : bits.run << STRETCH / 2 | run >> STRETCH / 2;
            for (uint64_t rows = rows_of(both, least); rows; rows &= rows - 1) {
                const char *from = at + lowest(rows) - (half ? 0 : STRETCH / 2), *until = end;
                if (from >= seen) {
                    if (is_suspect(from, start, &until))
                        return 0;
                    seen = until;
                }
            }
        }
        run = bits.run;
    }
    return 1;
}

/* suspects(raws, words, long) -> the places of those among many pieces of compact JSON that are not plain ASCII with none
   of the words and no run so long that may be text in another notation: somebody has to look closer at them. */
FAST(suspects)
{
    if (count != 3 || !PyList_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "suspects takes a list of bytes, words and a length");
    const Watched *watched = PyCapsule_GetPointer(args[1], WORDS);
    size_t least = PyLong_AsSize_t(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (least < 1 || least > STRETCH / 2)
        return PyErr_Format(PyExc_ValueError, "the length is 1 to %d", STRETCH / 2);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t at = 0; found && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *raw = PyList_GET_ITEM(args[0], at);
        if (!PyBytes_CheckExact(raw)) {
            Py_DECREF(found);
            return PyErr_Format(PyExc_TypeError, "suspects takes bytes");
        }
        const char *start = PyBytes_AS_STRING(raw);
        if (!is_harmless(start, start + PyBytes_GET_SIZE(raw), watched, (int)least)
            && append(found, PyLong_FromSsize_t(at)) < 0)
            Py_CLEAR(found);
    }
    return found;
}

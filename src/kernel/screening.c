/* Screening: the first look of `intake.glance`. */

#include "stretches.h"

static void free_watched(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, WORDS));
}

/* The first two letters of a word, whatever their case; what is no letter may be taken for one. */
static size_t pair_of(const char *word, size_t size) { return (size_t)(word[0] & 31) << 5 | (size_t)(word[size > 1] & 31); }

/* The same of a word that has two, as they stand there. */
static inline size_t start_of(const char *word)
{
    return ((size_t)(unsigned char)word[0] | (size_t)(unsigned char)word[1] << 8) & 0x1f1f;
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
        const char *letters = PyBytes_AS_STRING(word);
        watched->sizes[pair_of(letters, (size_t)size)] |= 1u << size;
        if (size > 1)
            watched->starts[start_of(letters)] = 1;
        else
            watched->single |= 1u << (letters[0] & 31);
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

typedef struct {
    uint64_t word, run, stop; /* part of a word, part of a run, anything that needs a closer look */
} Bits;

static inline Bits bits_of(const char *at)
{
    Bits bits = {0, 0, 0};
    for (int which = 0; which < STRETCH; which += BYTES) {
        Bytes all = bytes_at(at + which), line = is_byte(all, '_');
        Bytes word = either(either(is_from(either(all, every(32)), 'a', 25), is_from(all, '0', 9)), line);
        Bytes run = either(either(is_byte(all, '+'), is_byte(all, '-')), either(word, is_byte(all, '/')));
        Bytes stop = either(either(is_byte(all, '%'), is_byte(all, '&')), is_byte(all, '\\'));
        bits.word |= pack(word) << which;
        bits.run |= pack(run) << which;
        bits.stop |= (pack(stop) | (pack(is_from(all, 0x20, 0x7e - 0x20)) ^ ones(BYTES))) << which;
    }
    return bits;
}

/* Whether every word that starts in a stretch is none of the watched: one look at its first two letters rules out nearly
   all, and does so without a branch that nobody can foresee. `bits` are those of the stretch, `on` says whether its first
   byte goes on with a word. */
static int passes(const Watched *watched, uint64_t bits, int on, const char *at, const char *end)
{
    uint64_t starts = bits & ~(bits << 1 | (uint64_t)on);
    unsigned char closer[2 * STRETCH];
    size_t some = 0;
    for (uint64_t left = starts; left; left &= left - 1) {
        int place = lowest(left);
        closer[some] = (unsigned char)place;
        some += watched->starts[start_of(at + place)];
    }
    for (uint64_t alone = starts & ~(bits >> 1); alone; alone &= alone - 1) { /* where the last word ends is not seen yet */
        closer[some] = (unsigned char)lowest(alone);
        some += watched->single >> (at[lowest(alone)] & 31) & 1;
    }
    for (size_t which = 0; which < some; which++) {
        const char *word = at + closer[which];
        size_t size = length_of_row(bits >> closer[which]);
        if (closer[which] + size == STRETCH)
            while (word + size < end && (is_wordly(word[size]) || word[size] == '_'))
                size++;
        if (is_watched(watched, word, size))
            return 0;
    }
    return 1;
}

/* Bits from which on so many are set. */
static inline uint64_t rows_of(uint64_t bits, int size)
{
    int have = size < 16 ? 1 : 16;
    if (have == 16) {
        bits &= bits >> 1;
        bits &= bits >> 2;
        bits &= bits >> 4;
        bits &= bits >> 8;
    }
    for (; have * 2 <= size; have *= 2)
        bits &= bits >> have;
    return bits & bits >> (size - have);
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
    const char *seen = start;       /* what stands before this has no long run */
    uint64_t run = 0, escaped = 0;  /* of the stretch before */
    int on = 0;                     /* it ends within a word */
    for (const char *at = start; at <= end; at += STRETCH) { /* at the end come blanks, which end words and runs */
        char last[STRETCH];
        size_t size = end - at < STRETCH ? (size_t)(end - at) : STRETCH;
        if (size < STRETCH)
            memset((char *)memcpy(last, at, size) + size, ' ', STRETCH - size);
        Bits bits = bits_of(size < STRETCH ? last : at);
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
        if (!passes(watched, bits.word, on, at, end))
            return 0;
        on = (int)(bits.word >> (STRETCH - 1));
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

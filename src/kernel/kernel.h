/* The inner loops of Toolcrib that Python cannot run fast enough: optional, and never another answer than Python's.

   `toolcrib.kernel` says what is here and who uses it; the Python beside each use is the reference. Rules of these files:
   - No function lets Python code run while it looks into somebody's containers: only exact built-in types are walked,
     leaves are compared by value in C. The interpreter's lock is held throughout, so no thread can change them either.
   - Depth and size of what is walked are bounded; whatever is not plain is handed back to the reference.
   - Numbers are added, multiplied and compared in the order and the width in which numpy does it (build with
     -ffp-contract=off): sums are the same bits. */

#ifndef TOOLCRIB_KERNEL_H
#define TOOLCRIB_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "floats are not computed in their own width here: sums would be other bits"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define FETCH(address) __builtin_prefetch(address)
#else
#define FETCH(address) ((void)(address))
#endif

/* A row of addresses that grows. */
typedef struct {
    void **at;
    Py_ssize_t used, room;
} Row;

/* Makes room for so many in all: 0, or -1 with an error set. */
int widen(Row *row, Py_ssize_t room);

/* Puts one more at the end: 1, or -1 with an error set. */
static inline int put(Row *row, void *value)
{
    if (row->used == row->room && widen(row, row->room ? row->room * 2 : 512) < 0)
        return -1;
    row->at[row->used++] = value;
    return 1;
}

/* Some characters of somebody else's. */
typedef struct {
    const char *start;
    Py_ssize_t size;
} Piece;

/* Characters of it, not bytes: those of a text in UTF-8. */
static inline Py_ssize_t count_chars(Piece piece)
{
    Py_ssize_t at = 0, count = piece.size;
    for (uint64_t eight; at + 8 <= piece.size; at += 8) {
        memcpy(&eight, piece.start + at, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    for (; at < piece.size; at++)
        count -= ((unsigned char)piece.start[at] & 0xC0) == 0x80;
    return count;
}

/* A row of them that grows. */
typedef struct {
    Piece *at;
    Py_ssize_t used, room;
} Pieces;

/* The words of an encoded schema as `retrieval.documents` reads them, in UTF-8: names of the parameters, and what stands
   under them, level by level. 1: all of them; 0: not as expected; -1: an error is set. */
typedef struct {
    Pieces names, words;
    Row level, below;
    char *plain; /* strings without their escapes */
    size_t plain_used, plain_room;
} Inside;

int read_inside(Inside *inside, PyObject *schema, Py_ssize_t levels, Py_ssize_t enumerated);
void drop_inside(Inside *inside);

/* What bytes are. */
enum { LOWER = 1, UPPER = 2, DIGIT = 4, UNDERSCORE = 8, IN_RUN = 16, STOP = 32, HEX = 64 };

extern unsigned char KINDS[256];
void fill_tables(void);
int fill_messages(void); /* 0, or -1 with an error set */
int fill_cards(void);

static inline int is_a(int kinds, char c) { return KINDS[(unsigned char)c] & kinds; }
static inline int is_lower(char c) { return is_a(LOWER, c); }
static inline int is_upper(char c) { return is_a(UPPER, c); }
static inline int is_digit(char c) { return is_a(DIGIT, c); }
static inline int is_wordly(char c) { return is_a(LOWER | UPPER | DIGIT, c); }
static inline char lower_of(char c) { return is_upper(c) ? (char)(c + 32) : c; }

/* The place of the lowest bit that is set. */
static inline int lowest(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(bits);
#else
    int place = 0;
    for (; !(bits & 1); bits >>= 1)
        place++;
    return place;
#endif
}

#define WORD_MAX 256 /* characters, more than a term may have */

/* The characters of an ASCII text; NULL for any other object. */
static inline const char *ascii_of(PyObject *text, Py_ssize_t *size)
{
    if (!PyUnicode_CheckExact(text) || !PyUnicode_IS_COMPACT_ASCII(text))
        return NULL;
    *size = PyUnicode_GET_LENGTH(text);
    return (const char *)PyUnicode_DATA(text);
}

/* Whether an array has items of this width that stand where the processor expects them. */
static inline int has_width(const Py_buffer *view, Py_ssize_t width)
{
    return view->itemsize == width && (!view->len || (uintptr_t)view->buf % (size_t)width == 0);
}

/* Puts an object at the end of a list and lets it go: 0, or -1 with an error set, as for no object. */
static inline int append(PyObject *list, PyObject *item)
{
    int failed = !item || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

/* What the terms of a run of at most WORD_MAX letters and digits are made of: its parts that are longer than a letter, and
   the whole; how many they are. */
#define PIECES_MAX (WORD_MAX / 2 + 1)
size_t pieces_of_run(const char *run, size_t size, Piece *found);

/* The hash of a name, letter by letter; `0xFFFFFFFF` before the first. */
uint32_t hash_letters(uint32_t hash, const char *text, Py_ssize_t size, Py_ssize_t *letters);
static inline uint32_t hash_end(uint32_t hash, Py_ssize_t letters) { return !letters ? 0 : ~hash ? ~hash : 1; }

/* The letters from here on, at most eight, in one number. At least eight bytes can be read. */
extern uint64_t FIRST[9]; /* so many bytes of eight */

static inline uint64_t letters_at(const char *run, size_t size)
{
    uint64_t word;
    memcpy(&word, run, sizeof word);
    return word & FIRST[size < 8 ? size : 8]; /* without what stands behind the run */
}

/* A hash of letters, eight at a time. No step loses anything: up to eight letters the hash is as good as they are. */
static inline uint64_t hash_start(uint64_t seed, size_t size) { return seed ^ (size * 0x9e3779b97f4a7c15u); }

static inline uint64_t hash_step(uint64_t seed, uint64_t hash, uint64_t letters)
{
    hash = (hash ^ letters) * 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
    hash *= seed | 1;
    return hash ^ hash >> 29;
}

/* A shorter step for the second eight letters, and for those behind them: it loses nothing either. */
static inline uint64_t hash_on(uint64_t seed, uint64_t hash, uint64_t letters)
{
    hash = (hash ^ letters) * (seed << 1 | 1);
    return hash ^ hash >> 32;
}

/* The hash of letters from each of which on sixteen bytes can be read. Most words have up to sixteen, and all of those
   take the same way: how long a word is nobody can foresee. */
static inline uint64_t hash_run(uint64_t seed, const char *run, size_t size)
{
    uint64_t hash = hash_step(seed, hash_start(seed, size), letters_at(run, size));
    hash = hash_on(seed, hash, letters_at(run + 8, size > 8 ? size - 8 : 0));
    for (size_t at = 16; at < size; at += 8)
        hash = hash_on(seed, hash, letters_at(run + at, size - at));
    return hash;
}

/* Room for so many letters in all, which fewer than 2^32 can have; -1 without an error set. */
static inline int grow_letters(char **letters, size_t *room, size_t size)
{
    if (size <= *room)
        return 0;
    size_t larger = size * 2 + (1 << 16);
    char *moved = larger < UINT32_MAX ? PyMem_Realloc(*letters, larger) : NULL;
    if (!moved)
        return -1;
    *letters = moved;
    *room = larger;
    return 0;
}

/* Terms with their numbers. */
typedef struct {
    uint64_t hash;
    uint32_t start, size; /* of its letters */
} Term;

typedef struct {
    PyObject_HEAD
    uint64_t seed;
    Term *terms; /* by number */
    size_t used, terms_room;
    uint32_t *places; /* by hash: a number, counted from 1; 0 is free */
    size_t room;      /* a power of two, at least twice as many as are used */
    char *letters;    /* in UTF-8 */
    size_t letters_used, letters_room;
} Vocabulary;

extern PyTypeObject VOCABULARY;

static inline Vocabulary *as_vocabulary(PyObject *given)
{
    return Py_IS_TYPE(given, &VOCABULARY) ? (Vocabulary *)given : NULL;
}

/* The place of a term, or the free one where it belongs. */
static inline uint32_t *place_of_term(const Vocabulary *held, uint64_t hash, const char *letters, size_t size)
{
    for (uint64_t probe = hash;; probe++) {
        uint32_t *place = &held->places[probe & (held->room - 1)];
        const Term *term = &held->terms[*place - 1];
        if (!*place
            || (term->hash == hash && term->size == size
                && (size <= 8 || !memcmp(held->letters + term->start, letters, size))))
            return place;
    }
}

/* Gives a new term its number; -1 with an error set. */
int32_t add_term(Vocabulary *held, uint64_t hash, const char *letters, size_t size);

/* The number of a term, a new one if it has none; -1 with an error set. */
static inline int32_t give_number(Vocabulary *held, uint64_t hash, const char *letters, size_t size)
{
    uint32_t number = held->room ? *place_of_term(held, hash, letters, size) : 0;
    return number ? (int32_t)number - 1 : add_term(held, hash, letters, size);
}

/* The same without its hash; and its number, or -1. */
int32_t number_term(Vocabulary *held, const char *letters, size_t size);
int32_t number_of(const Vocabulary *held, const char *letters, size_t size);

/* What runs of letters and digits stand for that are not plain words. */
#define RUNS "toolcrib.runs"

typedef struct Runs Runs;

/* The vocabulary that a memo of runs was made for: both go by the hashes of one seed. */
Vocabulary *vocabulary_of(const Runs *held);

/* A run that somebody has met in a text, and where the memo has it, if it has. */
typedef struct {
    const char *run;
    size_t size;
    uint64_t hash; /* none: it is not to be had from the memo */
    int plain;     /* it is its own only term */
} Met;

/* Meets the runs of an ASCII text up to `stop`, behind which a stretch more can be read, and has their places fetched:
   where it ended, at the latest when there are so many. Plain are runs of lower-case letters with no more than `longest`
   of them. */
const char *meet_runs(const Runs *held, const char *at, const char *stop, size_t longest, Met *met, size_t *used,
                      size_t most);

/* The terms of a run that is not plain, by way of the memo: how many, and where their numbers are until the next call; -1
   with an error set, -2 if the memo has no room for the run. */
int terms_of_run(Runs *held, const Met *met, size_t longest, const int32_t **numbers);

/* A few short words to be looked for. */
#define WORDS "toolcrib.words"
#define WATCHED 64
#define WATCHED_CHARS 24

typedef struct {
    uint32_t sizes[1024]; /* by the first two letters, which lengths there are */
    uint8_t starts[32 << 8]; /* by the first two letters as `start_of` reads them, whether a word starts so */
    uint32_t single;         /* which letters stand alone */
    int used;
    struct {
        char letters[WATCHED_CHARS];
        int size;
    } words[WATCHED];
} Watched;

int is_one_of(const Watched *watched, const char *word, size_t size);

/* The rows of the `limit` best positive scores, ties at the edge included, and the scores, best first: two lists in a tuple. */
PyObject *best_rows(const float *scores, Py_ssize_t size, Py_ssize_t limit);

/* The places of marks, and how many there are; none for None: 0, or -1 with an error set. */
int read_marks(PyObject *given, const char **marks, size_t *places);

/* What Python calls. */
#define FAST(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)
#define SINGLE(name) PyObject *name(PyObject *module, PyObject *given)

FAST(keep);
FAST(take);
FAST(same);
FAST(terms);
FAST(halves);
FAST(possible);
FAST(forms);
FAST(respelt);
FAST(suspects);
FAST(inside);
FAST(signature);
FAST(card);
FAST(analyse);
FAST(segment);
FAST(common_ends);
FAST(canonical);
FAST(digest);
FAST(read_tool);
FAST(postings);
FAST(add);
FAST(merge);
FAST(add_merged);
FAST(best);
FAST(leading);
FAST(ways);
FAST(matrix);
FAST(multiplied);
FAST(normed);
FAST(looked);
FAST(near);
FAST(read_call);
FAST(read_answer);
FAST(shape);
FAST(body);
SINGLE(family);
SINGLE(name_hash);
SINGLE(name_hashes);
SINGLE(run_count);
SINGLE(runs);
SINGLE(words);
SINGLE(vocabulary);
SINGLE(plain);
SINGLE(items);
SINGLE(lines);

#endif

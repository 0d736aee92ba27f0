/* What happens to states between the products: `retrieval.attention` says it in numpy, step by step.

   Sums are of whole numbers, which are the same in any order, but for those of `normed`, which has an order of its own. */

#include "wide.h"

#define HEADS 12
#define ACROSS 32 /* numbers of a head */
#define WIDTH (HEADS * ACROSS)
#define MOST_PIECES 256
#define ROWS 4   /* pieces that look at once */
#define LANES 16 /* the pieces that they look at are padded to a multiple of this */

#ifdef WIDE_PROCESSOR

/* The sum of a row, half by half: 384 numbers, 192, 96, 48, three times 16, 8, 4, 2, 1. */
WITH_AVX2 static IN_PLACE float folded(const float *row)
{
    __m256 part[6];
    for (int at = 0; at < 6; at++) {
        __m256 four[4];
        for (int each = 0; each < 4; each++) {
            const float *start = row + 8 * (at + 6 * each);
            four[each] = _mm256_add_ps(_mm256_loadu_ps(start), _mm256_loadu_ps(start + WIDTH / 2));
        }
        part[at] = _mm256_add_ps(_mm256_add_ps(four[0], four[2]), _mm256_add_ps(four[1], four[3]));
    }
    const __m256 low = _mm256_add_ps(_mm256_add_ps(part[0], part[2]), part[4]);
    const __m256 high = _mm256_add_ps(_mm256_add_ps(part[1], part[3]), part[5]);
    const __m256 eight = _mm256_add_ps(low, high);
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

WITH_AVX2 static void norm(const float *states, const float *beside, size_t rows, const float *weight, const float *shift,
                           float *out)
{
    float squares[WIDTH];
    for (size_t row = 0; row < rows; row++, states += WIDTH, out += WIDTH) {
        for (int at = 0; at < WIDTH; at += 8) {
            const __m256 state = _mm256_loadu_ps(states + at);
            const __m256 both = beside ? _mm256_add_ps(state, _mm256_loadu_ps(beside + row * WIDTH + (size_t)at)) : state;
            _mm256_storeu_ps(out + at, both);
        }
        const __m256 mean = _mm256_set1_ps(folded(out) / WIDTH);
        for (int at = 0; at < WIDTH; at += 8) {
            const __m256 away = _mm256_sub_ps(_mm256_loadu_ps(out + at), mean);
            _mm256_storeu_ps(out + at, away);
            _mm256_storeu_ps(squares + at, _mm256_mul_ps(away, away));
        }
        const __m256 spread = _mm256_sqrt_ps(_mm256_set1_ps(folded(squares) / WIDTH + 1e-12f));
        for (int at = 0; at < WIDTH; at += 8) {
            const __m256 even = _mm256_mul_ps(_mm256_div_ps(_mm256_loadu_ps(out + at), spread), _mm256_loadu_ps(weight + at));
            _mm256_storeu_ps(out + at, _mm256_add_ps(even, _mm256_loadu_ps(shift + at)));
        }
    }
}

/* What the pieces of a text ask, offer and hold, as far as one head sees it, in whole numbers. */
typedef struct {
    size_t pieces, padded;
    int16_t *asks;            /* by piece, by number */
    int32_t *offers, *holds;  /* two numbers by piece; two pieces by number: in 16 bits each */
    float *asks_worth, *offers_worth, holds_worth[ACROSS];
    float *across[2];         /* by piece that is looked at: what pieces of the first and of the second text add */
    float *likeness;          /* of a few pieces */
    int16_t *shares;
} View;

WITH_AVX2 static IN_PLACE float make_whole(const float *values, int16_t *whole)
{
    const float largest = largest_of(values, ACROSS);
    const __m256 times = _mm256_set1_ps(511.0f / largest);
    _mm256_storeu_si256((__m256i *)(void *)whole, whole_of(values, times));
    _mm256_storeu_si256((__m256i *)(void *)(whole + 16), whole_of(values + 16, times));
    return largest / 511.0f;
}

WITH_AVX2 static void view_head(View *view, const float *mixed)
{
    const float root = (float)(1.44269504 * 0.17677669); /* powers of two that one of e is worth, by the root of ACROSS */
    __m256 largest[4], times[4];
    int16_t whole[ACROSS];
    for (int part = 0; part < 4; part++)
        largest[part] = _mm256_set1_ps(LEAST);
    for (size_t piece = 0; piece < view->pieces; piece++) {
        const float *own = mixed + piece * 3 * WIDTH;
        view->asks_worth[piece] = make_whole(own, view->asks + piece * ACROSS) * root;
        view->offers_worth[piece] = make_whole(own + WIDTH, whole);
        for (size_t two = 0; two < ACROSS / 2; two++)
            memcpy(view->offers + two * view->padded + piece, whole + 2 * two, 4);
        for (int part = 0; part < 4; part++)
            largest[part] = _mm256_max_ps(largest[part], size_of(own + 2 * WIDTH + 8 * part));
    }
    for (int part = 0; part < 4; part++) {
        const __m256 worth = _mm256_div_ps(largest[part], _mm256_set1_ps(1023.0f));
        times[part] = _mm256_div_ps(_mm256_set1_ps(1023.0f), largest[part]);
        _mm256_storeu_ps(view->holds_worth + 8 * part, _mm256_div_ps(worth, _mm256_set1_ps(8192.0f)));
    }
    for (size_t piece = 0; piece < view->pieces; piece += 2) {
        const float *one = mixed + piece * 3 * WIDTH + 2 * WIDTH;
        for (int part = 0; part < 4; part++) {
            const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(one + 8 * part), times[part]));
            __m256i high = _mm256_setzero_si256();
            if (piece + 1 < view->pieces)
                high = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(one + 3 * WIDTH + 8 * part), times[part]));
            _mm256_storeu_si256((__m256i *)(void *)(view->holds + piece / 2 * ACROSS + 8 * (size_t)part),
                                _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa));
        }
    }
}

WITH_AVX2 static IN_PLACE __m256i two_of(const int16_t *whole)
{
    int32_t two;
    memcpy(&two, whole, sizeof two);
    return _mm256_set1_epi32(two);
}

/* How like what a few pieces ask is to what all offer. */
WITH_AVX2 static void compare(const View *view, size_t first, size_t here, int two_texts)
{
    for (size_t start = 0; start < view->padded; start += LANES) {
        __m256i found[ROWS][2];
#pragma GCC unroll 4
        for (int row = 0; row < ROWS; row++)
            found[row][0] = found[row][1] = _mm256_setzero_si256();
        for (size_t two = 0; two < ACROSS / 2; two++) {
            const int32_t *offers = view->offers + two * view->padded + start;
            const __m256i one = _mm256_loadu_si256((const __m256i *)(const void *)offers);
            const __m256i other = _mm256_loadu_si256((const __m256i *)(const void *)(offers + 8));
#pragma GCC unroll 4
            for (int row = 0; row < ROWS; row++) {
                const __m256i asked = two_of(view->asks + (first + (size_t)row) * ACROSS + 2 * two);
                found[row][0] = _mm256_add_epi32(found[row][0], _mm256_madd_epi16(one, asked));
                found[row][1] = _mm256_add_epi32(found[row][1], _mm256_madd_epi16(other, asked));
            }
        }
#pragma GCC unroll 4
        for (int row = 0; row < ROWS; row++)
            for (size_t half = 0; half < 2; half++) {
                const size_t at = start + 8 * half, piece = first + (size_t)row;
                __m256 like = _mm256_cvtepi32_ps(found[row][half]);
                like = _mm256_mul_ps(like, _mm256_set1_ps(view->asks_worth[piece]));
                like = _mm256_mul_ps(like, _mm256_loadu_ps(view->offers_worth + at));
                if (two_texts)
                    like = _mm256_add_ps(like, _mm256_loadu_ps(view->across[piece >= here] + at));
                _mm256_storeu_ps(view->likeness + (size_t)row * view->padded + at, like);
            }
    }
}

/* How much of what a piece sees is each piece, in whole numbers, from how like they are; the padding is nothing. */
WITH_AVX2 static void share(float *likeness, size_t pieces, size_t padded, int16_t *shares)
{
    for (size_t at = pieces; at < padded; at++)
        likeness[at] = -FLT_MAX;
    __m256 most = _mm256_loadu_ps(likeness);
    for (size_t at = 8; at < padded; at += 8)
        most = _mm256_max_ps(most, _mm256_loadu_ps(likeness + at));
    most = _mm256_set1_ps(largest_in(most));
    __m256i total = _mm256_setzero_si256();
    for (size_t at = 0; at < padded; at += 8) {
        const __m256 like = raise_two_8(_mm256_sub_ps(_mm256_loadu_ps(likeness + at), most));
        const __m256i whole = _mm256_cvtps_epi32(_mm256_mul_ps(like, _mm256_set1_ps(65536.0f)));
        _mm256_storeu_ps(likeness + at, _mm256_cvtepi32_ps(whole));
        total = _mm256_add_epi32(total, whole);
    }
    int32_t each[8], all = 0;
    _mm256_storeu_si256((__m256i *)(void *)each, total);
    for (int at = 0; at < 8; at++)
        all += each[at];
    const __m256 times = _mm256_set1_ps(8192.0f / (float)all);
    for (size_t at = 0; at < padded; at += 16)
        _mm256_storeu_si256((__m256i *)(void *)(shares + at), whole_of(likeness + at, times));
}

/* What two pieces see. */
WITH_AVX2 static void see(const View *view, const int16_t *shares, const int rows, float *out)
{
    __m256i found[2][4];
    for (int row = 0; row < 2; row++)
        for (int part = 0; part < 4; part++)
            found[row][part] = _mm256_setzero_si256();
    for (size_t piece = 0; piece < view->pieces; piece += 2) {
        const int32_t *holds = view->holds + piece / 2 * ACROSS;
        const __m256i one = two_of(shares + piece), other = two_of(shares + view->padded + piece);
#pragma GCC unroll 4
        for (int part = 0; part < 4; part++) {
            const __m256i held = _mm256_loadu_si256((const __m256i *)(const void *)(holds + 8 * part));
            found[0][part] = _mm256_add_epi32(found[0][part], _mm256_madd_epi16(held, one));
            found[1][part] = _mm256_add_epi32(found[1][part], _mm256_madd_epi16(held, other));
        }
    }
    for (int row = 0; row < rows; row++)
        for (int part = 0; part < 4; part++) {
            const __m256 worth = _mm256_loadu_ps(view->holds_worth + 8 * part);
            _mm256_storeu_ps(out + row * WIDTH + 8 * part, _mm256_mul_ps(_mm256_cvtepi32_ps(found[row][part]), worth));
        }
}

static size_t up(size_t number, size_t unit)
{
    return (number + unit - 1) / unit * unit;
}

#define VIEW_BYTES (MOST_PIECES * (ACROSS * (2 + 2 + 2) + 4 * (4 + ROWS) + 2 * ROWS) + 4096)

/* Room for one head; what is not written is nothing. */
static void arrange_view(View *view, char *room)
{
    const size_t rows = up(view->pieces, ROWS), padded = view->padded = up(view->pieces, LANES);
    char *start = room;
    view->asks = (int16_t *)(void *)room, room += rows * ACROSS * 2;
    view->offers = (int32_t *)(void *)room, room += ACROSS / 2 * padded * 4;
    view->holds = (int32_t *)(void *)room, room += padded / 2 * ACROSS * 4;
    view->asks_worth = (float *)(void *)room, room += padded * 4;
    view->offers_worth = (float *)(void *)room, room += padded * 4;
    for (int text = 0; text < 2; text++)
        view->across[text] = (float *)(void *)room, room += padded * 4;
    view->likeness = (float *)(void *)room, room += ROWS * padded * 4;
    view->shares = (int16_t *)(void *)room, room += ROWS * padded * 2;
    memset(start, 0, (size_t)(room - start));
}

static void look(const float *mixed, size_t pieces, size_t here, const float *across, float *out, char *room)
{
    View view = {.pieces = pieces};
    arrange_view(&view, room);
    for (size_t head = 0; head < HEADS; head++) {
        view_head(&view, mixed + head * ACROSS);
        for (size_t piece = 0; across && piece < pieces; piece++)
            view.across[piece < here][piece] = across[head] * 1.44269504f;
        for (size_t first = 0; first < pieces; first += ROWS) {
            const size_t rows = pieces - first < ROWS ? pieces - first : ROWS;
            compare(&view, first, here, across != NULL);
            for (size_t row = 0; row < rows; row++)
                share(view.likeness + row * view.padded, pieces, view.padded, view.shares + row * view.padded);
            for (size_t row = 0; row < rows; row += 2)
                see(&view, view.shares + row * view.padded, rows - row < 2 ? 1 : 2,
                    out + (first + row) * WIDTH + head * ACROSS);
        }
    }
}

#else

#define VIEW_BYTES 1

static int has_avx2(void)
{
    return 0;
}

static void norm(const float *states, const float *beside, size_t rows, const float *weight, const float *shift, float *out)
{
    (void)states, (void)beside, (void)rows, (void)weight, (void)shift, (void)out; /* nobody comes here */
}

static void look(const float *mixed, size_t pieces, size_t here, const float *across, float *out, char *room)
{
    (void)mixed, (void)pieces, (void)here, (void)across, (void)out, (void)room;
}

#endif

static int lacks_way(void)
{
    if (!has_avx2())
        PyErr_SetString(PyExc_ValueError, "this processor has no way to do this");
    return !has_avx2();
}

/* normed(states, beside, weight, shift, out): the states, with others beside them or None, brought to mean 0 and deviation
   1, weighed and shifted. */
FAST(normed)
{
    static const Py_ssize_t WIDTHS[] = {4, 4, 4, 4, 4};
    Py_buffer views[5] = {{0}};
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "normed takes states, others or None, a weight, a shift and room");
    const int alone = args[1] == Py_None;
    PyObject *arrays[] = {args[0], alone ? args[0] : args[1], args[2], args[3], args[4]};
    if (!lacks_way() && view_all(arrays, views, WIDTHS, 5, 4) == 0) {
        const Py_ssize_t size = views[0].len;
        if (size % (4 * WIDTH) || views[1].len != size || views[4].len != size || views[2].len != 4 * WIDTH
            || views[3].len != 4 * WIDTH)
            PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        else
            norm(views[0].buf, alone ? NULL : views[1].buf, (size_t)size / (4 * WIDTH), views[2].buf, views[3].buf,
                 views[4].buf);
    }
    let_go(views, 5);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* looked(mixed, here, across, out): what each piece sees of all, from what they ask, offer and hold, side by side. So many
   of them are of the first of two texts; `across` is what looking at the other one adds, by head, or None. */
FAST(looked)
{
    static const Py_ssize_t WIDTHS[] = {4, 4, 4};
    Py_buffer views[3] = {{0}};
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "looked takes what is seen, a number, an array or None, and room");
    const int alone = args[2] == Py_None;
    PyObject *arrays[] = {args[0], alone ? args[0] : args[2], args[3]};
    const size_t here = PyLong_AsSize_t(args[1]);
    char *room = NULL;
    if (!PyErr_Occurred() && !lacks_way() && view_all(arrays, views, WIDTHS, 3, 2) == 0) {
        const size_t pieces = (size_t)views[2].len / (4 * WIDTH);
        if ((size_t)views[2].len != pieces * 4 * WIDTH || (size_t)views[0].len != pieces * 12 * WIDTH
            || pieces > MOST_PIECES || here > pieces || (!alone && views[1].len != 4 * HEADS))
            PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        else if (!(room = PyMem_Malloc(VIEW_BYTES)))
            PyErr_NoMemory();
        else {
            Py_BEGIN_ALLOW_THREADS
            look(views[0].buf, pieces, here, alone ? NULL : views[1].buf, views[2].buf, room);
            Py_END_ALLOW_THREADS
        }
    }
    PyMem_Free(room);
    let_go(views, 3);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

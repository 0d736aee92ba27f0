/* Products of whole numbers, as `retrieval.products` makes them: of states with a matrix, and of a vector with many.

   Sums of whole numbers are the same in any order, so only what is done with floats follows numpy step by step. The
   processor is asked at run time what it can do; one that can do neither of the two ways below is left to numpy. */

#include "wide.h"

#define MATRIX "toolcrib.matrix"
#define MOST_SUMMED 1024 /* products of two bytes that are summed at a time: a float holds the sum exactly */
#define TILE 64          /* columns that are multiplied one after the other */
#define LINE 64          /* bytes that the memory hands over at once */
#define MOST_BYTE 127.0f
#define MOST_WHOLE 16256.0f

enum { NO_WAY, AVX2, VNNI, WAYS };

static const char *const NAMES[WAYS] = {"", "avx2", "vnni"};

typedef struct {
    size_t rows, columns, stretch, tiles;
    int way;
    void *room;    /* what the arrays below stand in */
    int8_t *codes; /* by tile, by a few rows (DEPTH), by column */
    int32_t *over; /* by stretch, by column: what the sums are too great by */
    float *scales, *shift;
} Matrix;

/* States in whole numbers: bytes that are greater by 128, or pairs of bytes. */
#define STATE_BYTES(way) ((way) == VNNI ? sizeof(uint8_t) : sizeof(int16_t))
#define DEPTH(way) ((size_t)((way) == VNNI ? 4 : 2)) /* rows that stand together */

#ifdef WIDE_PROCESSOR

static int can(int way)
{
    if (way == VNNI)
        return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    return way == AVX2 && has_avx2();
}

/* One stretch of states in whole numbers; what one of them is worth. */
WITH_AVX2 static float make_whole(const float *states, size_t size, void *made, int way)
{
    const float largest = largest_of(states, size);
    const __m256 times = _mm256_set1_ps(MOST_BYTE / largest);
    for (size_t at = 0; at < size; at += 16) {
        const __m256i whole = whole_of(states + at, times);
        if (way == AVX2) {
            _mm256_storeu_si256((__m256i *)(void *)((int16_t *)made + at), whole);
            continue;
        }
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        _mm_storeu_si128((__m128i *)(void *)((uint8_t *)made + at), _mm_xor_si128(bytes, _mm_set1_epi8((char)0x80)));
    }
    return largest / MOST_BYTE;
}

/* Where a few rows of states meet a tile of the matrix. */
typedef struct {
    const char *states;
    const float *worth; /* by row, by stretch */
    float *out;
    size_t tile, held; /* columns of the tile that the matrix has */
    int bent;          /* whether what is handed over is bent */
} Meeting;

/* Hands over sums of a row, from a column of the tile on. */
static IN_PLACE void hand_over(const Matrix *matrix, const Meeting *at, size_t row, size_t first, size_t columns,
                               const float *sums)
{
    const size_t held = at->held - first < columns ? at->held - first : columns;
    memcpy(at->out + row * matrix->columns + first, sums, held * sizeof(float));
}

#define VNNI_ROWS 6
#define AVX2_ROWS 4

/* What the sums of one stretch add to the floats of a few rows; after the last one these are handed over. */
WITH_VNNI static APART void vnni_settle(const Matrix *matrix, const Meeting *at, size_t stretch, int rows,
                                        int32_t (*found)[TILE], float (*sums)[TILE])
{
    const size_t stretches = matrix->rows / matrix->stretch, column = at->tile * TILE;
    const int32_t *over = matrix->over + stretch * matrix->tiles * TILE + column;
    for (int part = 0; part < 4; part++) {
        const __m512i less = _mm512_load_si512(over + part * 16);
        const __m512 scales = _mm512_load_ps(matrix->scales + column + part * 16);
        const __m512 shift = _mm512_load_ps(matrix->shift + column + part * 16);
        for (int row = 0; row < rows; row++) {
            const __m512 worth = _mm512_set1_ps(at->worth[(size_t)row * stretches + stretch]);
            __m512 sum = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_load_si512(found[row] + part * 16), less)), worth);
            if (stretch)
                sum = _mm512_add_ps(_mm512_loadu_ps(sums[row] + part * 16), sum);
            if (stretch + 1 == stretches)
                sum = _mm512_add_ps(_mm512_mul_ps(sum, scales), shift);
            if (stretch + 1 == stretches && at->bent)
                sum = bend_16(sum);
            _mm512_storeu_ps(sums[row] + part * 16, sum);
        }
    }
    for (int row = 0; stretch + 1 == stretches && row < rows; row++)
        hand_over(matrix, at, (size_t)row, 0, TILE, sums[row]);
}

WITH_VNNI static IN_PLACE void vnni_rows(const Matrix *matrix, const Meeting *at, const int rows)
{
    const int8_t *codes = matrix->codes + at->tile * TILE * matrix->rows;
    const size_t ahead = TILE * matrix->rows; /* the next tile comes meanwhile */
    _Alignas(LINE) int32_t whole[VNNI_ROWS][TILE];
    _Alignas(LINE) float sums[VNNI_ROWS][TILE];
    for (size_t start = 0; start < matrix->rows; start += matrix->stretch) {
        __m512i found[VNNI_ROWS][4];
#pragma GCC unroll 6
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int part = 0; part < 4; part++)
                found[row][part] = _mm512_setzero_si512();
        for (size_t depth = start; depth < start + matrix->stretch; depth += 4, codes += 4 * TILE) {
            __m512i weights[4];
#pragma GCC unroll 4
            for (int part = 0; part < 4; part++) {
                weights[part] = _mm512_load_si512(codes + part * LINE);
                _mm_prefetch((const char *)codes + ahead + part * LINE, _MM_HINT_T1);
            }
#pragma GCC unroll 6
            for (int row = 0; row < rows; row++) {
                int32_t four;
                memcpy(&four, at->states + (size_t)row * matrix->rows + depth, sizeof four);
                const __m512i same = _mm512_set1_epi32(four);
#pragma GCC unroll 4
                for (int part = 0; part < 4; part++)
                    found[row][part] = _mm512_dpbusd_epi32(found[row][part], same, weights[part]);
            }
        }
#pragma GCC unroll 6
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
            for (int part = 0; part < 4; part++)
                _mm512_store_si512(whole[row] + part * 16, found[row][part]);
        vnni_settle(matrix, at, start / matrix->stretch, rows, whole, sums);
    }
}

WITH_AVX2 static IN_PLACE void avx2_settle(const Matrix *matrix, const Meeting *at, size_t stretch, const int rows,
                                           size_t first, __m256i found[AVX2_ROWS][2], float sums[AVX2_ROWS][16])
{
    const size_t stretches = matrix->rows / matrix->stretch, column = at->tile * TILE + first;
#pragma GCC unroll 2
    for (int part = 0; part < 2; part++) {
        const __m256 scales = _mm256_loadu_ps(matrix->scales + column + part * 8);
        const __m256 shift = _mm256_loadu_ps(matrix->shift + column + part * 8);
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++) {
            const __m256 worth = _mm256_set1_ps(at->worth[(size_t)row * stretches + stretch]);
            __m256 sum = _mm256_mul_ps(_mm256_cvtepi32_ps(found[row][part]), worth);
            if (stretch)
                sum = _mm256_add_ps(_mm256_loadu_ps(sums[row] + part * 8), sum);
            if (stretch + 1 == stretches)
                sum = _mm256_add_ps(_mm256_mul_ps(sum, scales), shift);
            if (stretch + 1 == stretches && at->bent)
                sum = bend_8(sum);
            _mm256_storeu_ps(sums[row] + part * 8, sum);
        }
    }
    for (int row = 0; stretch + 1 == stretches && at->held > first && row < rows; row++)
        hand_over(matrix, at, (size_t)row, first, 16, sums[row]);
}

WITH_AVX2 static IN_PLACE void avx2_rows(const Matrix *matrix, const Meeting *at, const int rows)
{
    for (size_t first = 0; first < TILE; first += 16) {
        const int8_t *codes = matrix->codes + at->tile * TILE * matrix->rows + first * 2;
        float sums[AVX2_ROWS][16];
        for (size_t start = 0; start < matrix->rows; start += matrix->stretch) {
            __m256i found[AVX2_ROWS][2];
#pragma GCC unroll 4
            for (int row = 0; row < rows; row++)
                found[row][0] = found[row][1] = _mm256_setzero_si256();
            for (size_t depth = start; depth < start + matrix->stretch; depth += 2, codes += 2 * TILE) {
                const __m256i one = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)(const void *)codes));
                const __m256i two = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)(const void *)(codes + 16)));
#pragma GCC unroll 4
                for (int row = 0; row < rows; row++) {
                    int32_t pair;
                    memcpy(&pair, at->states + 2 * ((size_t)row * matrix->rows + depth), sizeof pair);
                    const __m256i same = _mm256_set1_epi32(pair);
                    found[row][0] = _mm256_add_epi32(found[row][0], _mm256_madd_epi16(one, same));
                    found[row][1] = _mm256_add_epi32(found[row][1], _mm256_madd_epi16(two, same));
                }
            }
            avx2_settle(matrix, at, start / matrix->stretch, rows, first, found, sums);
        }
    }
}

WITH_VNNI static void vnni_meet(const Matrix *matrix, const Meeting *at, size_t rows)
{
    switch (rows) {
    case 1: vnni_rows(matrix, at, 1); return;
    case 2: vnni_rows(matrix, at, 2); return;
    case 3: vnni_rows(matrix, at, 3); return;
    case 4: vnni_rows(matrix, at, 4); return;
    case 5: vnni_rows(matrix, at, 5); return;
    default: vnni_rows(matrix, at, VNNI_ROWS); return;
    }
}

WITH_AVX2 static void avx2_meet(const Matrix *matrix, const Meeting *at, size_t rows)
{
    switch (rows) {
    case 1: avx2_rows(matrix, at, 1); return;
    case 2: avx2_rows(matrix, at, 2); return;
    case 3: avx2_rows(matrix, at, 3); return;
    default: avx2_rows(matrix, at, AVX2_ROWS); return;
    }
}

/* Tile by tile all rows with each: a tile is fetched from memory once. `worth` and `whole` are room for the states. */
static void multiply(const Matrix *matrix, const float *states, size_t rows, int bent, float *worth, char *whole, float *out)
{
    const size_t stretches = matrix->rows / matrix->stretch, wide = STATE_BYTES(matrix->way);
    const size_t most = matrix->way == VNNI ? VNNI_ROWS : AVX2_ROWS;
    for (size_t at = 0; at < rows * stretches; at++)
        worth[at] = make_whole(states + at * matrix->stretch, matrix->stretch, whole + at * matrix->stretch * wide,
                               matrix->way);
    for (size_t tile = 0; tile < matrix->tiles; tile++) {
        size_t left = matrix->columns - tile * TILE, each;
        for (size_t row = 0; row < rows; row += each) {
            const Meeting at = {whole + row * matrix->rows * wide, worth + row * stretches,
                                out + row * matrix->columns + tile * TILE, tile, left < TILE ? left : TILE, bent};
            each = rows - row < most ? rows - row : most;
            (matrix->way == VNNI ? vnni_meet : avx2_meet)(matrix, &at, each);
        }
    }
}

WITH_VNNI static void vnni_near(const int8_t *codes, size_t rows, size_t size, const int16_t *whole, int32_t *sums)
{
    for (size_t row = 0; row < rows; row++, codes += size) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t at = 0; at < size; at += 32) {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(codes + at));
            sum = _mm512_dpwssd_epi32(sum, _mm512_cvtepi8_epi16(bytes), _mm512_loadu_si512(whole + at));
        }
        sums[row] = _mm512_reduce_add_epi32(sum);
    }
}

WITH_AVX2 static void avx2_near(const int8_t *codes, size_t rows, size_t size, const int16_t *whole, int32_t *sums)
{
    for (size_t row = 0; row < rows; row++, codes += size) {
        __m256i sum = _mm256_setzero_si256();
        for (size_t at = 0; at < size; at += 16) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(codes + at));
            const __m256i others = _mm256_loadu_si256((const __m256i *)(const void *)(whole + at));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepi8_epi16(bytes), others));
        }
        uint32_t each[8], all = 0;
        _mm256_storeu_si256((__m256i *)(void *)each, sum);
        for (int at = 0; at < 8; at++)
            all += each[at];
        sums[row] = (int32_t)all;
    }
}

/* The vector is read as numbers of 16 bits: a sum of so many products fits into 32. */
WITH_AVX2 static void measure(int way, const float *vector, size_t size, const int8_t *codes, const float *worth, size_t rows,
                              float *out)
{
    enum { FEW = 256 }; /* rows whose sums become floats together */
    int16_t whole[MOST_SUMMED];
    int32_t sums[FEW];
    const float largest = largest_of(vector, size), unit = largest / MOST_WHOLE;
    const __m256 times = _mm256_set1_ps(MOST_WHOLE / largest);
    for (size_t at = 0; at < size; at += 16)
        _mm256_storeu_si256((__m256i *)(void *)(whole + at), whole_of(vector + at, times));
    for (size_t start = 0; start < rows; start += FEW) {
        const size_t each = rows - start < FEW ? rows - start : FEW;
        (way == VNNI ? vnni_near : avx2_near)(codes + start * size, each, size, whole, sums);
        for (size_t at = 0; at < each; at++)
            out[start + at] = (float)sums[at] * worth[start + at] * unit;
    }
}

#else

static int can(int way)
{
    (void)way;
    return 0;
}

static void multiply(const Matrix *matrix, const float *states, size_t rows, int bent, float *worth, char *whole, float *out)
{
    (void)matrix, (void)states, (void)rows, (void)bent, (void)worth, (void)whole, (void)out; /* nobody has a matrix here */
}

static void measure(int way, const float *vector, size_t size, const int8_t *codes, const float *worth, size_t rows,
                    float *out)
{
    (void)way, (void)vector, (void)size, (void)codes, (void)worth, (void)rows, (void)out;
}

#endif

/* ways() -> the names of the ways in which this processor multiplies, the fastest first. */
FAST(ways)
{
    PyObject *names = PyList_New(0);
    for (int way = WAYS - 1; names && way > NO_WAY; way--)
        if (can(way) && append(names, PyUnicode_FromString(NAMES[way])) < 0)
            Py_CLEAR(names);
    return names;
}

/* The way of a name; NO_WAY, with an error set, if this processor does not have it. */
static int way_of(PyObject *name)
{
    for (int way = NO_WAY + 1; PyUnicode_Check(name) && way < WAYS; way++)
        if (!PyUnicode_CompareWithASCIIString(name, NAMES[way]) && can(way))
            return way;
    PyErr_SetString(PyExc_ValueError, "this processor has no such way to multiply");
    return NO_WAY;
}

int view_all(PyObject *const *arrays, Py_buffer *views, const Py_ssize_t *widths, int number, int written)
{
    for (int which = 0; which < number; which++) {
        int flags = which == written ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
        if (PyObject_GetBuffer(arrays[which], &views[which], flags) < 0)
            return -1;
        if (!has_width(&views[which], widths[which])) {
            PyErr_Format(PyExc_TypeError, "array %d has items of another size or place", which);
            return -1;
        }
    }
    return 0;
}

void let_go(Py_buffer *views, int number)
{
    for (int which = 0; which < number; which++)
        if (views[which].obj)
            PyBuffer_Release(&views[which]);
}

static void free_matrix(PyObject *capsule)
{
    Matrix *matrix = PyCapsule_GetPointer(capsule, MATRIX);
    if (matrix) {
        PyMem_Free(matrix->room);
        PyMem_Free(matrix);
    }
}

/* Puts the numbers of a matrix where they are multiplied: 0, or -1 with an error set. */
static int arrange(Matrix *matrix, const int8_t *codes, const float *scales, const float *shift)
{
    const size_t padded = matrix->tiles * TILE, stretches = matrix->rows / matrix->stretch;
    const size_t depth = DEPTH(matrix->way), bytes = padded * matrix->rows, sums = padded * stretches * sizeof(int32_t);
    matrix->room = PyMem_Calloc(1, bytes + sums + 2 * padded * sizeof(float) + LINE);
    if (!matrix->room) {
        PyErr_NoMemory();
        return -1;
    }
    char *start = (char *)(((uintptr_t)matrix->room + LINE - 1) / LINE * LINE);
    matrix->codes = (int8_t *)start;
    matrix->over = (int32_t *)(start + bytes);
    matrix->scales = (float *)(start + bytes + sums);
    matrix->shift = matrix->scales + padded;
    memcpy(matrix->scales, scales, matrix->columns * sizeof(float));
    memcpy(matrix->shift, shift, matrix->columns * sizeof(float));
    for (size_t row = 0; row < matrix->rows; row++, codes += matrix->columns) {
        int32_t *over = matrix->over + row / matrix->stretch * padded;
        for (size_t column = 0; column < matrix->columns; column++) {
            matrix->codes[column / TILE * TILE * matrix->rows + row / depth * depth * TILE + column % TILE * depth
                          + row % depth] = codes[column];
            over[column] += matrix->way == VNNI ? 128 * codes[column] : 0;
        }
    }
    return 0;
}

/* matrix(way, stretch, codes, scales, shift) -> a matrix of whole numbers, row by row, with a scale and a shift for each
   column. So many rows at a time meet states of one scale. */
FAST(matrix)
{
    static const Py_ssize_t WIDTHS[] = {1, 4, 4};
    Py_buffer views[3] = {{0}};
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "matrix takes a way, a stretch and three arrays");
    int way = way_of(args[0]);
    size_t stretch = way ? PyLong_AsSize_t(args[1]) : 0;
    Matrix *made = NULL;
    PyObject *capsule = NULL;
    if (PyErr_Occurred() || view_all(args + 2, views, WIDTHS, 3, -1) < 0)
        goto done;
    size_t columns = (size_t)views[1].len / 4, rows = columns ? (size_t)views[0].len / columns : 0;
    if (!rows || (size_t)views[0].len != rows * columns || views[2].len != views[1].len || !stretch
        || stretch > MOST_SUMMED || stretch % 32 || rows % stretch || rows > INT32_MAX || columns > INT32_MAX - TILE) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        goto done;
    }
    made = PyMem_Calloc(1, sizeof(Matrix));
    if (!made) {
        PyErr_NoMemory();
        goto done;
    }
    made->rows = rows, made->columns = columns, made->stretch = stretch, made->way = way;
    made->tiles = (columns + TILE - 1) / TILE;
    if (arrange(made, views[0].buf, views[1].buf, views[2].buf) == 0)
        capsule = PyCapsule_New(made, MATRIX, free_matrix);
    if (!capsule) {
        PyMem_Free(made->room);
        PyMem_Free(made);
    }
done:
    let_go(views, 3);
    return capsule;
}

/* multiplied(matrix, states, bent, out): the product of every row of states with the matrix, bent if so. */
FAST(multiplied)
{
    static const Py_ssize_t WIDTHS[] = {4, 4};
    Py_buffer views[2] = {{0}};
    Matrix *held = count == 4 ? PyCapsule_GetPointer(args[0], MATRIX) : NULL;
    if (!held)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "multiplied takes a matrix, states, a flag and room");
    const int bent = PyObject_IsTrue(args[2]);
    PyObject *arrays[] = {args[1], args[3]};
    float *worth = NULL;
    if (bent >= 0 && view_all(arrays, views, WIDTHS, 2, 1) == 0) {
        size_t rows = (size_t)views[0].len / 4 / held->rows, stretches = held->rows / held->stretch;
        if ((size_t)views[0].len != rows * held->rows * 4 || (size_t)views[1].len / 4 / held->columns != rows
            || (size_t)views[1].len != rows * held->columns * 4)
            PyErr_SetString(PyExc_ValueError, "states or room are not those of this matrix");
        else if (!(worth = PyMem_Malloc(rows * (stretches * sizeof(float) + held->rows * STATE_BYTES(held->way)) + 1)))
            PyErr_NoMemory();
        else {
            /* Tools are read in the background: whoever waits for the interpreter gets it meanwhile. */
            Py_BEGIN_ALLOW_THREADS
            multiply(held, views[0].buf, rows, bent, worth, (char *)(worth + rows * stretches), views[1].buf);
            Py_END_ALLOW_THREADS
        }
    }
    PyMem_Free(worth);
    let_go(views, 2);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* near(way, vector, codes, worth, out): the product of a vector with many vectors in whole numbers, each times its worth. */
FAST(near)
{
    static const Py_ssize_t WIDTHS[] = {4, 1, 4, 4};
    Py_buffer views[4] = {{0}};
    if (count != 5)
        return PyErr_Format(PyExc_TypeError, "near takes a way, a vector, whole numbers, what they are worth and room");
    int way = way_of(args[0]);
    if (way && view_all(args + 1, views, WIDTHS, 4, 3) == 0) {
        size_t size = (size_t)views[0].len / 4, rows = (size_t)views[2].len / 4;
        if (!size || size > MOST_SUMMED || size % 32 || (size_t)views[1].len / size != rows
            || (size_t)views[1].len != rows * size || views[3].len != views[2].len)
            PyErr_SetString(PyExc_ValueError, "the arrays do not belong together");
        else
            measure(way, views[0].buf, size, views[1].buf, views[2].buf, rows, views[3].buf);
    }
    let_go(views, 4);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

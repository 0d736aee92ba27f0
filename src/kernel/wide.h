/* What the files with numbers share: what a wide processor is, and a few steps on eight or sixteen floats at once. */

#ifndef TOOLCRIB_WIDE_H
#define TOOLCRIB_WIDE_H

#include "kernel.h"

#if defined(__x86_64__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9))
#define WIDE_PROCESSOR
#include <immintrin.h>
#endif

#define LEAST 1e-30f /* what is smaller counts as this: its inverse is finite */

/* Several arrays at once, their items so wide: 0, or -1 with an error set. All are to be let go in any case. */
int view_all(PyObject *const *arrays, Py_buffer *views, const Py_ssize_t *widths, int number, int written);
void let_go(Py_buffer *views, int number);

#ifdef WIDE_PROCESSOR

#define WITH_AVX2 __attribute__((target("avx2")))
#define WITH_VNNI __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")))
#define IN_PLACE inline __attribute__((always_inline))
#define APART __attribute__((noinline)) /* beside a loop that needs all registers for itself */

static inline int has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
}

WITH_AVX2 static IN_PLACE __m256 size_of(const float *values)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_loadu_ps(values));
}

WITH_AVX2 static IN_PLACE float largest_in(__m256 values)
{
    __m128 most = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    most = _mm_max_ps(most, _mm_movehl_ps(most, most));
    return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

WITH_AVX2 static IN_PLACE float largest_of(const float *values, size_t size)
{
    __m256 most = _mm256_set1_ps(LEAST);
    for (size_t at = 0; at < size; at += 8)
        most = _mm256_max_ps(size_of(values + at), most);
    return largest_in(most);
}

/* Sixteen floats as the nearest whole numbers, none beyond 16 bits. */
WITH_AVX2 static IN_PLACE __m256i whole_of(const float *values, __m256 times)
{
    const __m256i one = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(values), times));
    const __m256i two = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(values + 8), times));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(one, two), 0xd8);
}

/* Two to each of some powers, and the sigmoid of 1.702 times a number times the number, as `retrieval.powers` has them: of
   so many floats at once (`V##_..`). */
#define POWERS(WITH, FLOATS, WHOLES, V, AS_FLOATS, raise_two, bend)                                                        \
    WITH static IN_PLACE FLOATS raise_two(FLOATS powers)                                                                   \
    {                                                                                                                      \
        powers = V##_min_ps(V##_max_ps(powers, V##_set1_ps(-87.0f)), V##_set1_ps(87.0f));                                  \
        const WHOLES whole = V##_cvtps_epi32(powers);                                                                      \
        powers = V##_sub_ps(powers, V##_cvtepi32_ps(whole));                                                               \
        FLOATS sum = V##_add_ps(V##_mul_ps(powers, V##_set1_ps(0.00957009010f)), V##_set1_ps(0.0559178591f));              \
        sum = V##_add_ps(V##_mul_ps(sum, powers), V##_set1_ps(0.240247458f));                                              \
        sum = V##_add_ps(V##_mul_ps(sum, powers), V##_set1_ps(0.693121791f));                                              \
        sum = V##_add_ps(V##_mul_ps(sum, powers), V##_set1_ps(0.999999285f));                                              \
        return V##_mul_ps(sum, AS_FLOATS(V##_slli_epi32(V##_add_epi32(whole, V##_set1_epi32(127)), 23)));                  \
    }                                                                                                                      \
    WITH static IN_PLACE FLOATS bend(FLOATS wide)                                                                          \
    {                                                                                                                      \
        const FLOATS powers = raise_two(V##_mul_ps(wide, V##_set1_ps((float)(-1.702 * 1.44269504))));                      \
        return V##_div_ps(wide, V##_add_ps(powers, V##_set1_ps(1.0f)));                                                    \
    }

POWERS(WITH_AVX2, __m256, __m256i, _mm256, _mm256_castsi256_ps, raise_two_8, bend_8)
POWERS(WITH_VNNI, __m512, __m512i, _mm512, _mm512_castsi512_ps, raise_two_16, bend_16)

#endif

#endif

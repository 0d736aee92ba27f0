/* Stretches: 64 bytes at a time, one bit for each. With SSE2, which every x86-64 has, sixteen bytes are compared at once;
   elsewhere the compiler is left to find out how many. */

#ifndef TOOLCRIB_STRETCHES_H
#define TOOLCRIB_STRETCHES_H

#include "kernel.h"

#define STRETCH 64

/* The lowest so many bits, up to all of them. */
static inline uint64_t ones(size_t size) { return size < STRETCH ? ((uint64_t)1 << size) - 1 : ~(uint64_t)0; }

/* The place of the highest bit that is set. */
static inline int highest(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return 63 - __builtin_clzll(bits);
#else
    int place = 63;
    while (!(bits >> place))
        place--;
    return place;
#endif
}

/* The bits from the lowest that is set up to the next that is not: how many they are. */
static inline size_t length_of_row(uint64_t bits) { return ~bits ? (size_t)lowest(~bits) : STRETCH; }

#if defined(__SSE2__)

#include <emmintrin.h>

typedef __m128i Bytes;
#define BYTES 16

static inline Bytes bytes_at(const char *at) { return _mm_loadu_si128((const __m128i *)at); }
static inline Bytes every(char one) { return _mm_set1_epi8(one); }
static inline Bytes is_byte(Bytes all, char one) { return _mm_cmpeq_epi8(all, every(one)); }
static inline Bytes either(Bytes one, Bytes other) { return _mm_or_si128(one, other); }
static inline uint64_t pack(Bytes flags) { return (uint64_t)(unsigned)_mm_movemask_epi8(flags); }

/* From the first to the last of these, which comes so much later. */
static inline Bytes is_from(Bytes all, int first, int span)
{
    Bytes above = _mm_sub_epi8(all, _mm_set1_epi8((char)first));
    return _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8((char)span)), above);
}

#else

/* Eight bytes, of which each flag is 0 or 255. */
typedef struct {
    unsigned char at[8];
} Bytes;
#define BYTES 8
#define EACH(made) \
    Bytes flags; \
    for (int which = 0; which < BYTES; which++) \
        flags.at[which] = (unsigned char)(made); \
    return flags

static inline Bytes bytes_at(const char *at)
{
    Bytes all;
    memcpy(all.at, at, BYTES);
    return all;
}
static inline Bytes every(char one) { EACH(one); }
static inline Bytes is_byte(Bytes all, char one) { EACH(all.at[which] == (unsigned char)one ? 255 : 0); }
static inline Bytes either(Bytes one, Bytes other) { EACH(one.at[which] | other.at[which]); }
static inline Bytes is_from(Bytes all, int first, int span)
{
    EACH((unsigned char)(all.at[which] - first) <= span ? 255 : 0);
}

static inline uint64_t pack(Bytes flags)
{
    uint64_t packed = 0;
    for (int which = 0; which < BYTES; which++)
        packed |= (uint64_t)(flags.at[which] & 1) << which;
    return packed;
}

#endif

#endif

#include "support/foreign.h"

#include <fenv.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "test.h"

#ifdef __x86_64__
enum { FLUSH = 0x8040 }; /* of MXCSR: flush to zero, denormals are zero */
static unsigned flush_bits(void)
{
    return _mm_getcsr() & FLUSH;
}
static void set_flush(unsigned bits)
{
    _mm_setcsr(_mm_getcsr() | bits);
}
#else
enum { FLUSH = 0 };
static unsigned flush_bits(void)
{
    return 0;
}
static void set_flush(unsigned bits)
{
    (void)bits;
}
#endif

static const struct {
    const char *name;
    int rounding;
    unsigned flush;
} foreign[] = {
    {"upward", FE_UPWARD, 0},           {"downward", FE_DOWNWARD, 0}, {"toward_zero", FE_TOWARDZERO, 0},
    {"flush", FE_TONEAREST, FLUSH}, /* this and the next: last, because not every machine has them */
    {"flush_upward", FE_UPWARD, FLUSH},
};

int foreign_count(void)
{
    return (int)(sizeof foreign / sizeof *foreign) - (FLUSH ? 0 : 2);
}

void foreign_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", foreign[index].name);
}

void foreign_set(int index)
{
    fesetround(foreign[index].rounding);
    set_flush(foreign[index].flush);
}

void foreign_begin(int index)
{
    fesetenv(FE_DFL_ENV);
    foreign_set(index);
    feraiseexcept(FE_DIVBYZERO);
}

void foreign_end(int index)
{
    const int rounding = fegetround(), raised = fetestexcept(FE_ALL_EXCEPT);
    const unsigned flush = flush_bits();
    fesetenv(FE_DFL_ENV);
    CHECK_EQ_I64(rounding, foreign[index].rounding);
    CHECK_EQ_I64(raised, FE_DIVBYZERO);
    CHECK_EQ_U32(flush, foreign[index].flush);
}

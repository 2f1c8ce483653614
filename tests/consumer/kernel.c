/* A user's own kernel: y[i] = a x[i] + y[i], as PTX on standard output. */
#include <qdnn/ptx.h>
#include <stdio.h>

int main(void)
{
    char *text;
    ptx_error error;
    ptx_builder *b = ptx_open(ptx_sm_find("sm_80"), NULL);
    ptx_kernel(b, "saxpy");
    ptx_val x = ptx_param_ptr(b, "x", 4), y = ptx_param_ptr(b, "y", 4);
    ptx_val a = ptx_param(b, PTX_F32, "a"), n = ptx_param(b, PTX_U32, "n");
    ptx_val i = ptx_global_index(b);
    ptx_ret_unless(b, ptx_setp(b, PTX_LT, i, n));
    ptx_val from = ptx_at(b, x, i, 4), to = ptx_at(b, y, i, 4);
    ptx_val old = ptx_ld_global(b, PTX_F32, to, 0);
    ptx_st_global(b, to, 0, ptx_fma(b, a, ptx_ld_global(b, PTX_F32, from, 0), old));
    if (!ptx_close(b, &text, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    fputs(text, stdout);
    ptx_free_text(NULL, text);
    return 0;
}

typedef int host_ref_placeholder;

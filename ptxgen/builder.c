typedef int ptx_builder_placeholder;

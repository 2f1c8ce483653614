# The CUDA toolkit is never needed. Where it is found, tests and benchmarks use it to check our work; where it is not,
# they are reported as skipped. Found here: ptxas (a program), NVRTC and nvJitLink (opened at run time by name).
find_program(QDNN_PTXAS ptxas HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
find_path(QDNN_CUDA_INCLUDE cuda_fp8.h HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
foreach(tool QDNN_PTXAS QDNN_CUDA_INCLUDE)
  if(NOT ${tool})
    set(${tool} "")
  endif()
endforeach()
message(STATUS "ptxas: ${QDNN_PTXAS}, CUDA headers: ${QDNN_CUDA_INCLUDE} (empty: not found, its tests are skipped)")

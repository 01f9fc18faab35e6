# What ci/gate profile runs under Nsight Compute; it needs neither Google Benchmark nor a yardstick.
add_executable(profile_target profile_target.cpp device_context_cuda.cpp)
target_link_libraries(profile_target PRIVATE
  tilegate_bench_flags tilegate_ladder tilegate_simt tilegate_verifier tilegate_flags
  CUDA::cudart_static CUDA::cublas)

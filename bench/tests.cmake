# Tests of `bench`: its command line by exit status and output, and the parsers alone.

# One call of `bench`, which must exit with `status` and print text that matches `output`.
# DEVICE: it runs kernels, so that it needs a GPU on the device cuda.
# PROGRAM: instead of `bench`.
function(tilegate_bench_test name status output)
  cmake_parse_arguments(arg DEVICE PROGRAM "" ${ARGN})
  if(NOT arg_PROGRAM)
    set(arg_PROGRAM bench)
  endif()
  add_test(NAME bench.${name}
    COMMAND ${CMAKE_COMMAND} -DSTATUS=${status} -DOUTPUT=${output} -P
            ${CMAKE_CURRENT_SOURCE_DIR}/expect.cmake -- $<TARGET_FILE:${arg_PROGRAM}>
            ${arg_UNPARSED_ARGUMENTS})
  set_tests_properties(bench.${name} PROPERTIES LABELS bench)
  if(arg_DEVICE AND TILEGATE_DEVICE STREQUAL "cuda")
    set_tests_properties(bench.${name} PROPERTIES FIXTURES_REQUIRED gpu_answers)
  endif()
endfunction()

set(tables ${CMAKE_CURRENT_SOURCE_DIR})
tilegate_bench_test(runs 0 "Naive/33x35x37.*GFLOPS=.*verified=1" DEVICE
  --benchmark_filter=Naive --shapes=33x35x37)
tilegate_bench_test(writes_the_fields_of_a_name 0
  "\"name\": \"Naive/33x35x37\",.*\"batch\": 1.*\"k\": 3.7.*\"m\": 3.3.*\"n\": 3.5" DEVICE
  --benchmark_filter=Naive --shapes=33x35x37 --benchmark_out=/dev/stdout)
tilegate_bench_test(verifies_every_rung 0 "Coalesced/33x35x37" DEVICE --shapes=33x35x37)
tilegate_bench_test(runs_variants 0 "Warptile.dealt/33x35x37/manual_time .*verified=1" DEVICE
  --benchmark_filter=Warptile.dealt --shapes=33x35x37 --variants)
tilegate_bench_test(runs_unaligned_and_cold 0
  "Naive/33x35x37/ld38x36x39/off4/cold/manual_time .*verified=1" DEVICE
  --benchmark_filter=Naive --shapes=33x35x37/ld38x36x39/off4 --cold)
# Stages with planted faults: integers show a dropped term; factors that are none leave it to the
# bound. The second problem is too large to be counted, which only the ladder's stages are. Built with
# the tests: of bench/all, which ci/test compiles for CUDA where no GPU answers, it is no part.
add_executable(bench_faults EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/ladder_faults/catalogue.cpp
  ${PROJECT_SOURCE_DIR}/kernels/catalogue/catalogue.cpp)
target_link_libraries(bench_faults PRIVATE tilegate_bench tilegate_faults tilegate_flags)
add_dependencies(ladder_faults_test bench_faults)
tilegate_bench_test(finds_a_dropped_term 1
  "DropsLastTerm/33x35x37.*wrong result: [0-9]+ of 1155 elements of C are not exact on integers"
  DEVICE PROGRAM bench_faults --benchmark_filter=^DropsLastTerm/ --shapes=33x35x37)
tilegate_bench_test(finds_one_element_outside_its_bound 1
  "wrong result: 1 of 4096 elements of C are outside the error bound, the first at row 63, column 63"
  DEVICE PROGRAM bench_faults --benchmark_filter=^TwiceTheBoundInLastElement/
  --shapes=64x64x8200/alpha1.5)
tilegate_bench_test(lays_operands_out 0
  "Naive/33x35x37/beta2/manual_time .*placement_pct=[0-9].*verified=1" DEVICE
  --benchmark_filter=Naive --shapes=33x35x37/beta2 --placements=3)
tilegate_bench_test(lays_operands_out_at_least_once 2 "--placements: 0; give 1 or more" --placements=0)
tilegate_bench_test(runs_alpha_and_beta 0 "Vectorized/36x36x36/alpha-2/beta0.5/manual_time .*verified=1"
  DEVICE --benchmark_filter=Vectorized --shapes=36x36x36/alpha-2/beta0.5)
tilegate_bench_test(says_what_a_stage_does_not_do 1 "Naive takes no transposed operands"
  DEVICE --benchmark_filter=Naive --shapes=36x36x36/TN)
# `plan` alike.
function(tilegate_plan_test name status output)
  add_test(NAME bench.plan_${name}
    COMMAND ${CMAKE_COMMAND} -DSTATUS=${status} -DOUTPUT=${output} -P
            ${CMAKE_CURRENT_SOURCE_DIR}/expect.cmake -- $<TARGET_FILE:plan> ${ARGN})
  set_tests_properties(bench.plan_${name} PROPERTIES LABELS bench)
endfunction()
tilegate_plan_test(says_what_is_chosen 0 "SplitK/64x64x4096: split128, 2097152 bytes of workspace"
  SplitK/64x64x4096)
tilegate_plan_test(says_why 0
  "class 12x12x12/NN/vvv: .*waves +tiles +multiply.* 3.88 +1.00 .*Interleaved:128x256x8"
  Sgemm/4096x4096x4096)
tilegate_plan_test(within_a_limit 0 "Sgemm/8192x8192x8192/split: Int8x3:128x128[a-z]*_panels[0-9x]+, "
  --workspace-limit=268435456 Sgemm/8192x8192x8192/split)
tilegate_plan_test(within_no_number 2 "that is no count of bytes" --workspace-limit=1G Naive/8x8x8)
tilegate_plan_test(within_a_limit_without_a_case 2 "no case" --workspace-limit=1)
tilegate_plan_test(of_an_unknown_stage 2 "no stage is called 'Splitt'" Splitt/64x64x64)
tilegate_plan_test(of_what_a_stage_does_not_do 1 "Naive takes no transposed" Naive/64x64x64/TN)
tilegate_plan_test(without_a_case 2 "usage: plan CASE")
if(TARGET tilegate_counters)  # 32 warps, 32 steps, a load of A and one of B
  tilegate_bench_test(counts_exactly 0
    "\"barriers\": 0.*\"fma\": .*\"global_load.requests\": 2.048.*e.03,.*\"verified\": 1"
    --benchmark_filter=Naive --shapes=32x32x32 --benchmark_out=/dev/stdout)
  tilegate_bench_test(shows_few_counters 0 "barriers=0 bytes=[^ ]+ fma=[^ ]+ verified=1"
    --benchmark_filter=Naive --shapes=32x32x32)
endif()
tilegate_bench_test(plants_a_slow_down 0 "Naive/33x35x37.*planted_pct=[2-6][0-9].*verified=1" DEVICE
  --benchmark_filter=Naive --shapes=33x35x37 --plant=Naive:40)
# A stopwatch is no use while other tests share the device.
set_tests_properties(bench.plants_a_slow_down PROPERTIES RUN_SERIAL TRUE)
tilegate_bench_test(plants_in_no_other_rung 0 "Coalesced/33x35x37[^\n]*verified=1" DEVICE
  --benchmark_filter=Coalesced --shapes=33x35x37 --plant=Naive:40)
tilegate_bench_test(plant_of_an_unknown_rung 2 "no rung is called 'Nave'" --plant=Nave:3)
tilegate_bench_test(workspace_limit_is_obeyed 1
  "Int8x3 has no configuration for this problem with a workspace of at most 5 bytes" DEVICE
  --benchmark_filter=Int8x3 --shapes=8x8x128 --workspace-limit=5)
tilegate_bench_test(computes_in_panels 0 "Int8x3/8x160x130/manual_time .*verified=1" DEVICE
  --benchmark_filter=^Int8x3/ --shapes=8x160x130 --workspace-limit=130000)
tilegate_bench_test(prepares_b 0
  "Prepared/64x256x512/NT/manual_time .*prepare_us=[0-9].*verified=1 [A-Z][A-Za-z]+:[0-9a-z]+" DEVICE
  --benchmark_filter=^Prepared/ --shapes=64x256x512/NT --prepared)
tilegate_bench_test(prepares_no_copies 2 "--prepared: not with --cold" --prepared --cold)
tilegate_bench_test(unknown_yardstick 2 "--yardstick: 'fastest' is neither cublas nor best:FILE"
  --yardstick=fastest)
tilegate_bench_test(unreadable_yardstick 2 "--yardstick: cannot read no/such.csv"
  --yardstick=best:no/such.csv)
tilegate_bench_test(unwritable_yardstick 2 "cannot write no/such.csv"
  --choose-yardstick=no/such.csv)
tilegate_bench_test(unwritable_samples 2 "cannot write no/such.csv" --samples=no/such.csv)
tilegate_bench_test(unwritable_report 2 "--benchmark_out: cannot write no/such.json"
  --benchmark_out=no/such.json)
foreach(flags IN ITEMS --help "--benchmark_list_tests --shapes=8x8x8")
  string(MAKE_C_IDENTIFIER "bench.full_stdout${flags}" name)
  string(REGEX REPLACE "^bench_" "bench." name ${name})
  add_test(NAME ${name}
    COMMAND sh -c "\"$0\" ${flags} >/dev/full; test $? = 2" $<TARGET_FILE:bench>)
  set_tests_properties(${name} PROPERTIES LABELS bench)
endforeach()
tilegate_bench_test(full_disk 2 "--benchmark_out: cannot write /dev/full" DEVICE
  --benchmark_filter=Naive --shapes=8x8x8 --benchmark_out=/dev/full)
tilegate_bench_test(filter_without_match 2 "no benchmark matches --benchmark_filter=NoSuchRung" DEVICE
  --benchmark_filter=NoSuchRung)
tilegate_bench_test(lists 0 "Naive/1024x1024x1024/ld1025x1027x1029/manual_time\n"
  --benchmark_list_tests --shapes=@${tables}/shapes.csv:unaligned)
tilegate_bench_test(list_without_match 2 "no benchmark matches"
  --benchmark_list_tests --benchmark_filter=NoSuchRung)
tilegate_bench_test(help 0 "--shapes=.*--benchmark_filter" --help)
tilegate_bench_test(malformed_shape 2 "--shapes: '12x' is not MxNxK" --shapes=12x)
tilegate_bench_test(unreadable_table 2 "cannot read no/such.csv" --shapes=@no/such.csv)
tilegate_bench_test(unknown_set 2 "no set 'round'" --shapes=@${tables}/shapes.csv:round)
tilegate_bench_test(unknown_flag 2 "unknown argument '--fast'" --fast)
tilegate_bench_test(bad_google_benchmark_flag 2 "bad value" --benchmark_format=xml)
if(TILEGATE_DEVICE STREQUAL "cuda")  # the CPU would take days
  tilegate_bench_test(verifies_sgemm_on_its_shapes 0
    "Sgemm/1536x1536x1536/ld1537x1536x1536/off12/manual_time .*verified=1" DEVICE
    --benchmark_filter=^Sgemm/ --shapes=@${tables}/shapes.csv --benchmark_min_time=0.001)
else()
  tilegate_bench_test(says_what_cannot_run 2 "Cublas does not run here"
    --benchmark_filter=Cublas --shapes=8x8x8)
  tilegate_bench_test(yardstick_needs_a_gpu 2 "--choose-yardstick: cuBLAS needs a CUDA GPU"
    --choose-yardstick=/dev/null)
endif()

if(TARGET bench_distributed)
  tilegate_bench_test(distributed_skips_what_needs_more_gpus 0
    "Distributed/8192x8192x8192/p64.*needs 64 GPUs; has [0-9]" DEVICE PROGRAM bench_distributed
    --shape=8192x8192x8192 --ranks=64)
  tilegate_bench_test(distributed_unknown_flag 2 "unknown or malformed flag '--shapes=8'"
    PROGRAM bench_distributed --shapes=8)
  tilegate_bench_test(distributed_malformed_shape 2 "--shape: " PROGRAM bench_distributed
    --shape=8x8)
  tilegate_bench_test(distributed_malformed_ranks 2 "--ranks: give 1 or more" PROGRAM
    bench_distributed --ranks=0)
  tilegate_bench_test(distributed_malformed_exchange 2 "--exchange: give bytes" PROGRAM
    bench_distributed --exchange=1MiB)
  tilegate_bench_test(distributed_exchange_alone 2 "--exchange: needs --ranks=2 or more" PROGRAM
    bench_distributed --exchange=64 --ranks=1)
  tilegate_bench_test(distributed_help 0 "--yardstick 'InTurn" PROGRAM bench_distributed --help)
  if(TILEGATE_DEVICE STREQUAL "simt")
    tilegate_bench_test(distributed_runs 0
      "InTurn/96x80x64/p2/rows/manual_time .*GFLOPS=.*verified=1" PROGRAM
      bench_distributed --shape=96x80x64 --benchmark_min_time=0.01)
    tilegate_bench_test(distributed_runs_an_exchange 0
      "Exchange/4096/p3/manual_time .*bytes_per_second=.*verified=1" PROGRAM
      bench_distributed --exchange=4096 --ranks=3 --benchmark_min_time=0.01)
    tilegate_bench_test(distributed_runs_digits 0
      "Distributed/96x80x64/split/p2/rows/same_bits/manual_time .*GFLOPS=.*verified=1" PROGRAM
      bench_distributed --shape=96x80x64/split --same-bits --benchmark_min_time=0.01
      --benchmark_filter=Distributed.*rows)
  endif()
endif()

find_package(GTest QUIET)  # imported targets belong to the folder that found them
add_executable(tilegate_bench_test shapes_test.cpp flags_test.cpp yardstick_test.cpp)
target_link_libraries(tilegate_bench_test PRIVATE
  tilegate_bench_flags tilegate_flags GTest::gtest_main)
add_test(NAME bench.flags COMMAND tilegate_bench_test)
set_tests_properties(bench.flags PROPERTIES LABELS bench)

# cmake -DSTATUS=<exit status> -DOUTPUT=<regex> -P expect.cmake -- <command> <argument>...
# Runs the command; fails unless both its exit status and what it prints are as expected.
set(command "")
set(i 0)
while(i LESS CMAKE_ARGC AND NOT "${CMAKE_ARGV${i}}" STREQUAL "--")
  math(EXPR i "${i} + 1")
endwhile()
math(EXPR i "${i} + 1")
while(i LESS CMAKE_ARGC)
  list(APPEND command "${CMAKE_ARGV${i}}")
  math(EXPR i "${i} + 1")
endwhile()

execute_process(COMMAND ${command} OUTPUT_VARIABLE output ERROR_VARIABLE output
                RESULT_VARIABLE status)
message("${output}")
if(NOT status STREQUAL STATUS)
  message(FATAL_ERROR "exit status ${status}, expected ${STATUS}")
endif()
if(NOT output MATCHES "${OUTPUT}")
  message(FATAL_ERROR "nothing printed matches: ${OUTPUT}")
endif()

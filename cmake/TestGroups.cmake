# Lists the tests of a program to CTest, run after it is built: one entry for each test, with all of its cases in one process, because
# thousands of processes take minutes to start. Tests of many cases are split into shards, which run side by side.
#   cmake -DPROGRAM=path -DOUTPUT=file.cmake -DDIRECTORY=path -P TestGroups.cmake
set(CASES_PER_SHARD 60)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE list RESULT_VARIABLE failed TIMEOUT 120)
if(failed)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed: ${failed}")
endif()

# "Suite." lines, then "  Test" or "  Test/case" lines of it.
string(REPLACE ";" "," list "${list}")
string(REPLACE "\n" ";" lines "${list}")
set(groups "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_]+\\.)")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  ([A-Za-z0-9_]+)")
    set(group ${suite}${CMAKE_MATCH_1})
    if(NOT DEFINED cases_${group})
      set(cases_${group} 0)
      list(APPEND groups ${group})
    endif()
    math(EXPR cases_${group} "${cases_${group}} + 1")
  endif()
endforeach()

set(text "")
foreach(group IN LISTS groups)
  math(EXPR shards "(${cases_${group}} + ${CASES_PER_SHARD} - 1) / ${CASES_PER_SHARD}")
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set(name ${group})
    set(environment "")
    if(shards GREATER 1)
      math(EXPR number "${shard} + 1")
      set(name "${group}.${number}_of_${shards}")
      set(environment " ENVIRONMENT \"GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}\"")
    endif()
    string(APPEND text "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${group}:${group}/*]=])\n"
           "set_tests_properties([=[${name}]=] PROPERTIES WORKING_DIRECTORY [=[${DIRECTORY}]=] TIMEOUT 900 "
           "SKIP_RETURN_CODE 77${environment})\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "${text}")

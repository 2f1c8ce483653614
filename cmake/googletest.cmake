# The tests alone need C++. Where there is no compiler for it, or no GoogleTest, GTest::gtest stays undefined.
include(CheckLanguage)
if(NOT CMAKE_CXX_COMPILER)
  unset(CMAKE_CXX_COMPILER CACHE) # look again: it may have been installed since
endif()
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  find_package(GTest QUIET)
endif()

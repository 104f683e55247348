# berth::flags: warnings, sanitizers and coverage for our own code. Generated code does not link it.
option(BERTH_COVERAGE "gcov counters" OFF)
option(BERTH_FUZZ "the targets of tests/fuzz, and no other tests; needs clang" OFF)
set(BERTH_SANITIZE "" CACHE STRING "value for -fsanitize=, for example address,undefined or thread")

add_library(berth_flags INTERFACE)
add_library(berth::flags ALIAS berth_flags)
target_compile_options(berth_flags INTERFACE -Wall -Wextra -Wconversion -Werror)
target_include_directories(berth_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O3 g++ 12 warns of overlapping copies inside std::string that cannot be (GCC bug 105651).
  target_compile_options(berth_flags INTERFACE -Wno-restrict)
  if(BERTH_SANITIZE MATCHES "thread")
    # Its calls between the parts of an expression make g++ 12 lose track of std::optional and of absl::InlinedVector.
    target_compile_options(berth_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # What clang calls a conversion is more than what the code is written for; g++ checks it.
  target_compile_options(berth_flags INTERFACE -Wthread-safety -Wno-conversion -Wno-missing-field-initializers)
endif()

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  if(BERTH_SANITIZE MATCHES "thread")
    include_directories(BEFORE ${PROJECT_SOURCE_DIR}/cmake/tsan)  # see the header there
  endif()
  if(BERTH_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # A quarter of the time to compile: for pointers that AddressSanitizer reports as well when they are used, and for
    # casts of which the tree has none.
    add_compile_options(-fno-sanitize=null,alignment,vptr,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # the same precompiled header again, for ccache
endif()
if(BERTH_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_options(-Og -g1)   # -g1: line numbers in reports, a third of the object size
endif()
add_link_options(-Wl,--as-needed)

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers need the sloppiness, and sums beside them; without, every object that uses one is a miss.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/cmake/compile)
endif()
find_program(LLD ld.lld NAMES ld.lld-14)

# berth::flags: warnings, sanitizers and coverage for our own code. Generated code does not link it.
option(BERTH_COVERAGE "gcov counters" OFF)
option(BERTH_FUZZ "the targets of tests/fuzz, and no other tests; needs clang" OFF)
set(BERTH_SANITIZE "" CACHE STRING "value for -fsanitize=, for example address,undefined or thread")

add_library(berth_flags INTERFACE)
add_library(berth::flags ALIAS berth_flags)
target_compile_options(berth_flags INTERFACE -Wall -Wextra -Wconversion -Werror)
target_include_directories(berth_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O3 g++ 12 warns about impossible overlapping copies inside std::string (GCC bug 105651).
  target_compile_options(berth_flags INTERFACE -Wno-restrict)
  if(BERTH_SANITIZE MATCHES "thread")
    # ThreadSanitizer's calls between the parts of an expression confuse g++ 12 about std::optional and
    # absl::InlinedVector.
    target_compile_options(berth_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang's -Wconversion warns about more than the code is written for. The presets build with clang, so only a build
  # with g++ (cmake -D CMAKE_CXX_COMPILER=g++) checks conversions.
  target_compile_options(berth_flags INTERFACE -Wthread-safety -Wno-conversion -Wno-missing-field-initializers)
endif()

if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  if(BERTH_SANITIZE MATCHES "thread")
    include_directories(BEFORE ${PROJECT_SOURCE_DIR}/cmake/tsan)  # see the header there
  endif()
  if(BERTH_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # g++ does not look for uses after return by default either: the separate stacks are mapped for each thread.
    add_compile_options(-fsanitize-address-use-after-return=never)
  endif()
  if(BERTH_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # These checks take a quarter of the compile time. AddressSanitizer also reports such pointers when they are used,
    # and the tree has none of the casts.
    add_compile_options(-fno-sanitize=null,alignment,vptr,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()
if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # reproducible precompiled headers, for ccache in one checkout
endif()
if(BERTH_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  # No optimization halves the compile time. The code that dominates the time of tests is optimized (OPTIMIZED in
  # cmake/targets.cmake).
  add_compile_options(-O0 -g1)   # -g1: line numbers in reports, a third of the object size
endif()
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
add_compile_options(-pthread)  # everywhere, because targets that share a precompiled header must have equal flags
add_link_options(-Wl,--as-needed)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers need this sloppiness and the checksums; without them, every object that uses one misses.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/cmake/compile)
endif()

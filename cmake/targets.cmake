# Headers that nearly every file includes: precompiling them halves the compile time.
set(BERTH_COMMON_PCH <algorithm> <array> <functional> <map> <memory> <optional> <string> <utility> <variant> <vector>
    <absl/container/btree_map.h> <absl/container/btree_set.h> <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h> <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/string_view.h> <absl/time/time.h>
    <absl/types/span.h>)
set(CMAKE_PCH_PROLOGUE "")   # by default a precompiled header is a system header, without warnings

set(BERTH_ABSL absl::status absl::statusor absl::strings absl::time absl::btree absl::flat_hash_map absl::flat_hash_set
    absl::span absl::any_invocable absl::function_ref absl::inlined_vector)

# berth_precompiled(NAME [OPTIMIZED] LINK target... HEADERS header...): headers parsed once for all targets with PCH
# NAME. Those targets must have the same definitions and optimization.
#
# Without optimization, clang also compiles the inline functions of these headers once, in berth_NAME_code, instead of in
# each file that uses them: a third less compile time, and objects a third of the size.
function(berth_precompiled name)
  cmake_parse_arguments(arg "OPTIMIZED" "" "LINK;HEADERS" ${ARGN})
  add_library(berth_${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  target_link_libraries(berth_${name} PRIVATE ${arg_LINK} berth::flags)
  target_precompile_headers(berth_${name} PRIVATE ${BERTH_COMMON_PCH} ${arg_HEADERS})
  if(arg_OPTIMIZED)
    berth_optimize(berth_${name})
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(berth_${name} PRIVATE -fpch-codegen -fpch-debuginfo)
    set(header ${PROJECT_BINARY_DIR}/CMakeFiles/berth_${name}.dir/cmake_pch.hxx.pch)
    set(object ${PROJECT_BINARY_DIR}/CMakeFiles/berth_${name}.dir/code.o)
    get_directory_property(options COMPILE_OPTIONS)
    list(FILTER options EXCLUDE REGEX "^SHELL:")  # about writing the header
    add_custom_command(OUTPUT ${object} DEPENDS ${header} berth_${name} COMMAND_EXPAND_LISTS VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER} ${options} -std=c++20 -ffunction-sections -fdata-sections -c ${header} -o ${object})
    add_library(berth_${name}_code STATIC ${object})
    set_target_properties(berth_${name}_code PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(berth_${name}_code PUBLIC ${arg_LINK})
    # Functions that nobody calls may need libraries that nobody links.
    target_link_options(berth_${name}_code PUBLIC -Wl,--gc-sections)
  endif()
endfunction()

# Precompiled header NAME for a target.
function(berth_use_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM berth_${name})
  if(TARGET berth_${name}_code)
    target_link_libraries(${target} PRIVATE berth_${name}_code)
  endif()
endfunction()

# Optimizes code that dominates the time of tests and simulations also in Debug builds (build/dev, build/tsan).
function(berth_optimize target)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# berth_library(NAME DIRECTORY... [OPTIMIZED] [LINK target...] [EXCLUDE file...] [ONLY file...] [PCH name]): every .cc
# file of the directories (not of subdirectories), or the given files of the current one. New files need no line here:
# every build checks the glob.
function(berth_library name)
  cmake_parse_arguments(arg "OPTIMIZED" "PCH" "LINK;EXCLUDE;ONLY" ${ARGN})
  set(sources)
  foreach(directory ${arg_UNPARSED_ARGUMENTS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  foreach(file ${arg_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${CMAKE_CURRENT_SOURCE_DIR}/./${file})
  endforeach()
  list(APPEND sources ${arg_ONLY})
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_LINK})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:berth::flags>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/berth>)
  if(arg_PCH)
    berth_use_precompiled(${name} ${arg_PCH})
  endif()
  if(arg_OPTIMIZED)
    berth_optimize(${name})
  endif()
endfunction()

# berth_program(NAME main.cc LINK target... [PCH name])
function(berth_program name main)
  cmake_parse_arguments(arg "" "PCH" "LINK" ${ARGN})
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${main})
    return()
  endif()
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${arg_LINK} berth::flags)
  if(arg_PCH)
    berth_use_precompiled(${name} ${arg_PCH})
  endif()
endfunction()

# berth_tests(NAME DIRECTORY [OPTIMIZED] [ONLY regex] [EXCEPT regex] [PCH name] [COST n] LINK target...): one Catch2
# program from all its .cc files (those whose paths match ONLY and not EXCEPT), each test case a separate ctest. Tests of
# greater COST start first, so that none is still running alone at the end.
function(berth_tests name directory)
  cmake_parse_arguments(arg "OPTIMIZED" "ONLY;EXCEPT;PCH;COST" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cc)
  if(arg_ONLY)
    list(FILTER sources INCLUDE REGEX ${arg_ONLY})
  endif()
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX ${arg_EXCEPT})
  endif()
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources} $<TARGET_OBJECTS:berth_catch_main>)
  target_link_libraries(${name} PRIVATE ${arg_LINK} Catch2::Catch2 berth::flags)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # tests repeat names, such as those of helpers
  if(BERTH_SANITIZE STREQUAL "thread")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/tsan_annotations.cc)
  endif()
  if(arg_PCH)
    berth_use_precompiled(${name} ${arg_PCH})
  endif()
  if(arg_OPTIMIZED)
    berth_optimize(${name})
  endif()
  # A name with ";" would become two that no test has: a name that no test has is a failure.
  catch_discover_tests(${name} EXTRA_ARGS -w NoTests TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 300 COST 0${arg_COST})
endfunction()

# berth_manual(PROGRAM SECTION [ARGUMENT...]): its manual page, printed by "PROGRAM --man" whenever it is linked; with
# arguments, the pages that "PROGRAM ARGUMENT... FOLDER" writes.
set(BERTH_MANUAL ${PROJECT_BINARY_DIR}/man)
function(berth_manual program section)
  if(NOT TARGET ${program})
    return()
  endif()
  set(folder ${BERTH_MANUAL}/man${section})
  set(write sh -c "exec \"$0\" --man >\"$1\"" $<TARGET_FILE:${program}> ${folder}/${program}.${section})
  if(ARGN)
    set(write $<TARGET_FILE:${program}> ${ARGN} ${folder})
  endif()
  add_custom_command(TARGET ${program} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder} COMMAND ${write})
endfunction()

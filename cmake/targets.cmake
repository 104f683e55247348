# What nearly every file includes, parsed once a target: half of the compile time otherwise. Of the project's headers only
# those that nearly every file of the target includes anyway; any other would rebuild all of it.
set(BERTH_COMMON_PCH <algorithm> <array> <functional> <map> <memory> <optional> <string> <utility> <variant> <vector>
    <absl/container/btree_map.h> <absl/container/btree_set.h> <absl/container/flat_hash_map.h>
    <absl/container/flat_hash_set.h> <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/string_view.h> <absl/time/time.h>
    <absl/types/span.h>)
set(BERTH_MODEL_PCH <core/model/cluster_state.h> <core/model/event.h>)
set(CMAKE_PCH_PROLOGUE "")   # by default a precompiled header is a system's, and told of no warnings

# berth_library(NAME DIRECTORY... [LINK target...] [EXCLUDE file...] [ONLY file...] [PCH header...]): every .cc of the
# directories (not below them), or those files of the present one.
# New files need no line here: the glob is checked at each build.
function(berth_library name)
  cmake_parse_arguments(arg "" "" "LINK;EXCLUDE;ONLY;PCH" ${ARGN})
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
  list(LENGTH sources files)
  if(arg_PCH OR files GREATER 8)
    target_precompile_headers(${name} PRIVATE ${BERTH_COMMON_PCH} ${arg_PCH})
  endif()
endfunction()

# berth_program(NAME main.cc LINK target... [PCH header...])
function(berth_program name main)
  cmake_parse_arguments(arg "" "" "LINK;PCH" ${ARGN})
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${main})
    return()
  endif()
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE ${arg_LINK} berth::flags)
  if(arg_PCH)
    target_precompile_headers(${name} PRIVATE ${arg_PCH})
  endif()
endfunction()

# berth_tests(NAME DIRECTORY [ONLY regex] [EXCEPT regex] LINK target...): one Catch2 program from all its .cc files (whose
# paths match, do not match), each case a ctest of its own.
function(berth_tests name directory)
  cmake_parse_arguments(arg "" "ONLY;EXCEPT" "LINK;PCH" ${ARGN})
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
  if(BERTH_SANITIZE STREQUAL "thread")
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/tsan_annotations.cc)
  endif()
  target_precompile_headers(${name} PRIVATE <catch2/catch.hpp> ${BERTH_COMMON_PCH} ${arg_PCH})
  # A name with ";" would become two that no test has: a name that no test has is a failure.
  catch_discover_tests(${name} EXTRA_ARGS -w NoTests TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
endfunction()

# berth_manual(PROGRAM SECTION [ARGUMENT...]): its manual page, printed by "PROGRAM --man" whenever it is linked; with
# arguments, pages that "PROGRAM ARGUMENT... FOLDER" writes.
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

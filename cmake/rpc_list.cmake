# Writes HEADER with one line "X(SERVICE, METHOD)" for each method of the services in PROTOS (a list separated by
# commas): BERTH_RPCS(X).
string(REPLACE "," ";" protos "${PROTOS}")
set(lines "")
foreach(proto ${protos})
  file(STRINGS ${proto} found REGEX "^(service|  rpc) ")
  foreach(line IN LISTS found)
    if(line MATCHES "^service ([A-Za-z]+)")
      set(service ${CMAKE_MATCH_1})
    elseif(line MATCHES "^  rpc ([A-Za-z]+)\\(")
      string(APPEND lines " \\\n  X(${service}, ${CMAKE_MATCH_1})")
    endif()
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT "// Generated from proto/berth/v1 by cmake/rpc_list.cmake.
#define BERTH_RPCS(X)${lines}
")

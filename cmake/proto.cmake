# berth_proto_library(NAME [GRPC] FILE...): generates and compiles proto files given relative to proto/.
function(berth_proto_library name)
  cmake_parse_arguments(arg "GRPC" "" "" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto ${arg_UNPARSED_ARGUMENTS})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(outputs ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(plugin)
    if(arg_GRPC)
      list(APPEND outputs ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      set(plugin --grpc_out=${out} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
    endif()
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND protobuf::protoc --cpp_out=${out} ${plugin} -I ${PROJECT_SOURCE_DIR}/proto ${proto}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/proto
      DEPENDS ${PROJECT_SOURCE_DIR}/proto/${proto} ${BERTH_PROTO_IMPORTS}
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # generated files define the same names
  target_include_directories(${name} SYSTEM PUBLIC $<BUILD_INTERFACE:${out}> $<INSTALL_INTERFACE:include/berth>)
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  # Generated code calls a library without sanitizers, and takes three times as long to compile with them
  if(BERTH_SANITIZE)
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
  if(arg_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()

# cmake --install: programs, and what a policy of one's own is built against (docs/developers/policies.md):
#   find_package(berth)  ->  berth::core, berth::server
# Headers keep their paths below include/berth, so that sources include "core/engine/policies.h" as ours do.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/berth)

install(TARGETS berth_core berth_support berth_pki berth_http berth_storage berth_convert berth_planning berth_pricing berth_loop berth_server berth_proto_messages berth_proto_api
                berth_proto_config berth_proto_store berth_proto_etcd berth_etcd CLI11 re2 microhttpd berth_clp
        EXPORT berth ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/berth)
set_target_properties(berth_core PROPERTIES EXPORT_NAME core)
set_target_properties(berth_server PROPERTIES EXPORT_NAME server)
if(TARGET berth_pch_server_code)
  install(TARGETS berth_pch_server_code EXPORT berth ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/berth)
endif()
install(EXPORT berth NAMESPACE berth:: DESTINATION ${package})
install(DIRECTORY core pricing storage support server DESTINATION include/berth FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/ DESTINATION include/berth FILES_MATCHING PATTERN "*.h")

foreach(program berthd berth berth-agent berth-authd berth-web berth-supervisor berth-probe berth-image berth-sim)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# The Slurm commands lie in a directory of their own, which users put into their PATH: they collide with nothing.
if(TARGET berth-slurm)
  set(BERTH_SLURM_DIR ${CMAKE_INSTALL_LIBDIR}/berth/slurm)
  install(TARGETS berth-slurm RUNTIME DESTINATION ${BERTH_SLURM_DIR} COMPONENT slurm)
  foreach(command ${BERTH_SLURM_COMMANDS})
    install(CODE "file(CREATE_LINK berth-slurm \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${BERTH_SLURM_DIR}/${command}\" SYMBOLIC)"
            COMPONENT slurm)
  endforeach()
endif()

install(DIRECTORY ${BERTH_MANUAL}/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT man)

configure_package_config_file(cmake/berth-config.cmake.in ${PROJECT_BINARY_DIR}/berth-config.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/berth-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/berth-config.cmake ${PROJECT_BINARY_DIR}/berth-config-version.cmake
        DESTINATION ${package})

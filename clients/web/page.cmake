# BERTH_WEB_ASSETS: the source file with the files of the page. npm ci installs what page/package-lock.json names, below
# the build directory; page/build.mjs bundles it.
find_program(NPM npm)
find_program(NODE node)
set(BERTH_WEB_PAGE AUTO CACHE STRING "the page of berth-web: ON, OFF, or AUTO: if npm is there and can install packages")
if(BERTH_WEB_PAGE STREQUAL "ON" OR (BERTH_WEB_PAGE STREQUAL "AUTO" AND NPM AND NODE))
  if(NOT BERTH_WEB_PAGE STREQUAL "ON")
    set(without ${CMAKE_CURRENT_SOURCE_DIR}/web/no_page.cc)
  endif()
  set(BERTH_WEB_ASSETS ${PROJECT_BINARY_DIR}/web-page/assets.cc)
  file(GLOB_RECURSE page_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/page/*)
  add_custom_command(OUTPUT ${BERTH_WEB_ASSETS} DEPENDS ${page_files}
    COMMAND ${NODE} ${CMAKE_CURRENT_SOURCE_DIR}/web/page/build.mjs ${PROJECT_BINARY_DIR}/web-page ${NPM} ${without}
    COMMENT "Building the page of berth-web with npm (cmake -D BERTH_WEB_PAGE=OFF: without it)" VERBATIM)
else()
  message(STATUS "berth-web is built without its page: npm or node is missing, or BERTH_WEB_PAGE is OFF")
  set(BERTH_WEB_ASSETS ${CMAKE_CURRENT_SOURCE_DIR}/web/no_page.cc)
endif()

# Writes HEADER with the commit of SOURCE, with "+" appended if there are changes. Unchanged files are not rewritten.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "inline constexpr char kCommit[] = \"${commit}\";\n")

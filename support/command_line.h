// The command line of a program.
#ifndef BERTH_SUPPORT_COMMAND_LINE_H_
#define BERTH_SUPPORT_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "support/man_page.h"

namespace berth {

inline constexpr int kExitUsage = 2;

// `PROGRAM --man`, which stands in no help: the program's manual page. Daemons are of section 8.
inline std::string ManPageOf(const CLI::App& app, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const int section = name == "berthd" || name == "berth-agent" ? 8 : 1;
  return ManPage(app, {.name = name,
                       .synopsis = name,
                       .section = section,
                       .date = ManPageDate(),
                       .see_also = {"berth(1)"}});
}

// Where the program is to end there and then, with what: 0 when help, the version or the manual
// page was asked for, kExitUsage, with words on standard error, for what is wrong.
inline std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--man") {
    std::cout << ManPageOf(app, argv[0]);
    return 0;
  }
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
}

}  // namespace berth

#endif  // BERTH_SUPPORT_COMMAND_LINE_H_

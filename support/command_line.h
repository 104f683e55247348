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

// `PROGRAM --man` prints the program's manual page; no help text lists it. Daemons are in section
// 8.
inline std::string ManPageOf(const CLI::App& app, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool daemon =
      name == "berthd" || name == "berth-agent" || name == "berth-authd" || name == "berth-web";
  return ManPage(app, {.name = name,
                       .synopsis = name,
                       .section = daemon ? 8 : 1,
                       .date = ManPageDate(),
                       .see_also = {"berth(1)"}});
}

// Returns the exit code if the program must exit now: 0 after printing help, the version or the
// manual page; kExitUsage, with a message on standard error, if the command line is wrong.
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

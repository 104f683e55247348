// The command line of a program.
#ifndef BERTH_SUPPORT_COMMAND_LINE_H_
#define BERTH_SUPPORT_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <optional>

namespace berth {

inline constexpr int kExitUsage = 2;

// Where the program is to end there and then, with what: 0 when help or the version was asked for,
// kExitUsage, with words on standard error, for what is wrong.
inline std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
}

}  // namespace berth

#endif  // BERTH_SUPPORT_COMMAND_LINE_H_

// `berth`: the command line of operators and users.
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "clients/cli/app.h"
#include "support/grpc_log.h"

namespace {

size_t TerminalWidth() {
  winsize window{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");   // for the width of non-ASCII text
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe ends the output, not the program in mid-request
  berth::SilenceGrpc();
  const char* no_color = std::getenv("NO_COLOR");
  const berth::CliIo io{std::cout,
                        std::cerr,
                        isatty(STDOUT_FILENO) == 1,
                        no_color != nullptr && *no_color != '\0',
                        absl::LocalTimeZone(),
                        berth::SystemEnvironment(),
                        &std::cin,
                        isatty(STDIN_FILENO) == 1,
                        TerminalWidth(),
                        isatty(STDERR_FILENO) == 1};
  return berth::RunBerth(std::vector<std::string>(argv + 1, argv + argc), io);
}

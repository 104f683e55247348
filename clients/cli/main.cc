// `berth`: the command line of operators and users.
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "clients/cli/app.h"
#include "support/grpc_log.h"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");   // widths of what is not ASCII
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe ends the output, not the program in mid-request
  berth::SilenceGrpc();
  const char* no_color = std::getenv("NO_COLOR");
  const berth::CliIo io{std::cout,
                        std::cerr,
                        isatty(STDOUT_FILENO) == 1,
                        no_color != nullptr && *no_color != '\0',
                        absl::LocalTimeZone(),
                        berth::SystemEnvironment()};
  return berth::RunBerth(std::vector<std::string>(argv + 1, argv + argc), io);
}

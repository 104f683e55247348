// `berth`, the command line, as a function: tests run it with a server and streams of their own.
#ifndef BERTH_CLIENTS_CLI_APP_H_
#define BERTH_CLIENTS_CLI_APP_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// `arguments` without the program's name. Gives the exit code (exit_code.h). Blocks as long as the
// command does.
int RunBerth(const std::vector<std::string>& arguments, const CliIo& io);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_APP_H_

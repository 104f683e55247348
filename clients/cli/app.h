// The `berth` command line as a function. Tests run it with their own server and streams.
#ifndef BERTH_CLIENTS_CLI_APP_H_
#define BERTH_CLIENTS_CLI_APP_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// `arguments` excludes the name of the program. Returns the exit code (exit_code.h). Blocks until
// the command ends.
int RunBerth(const std::vector<std::string>& arguments, const CliIo& io);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_APP_H_

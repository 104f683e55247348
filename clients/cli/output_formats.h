// Which values of -o a command has. What it does not have is refused, rather than ignored.
#ifndef BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_
#define BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// Those of `command` ("job logs"), which may be none; null for a command that is not known here:
// all are refused.
const std::vector<Format>* FormatsOf(const std::string& command);

// "" if `command` ("job logs") has the format, else what is wrong.
std::string FormatRefusal(const std::string& command, Format format);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_

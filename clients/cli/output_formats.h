// The values of -o that each command supports. Others are refused rather than ignored.
#ifndef BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_
#define BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_

#include <string>
#include <vector>

#include "clients/cli/session.h"

namespace berth {

// The formats of `command` ("job logs"), possibly none; null for an unknown command, for which all
// are refused.
const std::vector<Format>* FormatsOf(const std::string& command);

// "" if `command` ("job logs") supports the format, otherwise the error.
std::string FormatRefusal(const std::string& command, Format format);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_OUTPUT_FORMATS_H_

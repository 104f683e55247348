// Lines of comma-separated values (RFC 4180), for -o csv.
#ifndef BERTH_CLIENTS_CLI_CSV_H_
#define BERTH_CLIENTS_CLI_CSV_H_

#include <string>
#include <vector>

namespace berth {

// One line with a newline at the end. Cells with a comma, a quote or a line break are quoted.
std::string CsvLine(const std::vector<std::string>& cells);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_CSV_H_

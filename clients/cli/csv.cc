#include "clients/cli/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace berth {

std::string CsvLine(const std::vector<std::string>& cells) {
  const auto add = [](std::string* out, const std::string& cell) {
    const bool plain = cell.find_first_of(",\"\r\n") == std::string::npos;
    absl::StrAppend(
        out, plain ? cell : absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\""));
  };
  return absl::StrCat(absl::StrJoin(cells, ",", add), "\n");
}

}  // namespace berth

#include "clients/slurm/row_text.h"

namespace berth {

std::string InWidth(absl::string_view text, int width, bool right, char mark) {
  if (width <= 0) return std::string(text);
  const auto wide = static_cast<size_t>(width);
  if (text.size() > wide) {
    std::string cut(text.substr(0, wide));
    if (mark != 0) cut.back() = mark;
    return cut;
  }
  const std::string blanks(wide - text.size(), ' ');
  return right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace berth

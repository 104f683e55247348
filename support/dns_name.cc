#include "support/dns_name.h"

#include <algorithm>

namespace berth {

bool IsDnsLabel(absl::string_view text) {
  if (text.empty() || text.size() > kMaxLabelBytes) return false;
  if (!IsLowerAlnum(text.front()) || !IsLowerAlnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

bool IsDnsName(absl::string_view text) {
  if (text.size() > kMaxDnsNameBytes) return false;
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == absl::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace berth

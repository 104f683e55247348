#include "clients/cli/quick_values.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/quantity.h"

namespace berth {
namespace {

absl::Status Expected(absl::string_view what, absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", got \"", got, "\""));
}

}  // namespace

absl::StatusOr<v1::TopologyConstraint> ParseTopology(absl::string_view text) {
  const size_t colon = text.find(':');
  const bool has_mode = colon != absl::string_view::npos;
  const absl::string_view mode = has_mode ? text.substr(0, colon) : "hard";
  const absl::string_view tier = has_mode ? text.substr(colon + 1) : text;
  if ((mode != "hard" && mode != "soft") || tier.empty()) {
    return Expected("a tier such as rack or 2, or MODE:TIER such as soft:rack", text);
  }
  v1::TopologyConstraint topology;
  topology.set_mode(mode == "hard" ? v1::TopologyConstraint::HARD : v1::TopologyConstraint::SOFT);
  int32_t number = 0;
  if (absl::SimpleAtoi(tier, &number)) {
    topology.set_highest_tier(number);
  } else {
    topology.set_highest_tier_name(std::string(tier));
  }
  return topology;
}

absl::StatusOr<v1::Volume> ParseVolume(absl::string_view text) {
  constexpr absl::string_view kExpected = "HOST:PATH[:ro], absolute paths such as /data:/data:ro";
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() > 3 || !absl::StartsWith(parts[0], "/")) return Expected(kExpected, text);
  v1::Volume volume;
  volume.set_host_path(parts[0]);
  const std::string& path = parts.size() > 1 ? parts[1] : parts[0];
  if (!absl::StartsWith(path, "/")) return Expected(kExpected, text);
  volume.set_path(path);
  if (parts.size() < 3) return volume;
  if (parts[2] != "ro" && parts[2] != "rw") return Expected(kExpected, text);
  volume.set_read_only(parts[2] == "ro");
  return volume;
}

absl::StatusOr<v1::Volume> ParseTmpfs(absl::string_view text) {
  constexpr absl::string_view kExpected = "PATH[:SIZE], such as /tmp:16Gi";
  const size_t colon = text.find(':');
  const absl::string_view path = text.substr(0, colon);
  if (!absl::StartsWith(path, "/")) return Expected(kExpected, text);
  v1::Volume volume;
  volume.set_path(std::string(path));
  volume.mutable_tmpfs();
  if (colon == absl::string_view::npos) return volume;
  absl::string_view size = text.substr(colon + 1);
  std::string upper;
  if (absl::ConsumePrefix(&size, "size=") && !size.empty()) {  // docker's 64m, 16g are binary
    upper = absl::StrCat(size);
    const char last = upper.back();
    if (last == 'k' || last == 'm' || last == 'g') {
      upper.back() = static_cast<char>(last - 'a' + 'A');
      upper += 'i';
    }
    size = upper;
  }
  const absl::StatusOr<int64_t> bytes = ParseBytes(size);
  if (!bytes.ok() || *bytes <= 0) return Expected(kExpected, text);
  volume.mutable_tmpfs()->set_size_bytes(*bytes);
  return volume;
}

}  // namespace berth

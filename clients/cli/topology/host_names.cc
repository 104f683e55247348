#include "clients/cli/topology/host_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/topology/node_names.h"

namespace berth {
namespace {

constexpr std::array<absl::string_view, 12> kInstallationNames = {
    "localhost", "localhost.localdomain",
    "ubuntu",    "debian",
    "centos",    "rocky",
    "almalinux", "fedora",
    "linux",     "none",
    "unknown",   "nodename"};

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// "HCA-1", "mlx5_0", "hfi1_0", "ib0", "ibp24s0", "rocep1s0f0".
bool IsDevice(absl::string_view text) {
  const std::string word = absl::AsciiStrToLower(text);
  if (absl::StartsWith(word, "hca-")) return IsDigits(absl::string_view(word).substr(4));
  if (absl::StartsWith(word, "ib") || absl::StartsWith(word, "roce")) return true;
  const size_t bar = word.rfind('_');
  return bar != std::string::npos && bar > 0 && IsDigits(absl::string_view(word).substr(bar + 1));
}

// "MT4129", the default name of an adapter.
bool IsAdapterModel(absl::string_view word) {
  return absl::StartsWith(word, "MT") && IsDigits(word.substr(2));
}

// Gb/s of one lane, in thousandths.
int64_t LaneMilliGbps(absl::string_view speed) {
  static constexpr std::pair<const char*, int64_t> kLanes[] = {
      {"SDR", 2'500},  {"DDR", 5'000},  {"QDR", 10'000},  {"FDR10", 10'000}, {"FDR", 14'000},
      {"EDR", 25'000}, {"HDR", 50'000}, {"NDR", 100'000}, {"XDR", 200'000}};
  for (const auto& [name, lane] : kLanes) {
    if (speed == name) return lane;
  }
  return 0;
}

}  // namespace

AdapterOwner OwnerFromDescription(absl::string_view description) {
  using Kind = AdapterOwner::Kind;
  if (absl::StrContains(description, "Aggregation Node")) return {Kind::kAggregation, ""};
  const std::vector<absl::string_view> words =
      absl::StrSplit(description, absl::ByAnyChar(" \t'"), absl::SkipEmpty());
  const bool names_host = words.size() == 1 || (words.size() == 2 && IsDevice(words[1]));
  if (!names_host || IsAdapterModel(words[0])) return {};
  std::string node = NodeNameFrom(words[0]);
  const bool common = std::find(kInstallationNames.begin(), kInstallationNames.end(), node) !=
                      kInstallationNames.end();
  if (node.empty() || common) return {};
  if (absl::StrContains(node, "ufm")) return {Kind::kManager, ""};
  return {Kind::kHost, std::move(node)};
}

std::string GuidFrom(absl::string_view text) {
  constexpr size_t kGuidDigits = 16;
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "0x")) absl::ConsumePrefix(&text, "0X");
  std::string guid;
  for (const char c : text) {
    if (c == ':') continue;
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return "";
    guid.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
  }
  if (guid.empty() || guid.size() > kGuidDigits) return "";
  return guid.insert(0, kGuidDigits - guid.size(), '0');
}

absl::StatusOr<PortOwners> ReadPortOwners(const std::vector<SourceText>& texts) {
  PortOwners owners;
  for (const SourceText& text : texts) {
    YamlErrors errors(text.name);
    int number = 0;
    for (const absl::string_view raw : absl::StrSplit(text.text, '\n')) {
      const YamlPosition position{++number, 1};
      const absl::string_view line = absl::StripAsciiWhitespace(raw);
      if (line.empty() || line[0] == '#' || absl::EqualsIgnoreCase(line, "node,guid")) continue;
      const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
      const std::string node = NodeNameFrom(absl::StripAsciiWhitespace(fields[0]));
      const std::string guid = fields.size() == 2 ? GuidFrom(fields[1]) : "";
      if (node.empty() || guid.empty()) {
        errors.Add(position, "expected NODE,GUID");
        continue;
      }
      const auto inserted = owners.emplace(guid, node);
      if (!inserted.second && inserted.first->second != node) {
        errors.Add(position, absl::StrCat("GUID ", guid, " belongs to both ",
                                          inserted.first->second, " and ", node));
      }
    }
    if (!errors.empty()) return errors.status();
  }
  return owners;
}

int64_t LinkGbps(absl::string_view rate) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rate, absl::MaxSplits('x', 1));
  int64_t width = 0;
  if (!absl::SimpleAtoi(parts.first, &width) || width < 1 || width > 12) return 0;
  return width * LaneMilliGbps(parts.second) / 1000;
}

}  // namespace berth

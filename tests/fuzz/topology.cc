// Files of fabric managers and other schedulers: they result in groups that are equal to
// themselves, or in an error with a reason.
#include <cstdio>
#include <cstdlib>

#include "clients/cli/topology/import.h"
#include "core/base/check.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

void Import(const TopologyFormat& format, absl::string_view text) {
  ImportInput input;
  input.texts.push_back({"f", std::string(text)});
  input.nodes = {{"n1", {{"rack", "r1"}, {"block", "b1"}}},
                 {"n2", {{"rack", "r1"}}},
                 {"n3", {{"rack", std::string(text)}}}};
  input.labels = {"block", "rack"};
  if (format.takes_ports) input.ports = {{"p", std::string(text)}};
  const auto read = ReadTopology(format, input, "");
  if (!read.ok()) {
    BERTH_CHECK(absl::IsInvalidArgument(read.status()) && !read.status().message().empty());
    return;
  }
  const NamingOptions naming{.source = "import/f", .prefix = ""};
  const auto made = MakeHyperNodes(*read, naming, {});
  if (!made.ok()) return;
  const auto same = Compare(*made, naming.source, *made);
  BERTH_CHECK(same.ok() && same->unchanged() == static_cast<int64_t>(made->size()));
  const auto again = MakeHyperNodes(*read, naming, *made);
  BERTH_CHECK(again.ok() && again->size() == made->size());
}

}  // namespace

// The first line names the format; if it is missing or unknown, all formats are tried.
void FuzzOne(absl::string_view input) {
  const size_t line = std::min(input.find('\n'), input.size());
  const absl::string_view text = input.substr(std::min(line + 1, input.size()));
  const TopologyFormat* named = FindTopologyFormat(input.substr(0, line));
  if (named != nullptr) return Import(*named, text);
  for (const TopologyFormat& format : TopologyFormats()) Import(format, input);
}

}  // namespace berth::fuzz

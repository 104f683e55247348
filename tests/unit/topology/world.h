// Imports of texts, and HyperNodes as lines that tests can compare.
#ifndef BERTH_TESTS_UNIT_TOPOLOGY_WORLD_H_
#define BERTH_TESTS_UNIT_TOPOLOGY_WORLD_H_

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/import.h"
#include "clients/cli/topology/node_names.h"

namespace berth {

using HyperNodes = std::vector<v1::HyperNode>;

// "f" is the file's name in messages.
inline ImportInput TextInput(const std::string& text) {
  ImportInput input;
  input.texts.push_back({"f", text});
  return input;
}

// One import, with the names that its HyperNodes get. `present`: the HyperNodes before it.
struct Import {
  HyperNodes made;
  std::vector<std::string> warnings;
  std::string error;  // if the import failed
};
inline Import RunImport(const std::string& format, const ImportInput& input,
                        const HyperNodes& present = {}, const std::string& prefix = "",
                        const std::string& kind = "") {
  Import import;
  const auto read = ReadTopology(*FindTopologyFormat(format), input, kind);
  if (!read.ok()) {
    CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
    import.error = std::string(read.status().message());
    return import;
  }
  import.warnings = read->warnings;
  const auto made = MakeHyperNodes(*read, {"import/" + format, prefix}, present);
  if (made.ok()) import.made = *made;
  if (!made.ok()) import.error = std::string(made.status().message());
  return import;
}
inline Import RunImport(const std::string& format, const std::string& text,
                        const HyperNodes& present = {}) {
  return RunImport(format, TextInput(text), present);
}

// "s3 network 2 spine: s0 s1 | dev6": HyperNodes before the bar, nodes after it.
inline std::string LineOf(const v1::HyperNode& hyper_node) {
  const v1::HyperNodeSpec& spec = hyper_node.spec();
  std::string text = absl::StrCat(hyper_node.name(), " ", spec.kind(), " ", spec.tier(), " ",
                                  spec.tier_name(), ":");
  std::vector<std::string> nodes;
  for (const auto& member : spec.members()) {
    if (member.type() == v1::HyperNodeSpec::Member::NODE) {
      nodes.push_back(member.exact());
    } else {
      absl::StrAppend(&text, " ", member.exact());
    }
  }
  if (!nodes.empty()) absl::StrAppend(&text, " | ", absl::StrJoin(FoldNames(nodes), " "));
  if (spec.bandwidth_gbps() > 0) absl::StrAppend(&text, " @", spec.bandwidth_gbps());
  return text;
}
inline std::string LinesOf(const HyperNodes& hyper_nodes) {
  std::string text;
  for (const v1::HyperNode& hyper_node : hyper_nodes)
    absl::StrAppend(&text, LineOf(hyper_node), "\n");
  return text;
}
// The lines, after "\n", or the error.
inline std::string Outcome(const Import& import) {
  return import.error.empty() ? "\n" + LinesOf(import.made) : import.error;
}

// A second import of the same input finds no difference.
inline void CheckRepeats(const std::string& format, const ImportInput& input) {
  const Import first = RunImport(format, input);
  REQUIRE(first.error == "");
  const Import second = RunImport(format, input, first.made);
  CHECK(LinesOf(second.made) == LinesOf(first.made));
  const auto difference = Compare(second.made, "import/" + format, first.made);
  REQUIRE(difference.ok());
  CHECK(difference->unchanged() == static_cast<int64_t>(first.made.size()));
  CHECK(difference->created_size() + difference->updated_size() + difference->deleted_size() == 0);
}

// Reads a fixture below BERTH_FIXTURES/topology. Without fixtures: warns and returns false.
inline bool ReadFixture(const std::string& path, ImportInput* input) {
  const char* root = std::getenv("BERTH_FIXTURES");
  if (root == nullptr || *root == '\0') {
    WARN("skipped: BERTH_FIXTURES is not set");
    return false;
  }
  std::ifstream file(absl::StrCat(root, "/topology/", path));
  INFO(path);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  input->texts.push_back({path.substr(path.rfind('/') + 1), text.str()});
  return true;
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_TOPOLOGY_WORLD_H_

// Reads manifests of other schedulers in tests.
#ifndef BERTH_TESTS_UNIT_CLI_FOREIGN_MANIFEST_H_
#define BERTH_TESTS_UNIT_CLI_FOREIGN_MANIFEST_H_

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/manifest.h"

namespace berth {

struct Converted {
  std::vector<Manifest> manifests;
  std::vector<std::string> warnings;

  const v1::JobSpec& spec(size_t i = 0) const { return manifests.at(i).job.spec(); }
  const v1::TaskGroup& group(int i = 0) const { return spec().groups(i); }
  bool Warned(absl::string_view text) const {
    return absl::StrContains(absl::StrJoin(warnings, "\n"), text);
  }
};

inline Converted Convert(const std::string& text) {
  Converted result;
  auto manifests = ReadManifests(text, "f.yaml", ManifestOptions{}, &result.warnings);
  INFO(text);
  INFO(manifests.status());
  REQUIRE(manifests.ok());
  result.manifests = *std::move(manifests);
  return result;
}

inline std::string Errors(const std::string& text) {
  std::vector<std::string> warnings;
  return std::string(
      ReadManifests(text, "f.yaml", ManifestOptions{}, &warnings).status().message());
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CLI_FOREIGN_MANIFEST_H_

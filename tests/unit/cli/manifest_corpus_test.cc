// The example manifests of tests/manifests: what they become can be written as Berth's manifests,
// and reads back as the same.
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "google/protobuf/util/message_differencer.h"
#include "support/text_file.h"
#include "tests/unit/cli/foreign_manifest.h"

namespace berth {
namespace {

using google::protobuf::util::MessageDifferencer;

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(BERTH_MANIFESTS)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("example manifests of other schedulers can be written as Berth's") {
  size_t jobs = 0, refused = 0;
  for (const std::string& file : CorpusFiles()) {
    INFO(file);
    const auto text = ReadTextFile(file);
    REQUIRE(text.ok());
    std::vector<std::string> warnings;
    const auto manifests = ReadManifests(*text, file, ManifestOptions{}, &warnings);
    if (!manifests.ok()) {
      ++refused;
      continue;
    }
    for (const Manifest& manifest : *manifests) {
      if (manifest.kind != Manifest::Kind::kJob) continue;
      const std::string written = WriteManifest(manifest.job);
      INFO(written);
      const Converted again = Convert(written);
      REQUIRE(again.manifests.size() == 1);
      CHECK(MessageDifferencer::Equals(again.manifests[0].job, manifest.job));
      ++jobs;
    }
  }
  CHECK(jobs > 60);
  CHECK(refused == 14);
}

// Every line once left out, and once with another value.
std::vector<std::string> Variants(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<std::string> variants;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(": ");
    for (const char* value : {"", "-1", "[a, {b: c}]", "{x: }", "null", "\"$(A) ${B} $$\""}) {
      std::vector<std::string> changed = lines;
      if (*value == 0) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      if (*value != 0 && colon == std::string::npos) continue;
      if (*value != 0) changed[i] = absl::StrCat(lines[i].substr(0, colon + 2), value);
      variants.push_back(absl::StrJoin(changed, "\n"));
    }
  }
  return variants;
}

TEST_CASE("manifests of other schedulers with any line changed are read or refused") {
  size_t accepted = 0;
  for (const std::string& file : CorpusFiles()) {
    const auto text = ReadTextFile(file);
    REQUIRE(text.ok());
    for (const std::string& variant : Variants(*text)) {
      std::vector<std::string> warnings;
      const auto manifests = ReadManifests(variant, file, ManifestOptions{}, &warnings);
      if (!manifests.ok()) continue;
      ++accepted;
      for (const Manifest& manifest : *manifests) {
        if (manifest.kind != Manifest::Kind::kJob) continue;
        const std::string written = WriteManifest(manifest.job);
        const auto again = ReadManifests(written, "again", ManifestOptions{}, &warnings);
        INFO(variant);
        INFO(written);
        INFO(again.status());
        REQUIRE(again.ok());
        REQUIRE(MessageDifferencer::Equals(again->at(0).job, manifest.job));
      }
    }
  }
  CHECK(accepted > 1000);
}

}  // namespace
}  // namespace berth

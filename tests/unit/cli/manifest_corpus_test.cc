// The example manifests of tests/manifests: what they become can be written as Berth's manifests,
// and reads back as the same.
#include <catch2/catch.hpp>
#include <filesystem>

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
  CHECK(refused == 21);
}

}  // namespace
}  // namespace berth

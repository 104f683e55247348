// Image layouts: index, manifest and configuration, each named by its digest.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/oci_layout.h"
#include "tests/fuzz/steps.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

// Created once per process, in memory if possible.
const std::string& Layout() {
  static const auto* path = [] {
    std::string pattern =
        absl::StrCat(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", "/berth-fuzz-XXXXXX");
    auto* made = new std::string(mkdtemp(pattern.data()));
    std::filesystem::create_directories(*made + "/blobs/sha256");
    std::atexit([] { std::filesystem::remove_all(Layout()); });
    return made;
  }();
  return *path;
}

void Write(const std::string& path, absl::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

// Steps are blobs, and the last one is also the index; "$0", "$1" are replaced by the digests of
// earlier steps.
void FuzzOne(absl::string_view input) {
  std::vector<std::pair<std::string, std::string>> digests;
  std::vector<std::string> files;
  std::string text;
  for (const Step& step : ReadSteps(input)) {
    text = absl::StrReplaceAll(step.body, digests);
    const std::string hex = Sha256Hex(text);
    digests.emplace_back(absl::StrCat("$", digests.size()), absl::StrCat(kDigestPrefix, hex));
    files.push_back(absl::StrCat(Layout(), "/blobs/sha256/", hex));
    Write(files.back(), text);
  }
  Write(Layout() + "/index.json", text);
  Write(Layout() + "/oci-layout", R"({"imageLayoutVersion": "1.0.0"})");
  const auto image = ReadOciImage(Layout(), "team/torch:2.3", "amd64");
  if (image.ok()) (void)VerifyLayers(Layout(), *image);
  for (const std::string& file : files) unlink(file.c_str());
}

}  // namespace berth::fuzz

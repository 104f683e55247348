// Builds OCI layouts, valid ones and hostile ones, without any tool.
#ifndef BERTH_TESTS_UNIT_IMAGES_LAYOUT_BUILDER_H_
#define BERTH_TESTS_UNIT_IMAGES_LAYOUT_BUILDER_H_

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/oci_layout.h"

namespace berth::testing {

struct TarEntry {
  std::string name;
  char type = '0';  // '0' file, '1' hard link, '2' link, '3' character device, '5' directory
  std::string content = "";
  std::string link = "";
  int mode = 0755;
};

inline void PutOctal(std::string* block, size_t at, size_t width, uint64_t value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(width - 1),
                static_cast<unsigned long long>(value));
  block->replace(at, width - 1, digits);
}

// A tar of version "ustar"; device files are 1:3, /dev/null.
inline std::string Tar(const std::vector<TarEntry>& entries) {
  std::string tar;
  for (const TarEntry& entry : entries) {
    std::string block(512, '\0');
    block.replace(0, entry.name.size(), entry.name);
    PutOctal(&block, 100, 8, static_cast<uint64_t>(entry.mode));
    PutOctal(&block, 108, 8, 0);
    PutOctal(&block, 116, 8, 0);
    PutOctal(&block, 124, 12, entry.content.size());
    PutOctal(&block, 136, 12, 0);
    block.replace(148, 8, 8, ' ');
    block[156] = entry.type;
    block.replace(157, entry.link.size(), entry.link);
    block.replace(257, 6, std::string("ustar\0", 6));
    block.replace(263, 2, "00");
    PutOctal(&block, 329, 8, 1);
    PutOctal(&block, 337, 8, 3);
    uint64_t sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    PutOctal(&block, 148, 7, sum);
    tar += block + entry.content;
    tar.append((512 - tar.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

inline constexpr char kLayerType[] = "application/vnd.oci.image.layer.v1.tar";
inline constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
inline constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";

class LayoutBuilder {
 public:
  explicit LayoutBuilder(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_ + "/blobs/sha256");
    std::ofstream(path_ + "/oci-layout") << R"({"imageLayoutVersion":"1.0.0"})";
  }

  const std::string& path() const { return path_; }
  static std::string Digest(const std::string& content) { return "sha256:" + Sha256Hex(content); }
  std::string BlobFile(const std::string& digest) const {
    return absl::StrCat(path_, "/blobs/sha256/", digest.substr(7));
  }
  static std::string Descriptor(const std::string& type, const std::string& digest, size_t size,
                                const std::string& more = "") {
    return absl::StrCat(R"({"mediaType":")", type, R"(","digest":")", digest, R"(","size":)", size,
                        more, "}");
  }
  std::string AddBlob(const std::string& type, const std::string& content,
                      const std::string& more = "") {
    std::ofstream(BlobFile(Digest(content)), std::ios::binary) << content;
    return Descriptor(type, Digest(content), content.size(), more);
  }
  // The descriptor of an image's manifest. `more`: further fields, ",\"platform\":{...}".
  std::string AddImage(const std::vector<std::vector<TarEntry>>& layers,
                       const std::string& config = "{}", const std::string& more = "",
                       const std::string& architecture = HostArchitecture()) {
    std::vector<std::string> descriptors, sums;
    for (const std::vector<TarEntry>& layer : layers) {
      const std::string tar = Tar(layer);
      descriptors.push_back(AddBlob(kLayerType, tar));
      sums.push_back("\"" + Digest(tar) + "\"");
      layer_digests.push_back(Digest(tar));
    }
    const std::string whole =
        absl::StrCat(R"({"architecture":")", architecture, R"(","os":"linux","config":)", config,
                     R"(,"rootfs":{"type":"layers","diff_ids":[)", absl::StrJoin(sums, ","), "]}}");
    return AddManifest(AddBlob("application/vnd.oci.image.config.v1+json", whole), descriptors,
                       more);
  }
  std::string AddManifest(const std::string& config, const std::vector<std::string>& layers,
                          const std::string& more = "") {
    const std::string manifest = absl::StrCat(R"({"schemaVersion":2,"config":)", config,
                                              R"(,"layers":[)", absl::StrJoin(layers, ","), "]}");
    manifest_digest = Digest(manifest);
    return AddBlob(kManifestType, manifest, more);
  }
  std::string AddIndex(const std::vector<std::string>& manifests, const std::string& more = "") {
    return AddBlob(kIndexType, Index(manifests), more);
  }
  void WriteIndex(const std::vector<std::string>& manifests) {
    std::ofstream(path_ + "/index.json") << Index(manifests);
  }
  static std::string Tag(const std::string& tag) {
    return absl::StrCat(R"(,"annotations":{"org.opencontainers.image.ref.name":")", tag, "\"}");
  }
  static std::string Platform(const std::string& os, const std::string& architecture) {
    return absl::StrCat(R"(,"platform":{"os":")", os, R"(","architecture":")", architecture, "\"}");
  }

  std::string manifest_digest;             // of the last image
  std::vector<std::string> layer_digests;  // of all images

 private:
  static std::string Index(const std::vector<std::string>& manifests) {
    return absl::StrCat(R"({"schemaVersion":2,"manifests":[)", absl::StrJoin(manifests, ","), "]}");
  }

  const std::string path_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_IMAGES_LAYOUT_BUILDER_H_

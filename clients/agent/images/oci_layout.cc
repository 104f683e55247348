#include "clients/agent/images/oci_layout.h"

#include <google/protobuf/util/json_util.h>
#include <sys/utsname.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "clients/agent/images/blob.h"

namespace berth {
namespace {

using agent::v1::OciDescriptor;
using agent::v1::OciIndex;

constexpr char kRefName[] = "org.opencontainers.image.ref.name";
constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";
constexpr int64_t kMaxJsonBytes = int64_t{4} << 20;
constexpr int kMaxLayers = 1000;
constexpr int kMaxIndexDepth = 3;
constexpr size_t kMaxNamesTold = 10;
constexpr size_t kMaxWordBytes = 100;

// Text from a layout, escaped for messages.
std::string Word(absl::string_view text) {
  return absl::Utf8SafeCHexEscape(text.substr(0, kMaxWordBytes));
}

absl::Status ParseJson(const std::string& what, const std::string& text,
                       google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, message, options);
  if (status.ok()) return absl::OkStatus();
  const std::string why = status.ToString();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " does not follow the OCI image specification: ", Word(why)));
}

absl::Status ReadBlob(const std::string& layout, const OciDescriptor& descriptor,
                      google::protobuf::Message* message) {
  const auto path = BlobPath(layout, descriptor.digest());
  if (!path.ok()) return path.status();
  const std::string what = absl::StrCat("blob ", descriptor.digest(), " of ", layout);
  const auto text = ReadSmallFile(*path, what, kMaxJsonBytes);
  if (!text.ok()) return text.status();
  if (Sha256Hex(*text) != absl::StripPrefix(descriptor.digest(), kDigestPrefix))
    return absl::DataLossError(absl::StrCat(what, " is damaged: its digest does not match"));
  return ParseJson(what, *text, message);
}

std::string RefName(const OciDescriptor& descriptor) {
  const auto found = descriptor.annotations().find(kRefName);
  return found == descriptor.annotations().end() ? "" : found->second;
}

std::string Tags(const OciIndex& index) {
  std::set<std::string> names;
  for (const OciDescriptor& entry : index.manifests()) {
    if (!RefName(entry).empty() && names.size() < kMaxNamesTold) names.insert(Word(RefName(entry)));
  }
  return names.empty() ? "no tags" : absl::StrJoin(names, ", ");
}

std::string PlatformsOf(const OciIndex& index) {
  std::set<std::string> names;
  for (const OciDescriptor& entry : index.manifests()) {
    if (names.size() >= kMaxNamesTold) break;
    names.insert(Word(absl::StrCat(entry.platform().os(), "/", entry.platform().architecture())));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

// The first entry for this platform, as the specification requires; otherwise the first without a
// platform.
absl::StatusOr<OciDescriptor> ForPlatform(const OciIndex& index, const std::string& what,
                                          const std::string& architecture) {
  const OciDescriptor* silent = nullptr;
  for (const OciDescriptor& entry : index.manifests()) {
    const bool says = entry.has_platform();
    if (says && entry.platform().os() == "linux" && entry.platform().architecture() == architecture)
      return entry;
    if (!says && silent == nullptr) silent = &entry;
  }
  if (silent != nullptr) return *silent;
  return absl::NotFoundError(absl::StrCat(what, " has no image for linux/", architecture,
                                          "; it has: ", PlatformsOf(index)));
}

OciIndex Matching(const OciIndex& index, const std::string& tag, bool whole) {
  OciIndex found;
  for (const OciDescriptor& entry : index.manifests()) {
    const std::string name = RefName(entry);
    if (name == tag || (!whole && absl::EndsWith(name, absl::StrCat(":", tag))))
      *found.add_manifests() = entry;
  }
  return found;
}

// The entries of index.json that the tag names: one, or one per platform.
absl::StatusOr<OciIndex> ByTag(const OciIndex& index, const std::string& layout,
                               const std::string& tag) {
  if (tag.empty() && index.manifests_size() == 1) return index;
  OciIndex found = Matching(index, tag, true);
  if (tag.empty() && found.manifests().empty()) return ByTag(index, layout, "latest");
  if (found.manifests().empty()) found = Matching(index, tag, false);
  if (found.manifests().empty()) {
    return absl::NotFoundError(
        absl::StrCat("the OCI layout ", layout, " has no tag ", tag, "; it has: ", Tags(index)));
  }
  for (const OciDescriptor& entry : found.manifests()) {
    if (RefName(entry) == RefName(found.manifests(0))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tag ", tag, " of the OCI layout ", layout, " is ambiguous: ", Tags(found)));
  }
  return found;
}

absl::StatusOr<OciDescriptor> Resolve(const std::string& layout, OciDescriptor descriptor,
                                      const std::string& architecture) {
  for (int depth = 0; descriptor.media_type() == kIndexType; ++depth) {
    if (depth == kMaxIndexDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat(layout, ": indexes are nested more than ", kMaxIndexDepth, " deep"));
    }
    OciIndex index;
    if (absl::Status status = ReadBlob(layout, descriptor, &index); !status.ok()) return status;
    const std::string what = absl::StrCat("index ", descriptor.digest(), " of ", layout);
    auto next = ForPlatform(index, what, architecture);
    if (!next.ok()) return next.status();
    descriptor = *std::move(next);
  }
  if (descriptor.media_type() == kManifestType) return descriptor;
  const bool docker = absl::StartsWith(descriptor.media_type(), "application/vnd.docker.");
  return absl::UnimplementedError(absl::StrCat(
      layout, ": ", Word(descriptor.digest()), " has type ", Word(descriptor.media_type()),
      ", which is not an OCI image", docker ? ": copy it with skopeo copy --format oci" : ""));
}

absl::Status CheckLayers(const std::string& layout, const agent::v1::OciManifest& manifest) {
  if (manifest.layers_size() > kMaxLayers) {
    return absl::InvalidArgumentError(absl::StrCat(
        layout, ": the image has ", manifest.layers_size(), " layers; at most ", kMaxLayers));
  }
  for (const OciDescriptor& layer : manifest.layers()) {
    const auto path = BlobPath(layout, layer.digest());
    if (!path.ok()) return path.status();
    const std::string what = absl::StrCat("blob ", layer.digest(), " of ", layout);
    const auto bytes = FileBytes(*path, what);
    if (!bytes.ok()) return bytes.status();
    if (*bytes == layer.size()) continue;
    return absl::DataLossError(
        absl::StrCat(what, " is damaged: it has ", *bytes, " bytes instead of ", layer.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> BlobPath(const std::string& layout, const std::string& digest) {
  absl::string_view hex = digest;
  const bool good = absl::ConsumePrefix(&hex, kDigestPrefix) && hex.size() == 64 &&
                    std::all_of(hex.begin(), hex.end(), [](char c) {
                      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                    });
  if (good) return absl::StrCat(layout, "/blobs/sha256/", hex);
  return absl::InvalidArgumentError(absl::StrCat(
      layout, ": \"", Word(digest), "\" is not a digest (sha256: and 64 hexadecimal digits)"));
}

absl::StatusOr<OciImage> ReadOciImage(const std::string& layout, const std::string& tag,
                                      const std::string& architecture) {
  const std::string file = layout + "/index.json";
  const auto text = ReadSmallFile(file, file, kMaxJsonBytes);
  if (!text.ok()) return text.status();
  OciIndex index;
  if (absl::Status status = ParseJson(file, *text, &index); !status.ok()) return status;
  const auto tagged = ByTag(index, layout, tag);
  if (!tagged.ok()) return tagged.status();
  auto chosen = tagged->manifests_size() == 1 ? absl::StatusOr<OciDescriptor>(tagged->manifests(0))
                                              : ForPlatform(*tagged, layout, architecture);
  if (chosen.ok()) chosen = Resolve(layout, *std::move(chosen), architecture);
  if (!chosen.ok()) return chosen.status();
  OciImage image;
  image.descriptor = *std::move(chosen);
  absl::Status status = ReadBlob(layout, image.descriptor, &image.manifest);
  if (status.ok()) status = ReadBlob(layout, image.manifest.config(), &image.config);
  if (status.ok()) status = CheckLayers(layout, image.manifest);
  if (!status.ok()) return status;
  const bool fits = image.config.os().empty() || image.config.os() == "linux";
  const std::string& built_for = image.config.architecture();
  if (fits && (built_for.empty() || built_for == architecture)) return image;
  return absl::FailedPreconditionError(absl::StrCat(layout, ": the image is for ",
                                                    Word(image.config.os()), "/", Word(built_for),
                                                    ", but this node is linux/", architecture));
}

absl::StatusOr<SentManifest> ReadSentManifest(const std::string& text, const std::string& what,
                                              const std::string& architecture) {
  OciIndex index;
  SentManifest sent;
  absl::Status status = ParseJson(what, text, &index);
  if (status.ok() && !index.manifests().empty()) {
    const auto entry = ForPlatform(index, what, architecture);
    if (!entry.ok()) return entry.status();
    if (const auto path = BlobPath(what, entry->digest()); !path.ok()) return path.status();
    sent.digest = entry->digest();
    return sent;
  }
  if (status.ok()) status = ParseJson(what, text, &sent.manifest);
  if (!status.ok()) return status;
  if (sent.manifest.layers_size() > kMaxLayers || !sent.manifest.has_config()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is no image of up to ", kMaxLayers,
                                                   " layers, as OCI and Docker describe it"));
  }
  return sent;
}

absl::Status VerifyLayers(const std::string& layout, const OciImage& image) {
  for (const OciDescriptor& layer : image.manifest.layers()) {
    const auto path = BlobPath(layout, layer.digest());
    if (!path.ok()) return path.status();
    const std::string what = absl::StrCat("blob ", layer.digest(), " of ", layout);
    const auto digest = FileSha256Hex(*path, what);
    if (!digest.ok()) return digest.status();
    if (*digest == absl::StripPrefix(layer.digest(), kDigestPrefix)) continue;
    return absl::DataLossError(absl::StrCat(what, " is damaged: its digest does not match"));
  }
  return absl::OkStatus();
}

std::string HostArchitecture() {
  utsname info;
  if (uname(&info) != 0) return "unknown";
  const std::string machine = info.machine;
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  if (machine == "armv7l") return "arm";
  return machine;
}

}  // namespace berth

#include "clients/agent/images/registry_pull.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/file_tree.h"
#include "clients/agent/images/oci_layout.h"

namespace berth {
namespace {

constexpr absl::Duration kTellEvery = absl::Seconds(1);
constexpr char kPartPrefix[] = "oci-put-blob";  // as skopeo names what it is writing
constexpr int64_t kMostLayerBytes = int64_t{1} << 50;
constexpr size_t kBlobsBytes = sizeof "/blobs" - 1;
constexpr int64_t kLeastFileBytes = int64_t{64} << 20;

absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoError(absl::StrCat("create ", path));
}

int64_t BytesOf(const std::filesystem::path& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

}  // namespace

RegistryPull::RegistryPull(const agent::v1::ImageRequest& request, Hooks hooks)
    : request_(request),
      pull_(request.pull()),
      hooks_(std::move(hooks)),
      blobs_(request.cache() + "/pulled/blobs"),
      layout_(absl::StrCat(request.cache(), "/pulled/", request.pull().key())),
      skopeo_(request.pull().skopeo(), layout_,
              std::max(request.max_image_bytes(), kLeastFileBytes)),
      began_(absl::Now()),
      moved_(began_),
      told_(began_) {}

absl::Status RegistryPull::Resolve() {
  if (access(pull_.skopeo().c_str(), X_OK) != 0) {
    return absl::InternalError(
        absl::StrCat(pull_.skopeo(), " (images.skopeo) does not exist: apt-get install skopeo"));
  }
  absl::Status status = MakeDirectory(request_.cache() + "/pulled");
  for (const std::string& path : {blobs_, layout_}) {
    if (status.ok()) status = MakeDirectory(path);
  }
  if (!status.ok()) return status;
  RemoveParts();
  for (const agent::v1::RegistrySource& source : pull_.sources()) {
    status = ResolveAt(source);
    if (status.ok()) {
      source_ = &source;
      return status;
    }
    if (absl::IsDeadlineExceeded(status)) return status;
  }
  return status;
}

absl::Status RegistryPull::ResolveAt(const agent::v1::RegistrySource& source) {
  const auto name = [&](const std::string& digest) {
    return digest.empty() ? absl::StrCat(pull_.path(), ":", pull_.tag())
                          : absl::StrCat(pull_.path(), "@", digest);
  };
  moved_ = absl::Now();  // another source may have taken all the time
  std::string digest = pull_.digest();
  for (int depth = 0; depth < 2; ++depth) {  // an index, and a manifest
    const auto text = skopeo_.ReadManifest(source, name(digest), [this] { return Watch(); });
    if (!text.ok()) return text.status();
    const std::string sent = absl::StrCat(kDigestPrefix, Sha256Hex(*text));
    const std::string what =
        absl::StrCat("what registry ", source.host(), " sent for ", name(digest));
    if (!digest.empty() && digest != sent) {
      return absl::AbortedError(absl::StrCat(what, " has another digest: ", sent));
    }
    if (depth == 0) named_digest_ = sent;
    const auto read = ReadSentManifest(*text, what, HostArchitecture());
    if (!read.ok()) return read.status();
    if (!read->digest.empty()) {
      digest = read->digest;
      continue;
    }
    digest_ = sent;
    return TakeLayers(read->manifest, what);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("registry ", source.host(), ": ", name(""), " is an index of indexes"));
}

// Nothing in the manifest is trusted: its digests become names of files.
absl::Status RegistryPull::TakeLayers(const agent::v1::OciManifest& manifest,
                                      const std::string& what) {
  total_bytes_ = 0;
  layers_.clear();
  for (const agent::v1::OciDescriptor& layer : manifest.layers()) {
    auto path = BlobPath(layout_, layer.digest());
    if (!path.ok()) return path.status();
    if (layer.size() < 0 || layer.size() > kMostLayerBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has a layer of ", layer.size(), " bytes"));
    }
    total_bytes_ += layer.size();
    layers_.push_back(absl::StrCat(blobs_, path->substr(layout_.size() + kBlobsBytes)));
  }
  return absl::OkStatus();
}

absl::Status RegistryPull::Copy() {
  if (total_bytes_ > request_.max_image_bytes()) {
    return absl::OutOfRangeError(
        absl::StrCat("the image has ", total_bytes_ >> 20, " MiB of layers; at most ",
                     request_.max_image_bytes() >> 20, " MiB (images.maxImageSize)"));
  }
  moved_ = absl::Now();
  const absl::Status status = skopeo_.Copy(*source_, absl::StrCat(pull_.path(), "@", digest_),
                                           layout_, blobs_, [this] { return Watch(); });
  if (!status.ok()) return status;
  const std::string link = layout_ + "/blobs";
  rmdir(link.c_str());  // skopeo leaves an empty one
  if (symlink(blobs_.c_str(), link.c_str()) == 0 || errno == EEXIST) return absl::OkStatus();
  return ErrnoError(absl::StrCat("create ", link));
}

// Whole layers, and those that skopeo is writing: "blobs/sha256/HEX", "LAYOUT/oci-put-blob123".
int64_t RegistryPull::Here() const {
  int64_t bytes = 0;
  for (const std::string& layer : layers_) bytes += BytesOf(layer);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(layout_, error)) {
    if (absl::StartsWith(entry.path().filename().string(), kPartPrefix)) {
      bytes += BytesOf(entry.path());
    }
  }
  return bytes;
}

absl::Status RegistryPull::Watch() {
  const absl::Time now = absl::Now();
  const absl::Duration limit = absl::Milliseconds(pull_.timeout_ms());
  if (now - began_ > limit) {
    return absl::DeadlineExceededError(absl::StrCat(
        "pulling took longer than ", absl::FormatDuration(limit), " (images.pullTimeout)"));
  }
  const int64_t here = Here();
  if (here != here_) {
    here_ = here;
    moved_ = now;
  }
  const absl::Duration stall = absl::Milliseconds(pull_.stall_ms());
  if (now - moved_ > stall) {
    return absl::UnavailableError(absl::StrCat("the registry sent nothing for ",
                                               absl::FormatDuration(stall), "; ", here >> 20,
                                               " of ", total_bytes_ >> 20, " MiB are here"));
  }
  if (total_bytes_ > 0 && now - told_ > kTellEvery) {
    told_ = now;
    hooks_.progress(std::min(here, total_bytes_), total_bytes_);
  }
  return hooks_.check_free();
}

// Of a pull that was killed.
void RegistryPull::RemoveParts() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(layout_, error)) {
    if (absl::StartsWith(entry.path().filename().string(), kPartPrefix)) {
      unlink(entry.path().c_str());
    }
  }
}

void RegistryPull::RemoveBlobs() const {
  for (const std::string& layer : layers_) unlink(layer.c_str());
}

void RegistryPull::RemoveLayout() const {
  std::error_code ignored;
  std::filesystem::remove_all(layout_, ignored);
}

}  // namespace berth

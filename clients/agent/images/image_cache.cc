#include "clients/agent/images/image_cache.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "clients/agent/images/blob.h"
#include "clients/agent/images/file_tree.h"
#include "clients/agent/images/image_user.h"
#include "clients/agent/images/registry_pull.h"
#include "clients/agent/images/umoci.h"

namespace berth {
namespace {

using agent::v1::UnpackedImage;

constexpr char kEntryPrefix[] = "sha256-";
constexpr absl::Duration kPullForgotten = absl::Hours(24);  // nobody goes on with it
constexpr size_t kMaxEnvBytes = size_t{256} << 10;  // more leaves too little for the command
constexpr absl::Duration kMeasureInterval = absl::Seconds(1);
constexpr int kMeasureShare = 10;  // at most 1/10 of the time is spent measuring

std::string Mebibytes(int64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("remove ", path, ": ", error.message()));
}

// Held until the end of the scope, and by processes that inherit the descriptor.
class FileLock {
 public:
  FileLock(const std::string& path, int flags, int operation = LOCK_EX)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | flags, 0600)) {
    while (fd_ >= 0 && !held_) {
      held_ = flock(fd_, operation) == 0;
      if (!held_ && errno != EINTR) break;
    }
  }
  ~FileLock() {
    if (fd_ >= 0) close(fd_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  const int fd_;
  bool held_ = false;
};

UnpackedImage ReadRecord(const std::string& entry) {
  std::ifstream file(entry + "/image", std::ios::binary);
  UnpackedImage record;
  record.ParseFromIstream(&file);
  return record;
}

// Without entry if there is none. Older versions wrote only the entry.
ImageRef ReadRef(const std::string& path) {
  std::ifstream file(path);
  ImageRef ref;
  std::getline(file, ref.entry);
  std::getline(file, ref.digest);
  std::getline(file, ref.image);
  const bool valid =
      absl::StartsWith(ref.entry, kEntryPrefix) && !absl::StrContains(ref.entry, '/');
  return valid ? ref : ImageRef{};
}

// Those of images that are gone.
void RemoveOldRefs(const std::string& cache) {
  std::error_code error;
  for (const auto& ref : std::filesystem::directory_iterator(cache + "/refs", error)) {
    const std::string entry = ReadRef(ref.path()).entry;
    if (entry.empty() || access(absl::StrCat(cache, "/", entry).c_str(), F_OK) != 0) {
      unlink(ref.path().c_str());
    }
  }
}

struct Entry {
  absl::Time used_at;
  std::string name;
  int64_t bytes = 0;
};

std::vector<Entry> Entries(const std::string& cache) {
  std::vector<Entry> entries;
  std::error_code error;
  for (const auto& found : std::filesystem::directory_iterator(cache, error)) {
    const std::string name = found.path().filename();
    struct stat info;
    if (!absl::StartsWith(name, kEntryPrefix) || lstat(found.path().c_str(), &info) != 0) continue;
    entries.push_back(
        {absl::TimeFromTimespec(info.st_mtim), name, ReadRecord(found.path()).bytes()});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used_at, a.name) < std::pair(b.used_at, b.name);
  });
  return entries;
}

std::set<std::string> UsedEntries(const std::string& cache) {
  std::set<std::string> used;
  std::error_code error;
  for (const auto& link : std::filesystem::directory_iterator(cache + "/used", error)) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(link.path(), gone);
    if (!gone) used.insert(target.filename());
  }
  return used;
}

// Links are resolved inside the image. Kernels before 5.6 do not support this check: there, the
// runtime reports a missing directory.
bool HasDirectory(const std::string& rootfs, const std::string& path) {
  const int root = open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const long fd = syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  const bool unknown = fd < 0 && errno == ENOSYS;
  for (const int open_fd : {root, static_cast<int>(fd)}) {
    if (open_fd >= 0) close(open_fd);
  }
  return fd >= 0 || unknown;
}

absl::Status SetConfig(const OciImage& image, const std::string& rootfs, UnpackedImage* record) {
  size_t bytes = 0;
  for (const auto& word : image.config.config().entry_point()) record->add_entry_point(word);
  for (const auto& word : image.config.config().command()) record->add_command(word);
  for (const auto* words : {&record->entry_point(), &record->command()}) {
    for (const std::string& word : *words) bytes += word.size();
  }
  for (const std::string& variable : image.config.config().env()) {
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos || variable.find('\0') != std::string::npos)
      continue;  // other runtimes skip these, too
    bytes += variable.size();
    record->add_env(variable);
  }
  if (bytes > kMaxEnvBytes) {
    return absl::FailedPreconditionError(absl::StrCat("the image's command and environment have ",
                                                      bytes, " bytes; at most ", kMaxEnvBytes));
  }
  SetImageUser(image.config.config().user(), rootfs, record);
  std::string directory = image.config.config().working_directory();
  if (directory.empty() || directory.find('\0') != std::string::npos) return absl::OkStatus();
  if (directory[0] != '/') directory.insert(0, "/");
  if (directory != "/" && HasDirectory(rootfs, directory)) record->set_working_directory(directory);
  return absl::OkStatus();
}

}  // namespace

std::vector<CachedImage> ListImages(const std::string& cache) {
  std::vector<std::pair<absl::Time, CachedImage>> found;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(cache + "/refs", error)) {
    const ImageRef ref = ReadRef(file.path());
    const std::string entry = absl::StrCat(cache, "/", ref.entry);
    struct stat info;
    if (ref.image.empty() || lstat(entry.c_str(), &info) != 0) continue;
    found.push_back(
        {absl::TimeFromTimespec(info.st_mtim),
         {.image = ref.image, .digest = ref.digest, .bytes = ReadRecord(entry).bytes()}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return std::tie(a.second.image, a.second.digest) < std::tie(b.second.image, b.second.digest);
  });
  std::vector<CachedImage> images;
  for (auto& [used_at, image] : found) {
    const bool again = !images.empty() && images.back() == image;  // with other credentials
    if (!again) images.push_back(std::move(image));
  }
  return images;
}

bool IsImageError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

bool IsNobodysFault(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnavailable(status);
}

ImageCache::ImageCache(agent::v1::ImageRequest request, std::function<bool()> wanted,
                       std::function<void(int64_t, int64_t)> progress)
    : request_(std::move(request)), wanted_(std::move(wanted)), progress_(std::move(progress)) {}

absl::Status ImageCache::Provide() {
  absl::Status status = MakeDirectories();
  if (!status.ok()) return status;
  if (request_.has_pull()) return ProvidePulled();
  std::string entry;
  return UnpackLayout(request_.layout(), request_.tag(), &entry);
}

absl::Status ImageCache::UnpackLayout(const std::string& layout, const std::string& tag,
                                      std::string* entry) {
  const auto image = ReadOciImage(layout, tag, HostArchitecture());
  if (!image.ok()) return image.status();
  *entry = absl::StrCat(kEntryPrefix, absl::StripPrefix(image->descriptor.digest(), kDigestPrefix));
  auto used = Use(*entry);
  if (!used.ok() || *used) return used.status();
  const FileLock unpacking(Path("unpacking"), 0);  // inherited by umoci
  signal(SIGTERM, SIG_IGN);
  used = Use(*entry);  // the previous holder may have unpacked it
  if (!used.ok() || *used) return used.status();
  if (absl::Status status = RemoveLeftovers(); !status.ok()) return status;
  return Unpack(*image, layout, *entry);
}

// A tag that was pulled before is used without asking the registry, unless it is always to be
// asked. Only one process pulls an image; the others find it.
absl::Status ImageCache::ProvidePulled() {
  const agent::v1::Pull& pull = request_.pull();
  auto used = UseKnown();
  if (!used.ok() || *used) return used.status();
  if (pull.policy() == agent::v1::PULL_NEVER) {
    return absl::NotFoundError(
        pull.wanted_digest().empty()
            ? "the node does not have it, and imagePullPolicy is Never"
            : absl::StrCat("other tasks of the job have ", pull.wanted_digest(),
                           ", the node does not, and imagePullPolicy is Never"));
  }
  const FileLock pulling(Path("pulled/lock-" + pull.key()), 0);  // inherited by skopeo
  used = UseKnown();
  if (!used.ok() || *used) return used.status();
  return PullAndUnpack();
}

// The image that the name means, as far as that is known without the registry.
absl::StatusOr<bool> ImageCache::UseKnown() {
  const agent::v1::Pull& pull = request_.pull();
  if (pull.wanted_digest().empty())
    return pull.policy() == agent::v1::PULL_ALWAYS ? absl::StatusOr<bool>(false)
                                                   : UseRef(pull.key());
  for (const std::string& key : {pull.key(), pull.wanted_key()}) {
    if (ReadRef(Path("refs/" + key)).digest != pull.wanted_digest()) continue;
    const auto used = UseRef(key);
    if (!used.ok() || *used) return used;
  }
  return false;
}

absl::Status ImageCache::PullAndUnpack() {
  agent::v1::ImageRequest request = request_;
  const std::string& wanted = request_.pull().wanted_digest();
  if (!wanted.empty()) request.mutable_pull()->set_digest(wanted);
  const std::string& key = wanted.empty() ? request_.pull().key() : request_.pull().wanted_key();
  RegistryPull pull(request, {.check_free = [this] { return CheckFree(); }, .progress = progress_});
  absl::Status status = pull.Resolve();
  if (absl::IsNotFound(status) && !wanted.empty()) {
    return absl::UnavailableError(
        absl::StrCat("other tasks of the job have ", wanted, ": ", status.message()));
  }
  if (!status.ok()) return status;
  const std::string by_digest =
      absl::StrCat(kEntryPrefix, absl::StripPrefix(pull.digest(), kDigestPrefix));
  const auto used = UseRef(by_digest);
  if (!used.ok()) return used.status();
  std::string entry = *used ? ReadRef(Path("refs/" + by_digest)).entry : "";
  if (!*used) {
    const FileLock blobs(Path("pulled/lock"), 0, LOCK_SH);  // nobody removes the blobs meanwhile
    status = pull.Copy();
    if (status.ok()) status = UnpackLayout(pull.layout(), kPulledTag, &entry);
    if (absl::IsDataLoss(status)) pull.RemoveBlobs();  // the next try pulls them again
  }
  if (status.ok()) status = WriteRef(by_digest, {.entry = entry});
  digest_ = pull.named_digest();
  const ImageRef ref = {.entry = entry, .digest = digest_, .image = request_.pull().image()};
  if (status.ok()) status = WriteRef(key, ref);
  if (!status.ok()) return status;
  pull.RemoveLayout();
  RemoveOldPulls();
  return status;
}

// Layers that no pull needs.
void ImageCache::RemoveOldPulls() const {
  const FileLock blobs(Path("pulled/lock"), O_CLOEXEC, LOCK_EX | LOCK_NB);
  if (blobs.held()) RemoveTree(Path("pulled/blobs")).IgnoreError();
}

absl::StatusOr<bool> ImageCache::UseRef(const std::string& ref) {
  const ImageRef known = ReadRef(Path("refs/" + ref));
  if (known.entry.empty()) return false;
  digest_ = known.digest;
  return Use(known.entry);
}

absl::Status ImageCache::WriteRef(const std::string& name, const ImageRef& ref) const {
  const std::string path = Path("refs/" + name);
  const std::string made = absl::StrCat(path, ".new.", getpid());  // also of another key's pull
  std::ofstream file(made);
  file << ref.entry << '\n' << ref.digest << '\n' << ref.image << '\n';
  file.close();
  if (!file.good() || rename(made.c_str(), path.c_str()) != 0) {
    return ErrnoError(absl::StrCat("write ", path));
  }
  return absl::OkStatus();
}

absl::Status ImageCache::CleanUp() {
  absl::Status status = MakeDirectories();
  if (!status.ok()) return status;
  const FileLock unpacking(Path("unpacking"), O_CLOEXEC);
  if (status = RemoveLeftovers(); !status.ok()) return status;
  RemoveOldRefs(request_.cache());
  struct stat blobs;  // changes with each layer
  const bool old = stat(Path("pulled/blobs/sha256").c_str(), &blobs) == 0 &&
                   absl::Now() - absl::TimeFromTimespec(blobs.st_mtim) > kPullForgotten;
  if (old) RemoveOldPulls();
  MakeRoom(0).IgnoreError();  // images in use remain
  return absl::OkStatus();
}

// Images may contain set-user-id files of any owner, so no other user may reach them.
absl::Status ImageCache::MakeDirectories() {
  for (const std::string& path : {request_.cache(), Path("used"), Path("refs"), Path("pulled")}) {
    struct stat info;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return ErrnoError(absl::StrCat("create ", path));
    if (stat(path.c_str(), &info) != 0) return ErrnoError(absl::StrCat("read ", path));
    if (info.st_uid == geteuid() && (info.st_mode & 077) == 0) continue;
    return absl::PermissionDeniedError(
        absl::StrCat(path, " (images.cache) must be owned by the agent's user, with mode 0700"));
  }
  return absl::OkStatus();
}

// False if there is no such entry.
absl::StatusOr<bool> ImageCache::Use(const std::string& entry) {
  const FileLock lock(Path("lock"), O_CLOEXEC);
  if (access(Path(entry).c_str(), F_OK) != 0) return false;
  if (absl::Status status = Link(entry); !status.ok()) return status;
  return true;
}

// Requires `lock`.
absl::Status ImageCache::Link(const std::string& entry) {
  utimensat(AT_FDCWD, Path(entry).c_str(), nullptr, 0);  // for LRU eviction
  if (!wanted_()) return absl::CancelledError("the image is no longer needed");
  if (request_.link().empty()) return absl::OkStatus();
  const std::string link = Path("used/" + request_.link());
  unlink(link.c_str());
  if (symlink(("../" + entry).c_str(), link.c_str()) == 0) return absl::OkStatus();
  return ErrnoError(absl::StrCat("create ", link));
}

absl::Status ImageCache::RemoveLeftovers() {
  absl::Status status = RemoveTree(Path("new"));
  status.Update(RemoveTree(Path("old")));
  return status;
}

absl::Status ImageCache::Unpack(const OciImage& image, const std::string& layout,
                                const std::string& entry) {
  const std::string path = Path("new");
  absl::Status status;
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoError(absl::StrCat("create ", path));
  started_ = absl::Now();
  measure_at_ = started_;
  status = Fill(image, layout);
  if (status.ok()) status = Publish(entry);
  RemoveTree(path).IgnoreError();  // no-op if it was published
  return status;
}

absl::Status ImageCache::Fill(const OciImage& image, const std::string& layout) {
  const std::string path = Path("new");
  if (access(request_.umoci().c_str(), X_OK) != 0) {
    return absl::InternalError(
        absl::StrCat(request_.umoci(), " (images.umoci) does not exist: apt-get install umoci"));
  }
  absl::Status status = CheckFree();
  if (status.ok()) status = MakeSingleLayout(image, layout, path);
  if (!status.ok()) return status;
  status = RunUmoci(request_.umoci(), path, request_.max_image_bytes(), [this] { return Watch(); });
  // umoci's error names neither the damaged blob nor a lack of space.
  if (absl::IsInternal(status) || absl::IsAborted(status)) {
    const absl::Status blobs = VerifyLayers(layout, image);
    if (!blobs.ok()) return blobs;
    const absl::Status free = CheckFree();
    return free.ok() ? status : free;
  }
  if (status.ok()) status = RemoveTree(path + "/layout");
  if (status.ok()) status = RemoveDeviceFiles(path + "/rootfs");
  if (status.ok()) status = WriteRecord(image);
  return status;
}

absl::Status ImageCache::WriteRecord(const OciImage& image) {
  const std::string path = Path("new");
  const TreeSize size = MeasureTree(path);
  absl::Status status = CheckSize(size.bytes, size.files);
  if (status.ok()) status = MakeRoom(size.bytes);
  UnpackedImage record;
  record.set_bytes(size.bytes);
  record.set_files(size.files);
  if (status.ok()) status = SetConfig(image, path + "/rootfs", &record);
  if (!status.ok()) return status;
  std::ofstream file(path + "/image", std::ios::binary);
  record.SerializeToOstream(&file);
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(absl::StrCat("write ", path, "/image"));
}

absl::Status ImageCache::CheckSize(int64_t bytes, int64_t files) const {
  if (bytes > request_.max_image_bytes()) {
    return absl::OutOfRangeError(absl::StrCat("the image is larger than ",
                                              Mebibytes(request_.max_image_bytes()),
                                              " (images.maxImageSize)"));
  }
  if (files <= request_.max_image_files()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("the image has more than ", request_.max_image_files(),
                                            " files (images.maxImageFiles)"));
}

absl::Status ImageCache::CheckFree() const {
  struct statvfs info;
  if (statvfs(request_.cache().c_str(), &info) != 0) return absl::OkStatus();
  const int64_t free = static_cast<int64_t>(info.f_bavail * info.f_frsize);
  if (free < request_.min_free_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        request_.cache(), " has only ", Mebibytes(free), " free; image unpacking keeps ",
        Mebibytes(request_.min_free_bytes()), " free"));
  }
  if (info.f_files == 0 || info.f_favail > 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("no free inodes in ", request_.cache()));
}

// Called while umoci runs.
absl::Status ImageCache::Watch() {
  const absl::Duration limit = absl::Milliseconds(request_.timeout_ms());
  const absl::Time now = absl::Now();
  if (now - started_ > limit) {
    return absl::DeadlineExceededError(absl::StrCat(
        "unpacking took longer than ", absl::FormatDuration(limit), " (images.unpackTimeout)"));
  }
  if (absl::Status status = CheckFree(); !status.ok() || now < measure_at_) return status;
  const TreeSize size = MeasureTree(Path("new"));
  const absl::Duration took = absl::Now() - now;
  measure_at_ = absl::Now() + std::max(kMeasureInterval, took * kMeasureShare);
  absl::Status status = CheckSize(size.bytes, size.files);
  if (status.ok()) status = MakeRoom(size.bytes);
  return status;
}

// Evicts unused images until `bytes` more fit; RESOURCE_EXHAUSTED if the images in use leave no
// room.
absl::Status ImageCache::MakeRoom(int64_t bytes) {
  for (;;) {
    int64_t total = bytes;
    const Entry* victim = nullptr;
    {
      const FileLock lock(Path("lock"), O_CLOEXEC);
      const std::set<std::string> used = UsedEntries(request_.cache());
      const std::vector<Entry> entries = Entries(request_.cache());
      for (const Entry& entry : entries) {
        total += entry.bytes;
        if (victim == nullptr && !used.contains(entry.name)) victim = &entry;
      }
      if (total <= request_.cache_bytes()) return absl::OkStatus();
      if (victim == nullptr) {
        return absl::ResourceExhaustedError(
            absl::StrCat("this image and the images in use need ", Mebibytes(total),
                         ", more than images.cacheSize (", Mebibytes(request_.cache_bytes()), ")"));
      }
      if (rename(Path(victim->name).c_str(), Path("old").c_str()) != 0)
        return ErrnoError(absl::StrCat("remove ", Path(victim->name)));
    }
    if (absl::Status status = RemoveTree(Path("old")); !status.ok()) return status;
  }
}

// Synced before the rename, so that an entry is complete even after a power failure.
absl::Status ImageCache::Publish(const std::string& entry) {
  const int fd = open(Path("new").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && syncfs(fd) == 0;
  if (fd >= 0) close(fd);
  if (!synced) return ErrnoError(absl::StrCat("sync ", Path("new")));
  const FileLock lock(Path("lock"), O_CLOEXEC);
  if (rename(Path("new").c_str(), Path(entry).c_str()) != 0)
    return ErrnoError(absl::StrCat("create ", Path(entry)));
  return Link(entry);
}

}  // namespace berth

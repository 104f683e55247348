#include "tests/crash/recorded_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/check.h"

namespace berth {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

namespace fs = std::filesystem;

constexpr size_t kSector = 512;

// "bases/" for "bases/1.sst" and "bases/"; "" for "CURRENT".
std::string ParentOf(absl::string_view name) {
  absl::ConsumeSuffix(&name, "/");
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(name.substr(0, slash + 1));
}

std::string ReadAll(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

void DiskImage::WriteTo(const std::string& directory) const {
  fs::remove_all(directory);
  fs::create_directories(directory);
  for (const auto& [name, data] : files) {
    const fs::path path = fs::path(directory) / name;
    if (absl::EndsWith(name, "/")) {
      fs::create_directories(path);
    } else if (fs::is_directory(path.parent_path())) {  // without its directory the file is lost
      std::ofstream(path, std::ios::binary) << data;
    }
  }
}

// The disk after some steps: what programs see, and what is durable.
class RecordedDisk::Model {
 public:
  explicit Model(const DiskImage& before) {
    for (const auto& [name, data] : before.files) {
      inodes_.push_back({.data = data, .synced = data.size()});
      now_[name] = safe_[name] = inodes_.size() - 1;
    }
  }

  void Do(const Step& step) {
    switch (step.kind) {
      case Kind::kCreate:
        inode_of_[step.file] = inodes_.size();
        inodes_.push_back({});
        return Change({.name = step.name, .inode = inodes_.size() - 1});
      case Kind::kReopen:
        inode_of_[step.file] = now_.at(step.name);
        return;
      case Kind::kAppend:
        inodes_[inode_of_.at(step.file)].data += step.data;
        return;
      case Kind::kOverwrite:
        inodes_[inode_of_.at(step.file)].overwrites.push_back({step.size, step.data});
        return;
      case Kind::kTruncate: {
        Inode& inode = inodes_[inode_of_.at(step.file)];
        inode.data.resize(step.size);
        inode.synced = std::min<size_t>(inode.synced, step.size);
        return;
      }
      case Kind::kSync: {
        Inode& inode = inodes_[inode_of_.at(step.file)];
        for (const Overwrite& overwrite : inode.overwrites) Apply(overwrite, &inode.data);
        inode.overwrites.clear();
        inode.synced = inode.data.size();
        return;
      }
      case Kind::kRename: {
        const auto from = now_.find(step.name);
        if (from == now_.end()) return;  // the rename failed
        BERTH_CHECK(ParentOf(step.name) == ParentOf(step.to));
        return Change({.name = step.to, .inode = from->second, .gone = step.name});
      }
      case Kind::kDelete:
        return Change({.gone = step.name});
      case Kind::kMakeDirectory:
        inodes_.push_back({});
        return Change({.name = step.name, .inode = inodes_.size() - 1});
      case Kind::kSyncDirectory:
        for (const Entry& entry : pending_[step.name]) Apply(entry, &safe_);
        pending_[step.name].clear();
        return;
    }
  }

  DiskImage AfterPowerCut(PowerCut cut, Random& random) const {
    std::map<std::string, size_t> names = safe_;
    for (const auto& [directory, entries] : pending_) {
      const size_t kept = Part(entries.size(), cut, random);
      for (size_t i = 0; i < kept; ++i) Apply(entries[i], &names);
    }
    DiskImage image;
    for (const auto& [name, inode] : names) {
      const Inode& file = inodes_[inode];
      const size_t kept = Part(file.data.size() - file.synced, cut, random);
      std::string data = file.data.substr(0, file.synced + kept);
      if (cut == PowerCut::kTorn && random.Below(2) == 0) Tear(file.synced, &data, random);
      for (const Overwrite& overwrite : file.overwrites) {
        if (overwrite.offset > data.size()) continue;  // the bytes before it were lost
        const size_t written = Part(overwrite.data.size(), cut, random);
        Apply({overwrite.offset, overwrite.data.substr(0, written)}, &data);
      }
      image.files.emplace(name, std::move(data));
    }
    return image;
  }

 private:
  struct Overwrite {
    uint64_t offset = 0;
    std::string data;
  };
  struct Inode {
    std::string data;
    size_t synced = 0;
    std::vector<Overwrite> overwrites = {};  // since the last sync; not in `data` yet
  };
  struct Entry {  // a name that is added, removed, or both
    std::string name = {};
    size_t inode = 0;
    std::string gone = {};
  };

  static void Apply(const Entry& entry, std::map<std::string, size_t>* names) {
    if (!entry.gone.empty()) names->erase(entry.gone);
    if (!entry.name.empty()) (*names)[entry.name] = entry.inode;
  }
  static void Apply(const Overwrite& overwrite, std::string* data) {
    data->resize(std::max<size_t>(data->size(), overwrite.offset + overwrite.data.size()));
    std::copy(overwrite.data.begin(), overwrite.data.end(),
              data->begin() + static_cast<ptrdiff_t>(overwrite.offset));
  }
  // Sectors are written whole or not at all. In the sector where the synced data ends, zeros follow
  // that data.
  static void Tear(size_t synced, std::string* data, Random& random) {
    const size_t first = synced / kSector, sectors = data->size() / kSector - first + 1;
    const size_t begin = std::max(synced, (first + random.Below(sectors)) * kSector);
    if (begin < data->size())
      std::fill(data->begin() + static_cast<ptrdiff_t>(begin), data->end(), '\0');
  }
  void Change(Entry entry) {
    Apply(entry, &now_);
    const std::string directory = ParentOf(entry.name.empty() ? entry.gone : entry.name);
    pending_[directory].push_back(std::move(entry));
  }
  static size_t Part(size_t all, PowerCut cut, Random& random) {
    switch (cut) {
      case PowerCut::kLeast:
        return 0;
      case PowerCut::kMost:
        return all;
      default:
        return random.Below(all + 1);
    }
  }

  std::vector<Inode> inodes_;
  std::map<uint32_t, size_t> inode_of_;  // by the recorded number of the file
  std::map<std::string, size_t> now_, safe_;
  std::map<std::string, std::vector<Entry>> pending_;  // by directory
};

class RecordedDisk::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> file, uint32_t number, RecordedDisk* disk)
      : FSWritableFileOwnerWrapper(std::move(file)), number_(number), disk_(disk) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    disk_->Note({.kind = Kind::kAppend, .file = number_, .data = data.ToString()});
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const rocksdb::Slice&, uint64_t, const IOOptions&,
                            IODebugContext*) override {
    return IOStatus::NotSupported("the recorded disk");
  }
  IOStatus PositionedAppend(const rocksdb::Slice&, uint64_t, const IOOptions&,
                            const rocksdb::DataVerificationInfo&, IODebugContext*) override {
    return IOStatus::NotSupported("the recorded disk");
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    disk_->Note({.kind = Kind::kTruncate, .file = number_, .size = size});
    return target()->Truncate(size, options, debug);
  }
  // Recorded on return: only then is the synced data durable.
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (disk_->failing()) return IOStatus::IOError("injected");
    IOStatus status = target()->Sync(options, debug);
    disk_->Note({.kind = Kind::kSync, .file = number_});
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const uint32_t number_;
  RecordedDisk* const disk_;
};

class RecordedDisk::RandomFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, uint32_t number, RecordedDisk* disk)
      : FSRandomRWFileOwnerWrapper(std::move(file)), number_(number), disk_(disk) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    disk_->Note(
        {.kind = Kind::kOverwrite, .file = number_, .data = data.ToString(), .size = offset});
    return target()->Write(offset, data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = target()->Sync(options, debug);
    disk_->Note({.kind = Kind::kSync, .file = number_});
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const uint32_t number_;
  RecordedDisk* const disk_;
};

class RecordedDisk::Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> directory, std::string name, RecordedDisk* disk)
      : FSDirectoryWrapper(std::move(directory)), name_(std::move(name)), disk_(disk) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = FSDirectoryWrapper::Fsync(options, debug);
    disk_->Note({.kind = Kind::kSyncDirectory, .name = name_});
    return status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  const std::string name_;
  RecordedDisk* const disk_;
};

RecordedDisk::RecordedDisk(std::string directory)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), directory_(std::move(directory)) {
  if (!fs::exists(directory_)) return;
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    const std::string name = fs::relative(entry.path(), directory_).string();
    if (entry.is_directory()) {
      before_.files.emplace(name + "/", "");
    } else if (name != "LOCK") {
      before_.files.emplace(name, ReadAll(entry.path()));
    }
  }
}

void RecordedDisk::Mark(uint64_t mark) {
  absl::MutexLock lock(&mutex_);
  mark_ = mark;
}

size_t RecordedDisk::steps() const {
  absl::MutexLock lock(&mutex_);
  return steps_.size();
}

bool RecordedDisk::Durable(size_t step) const {
  absl::MutexLock lock(&mutex_);
  const Kind kind = steps_.at(step).kind;
  return kind != Kind::kAppend && kind != Kind::kOverwrite && kind != Kind::kReopen;
}

uint64_t RecordedDisk::MarkBefore(size_t step) const {
  absl::MutexLock lock(&mutex_);
  return step < steps_.size() ? steps_[step].mark : mark_;
}

std::string RecordedDisk::Describe(size_t step) const {
  static constexpr const char* kNames[] = {"create",         "reopen",        "append", "overwrite",
                                           "truncate",       "sync",          "rename", "delete",
                                           "make directory", "sync directory"};
  absl::MutexLock lock(&mutex_);
  if (step >= steps_.size()) return "the end";
  const Step& at = steps_[step];
  std::string name = at.name;
  for (size_t i = 0; i < step && name.empty(); ++i) {
    if (steps_[i].kind == Kind::kCreate && steps_[i].file == at.file) name = steps_[i].name;
  }
  return absl::StrCat(kNames[static_cast<size_t>(at.kind)], " ", name, " ", at.to, " ",
                      at.data.size());
}

DiskImage RecordedDisk::AfterPowerCut(size_t steps, PowerCut cut, Random& random) const {
  Model model(before_);
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < steps; ++i) model.Do(steps_.at(i));
  return model.AfterPowerCut(cut, random);
}

bool RecordedDisk::Mine(const std::string& path, std::string* name) const {
  absl::string_view rest = path;
  if (!absl::ConsumePrefix(&rest, directory_)) return false;
  while (absl::ConsumePrefix(&rest, "/")) {
  }
  *name = std::string(rest);
  return true;
}

void RecordedDisk::Note(Step step) {
  absl::MutexLock lock(&mutex_);
  step.mark = mark_;
  steps_.push_back(std::move(step));
}

uint32_t RecordedDisk::NewFile(Kind kind, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  steps_.push_back({.kind = kind, .file = files_, .name = name, .mark = mark_});
  return files_++;
}

void RecordedDisk::FailSyncs(bool fail) {
  absl::MutexLock lock(&mutex_);
  failing_ = fail;
}

bool RecordedDisk::failing() const {
  absl::MutexLock lock(&mutex_);
  return failing_;
}

IOStatus RecordedDisk::NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       IODebugContext* debug) {
  std::string mine;
  IOStatus status = target()->NewWritableFile(name, options, file, debug);
  if (!status.ok() || !Mine(name, &mine)) return status;
  *file = std::make_unique<File>(std::move(*file), NewFile(Kind::kCreate, mine), this);
  return status;
}

IOStatus RecordedDisk::NewDirectory(const std::string& name, const IOOptions& options,
                                    std::unique_ptr<rocksdb::FSDirectory>* directory,
                                    IODebugContext* debug) {
  std::string mine;
  IOStatus status = target()->NewDirectory(name, options, directory, debug);
  if (!status.ok() || !Mine(name, &mine)) return status;
  if (!mine.empty() && !absl::EndsWith(mine, "/")) mine += '/';
  *directory = std::make_unique<Directory>(std::move(*directory), mine, this);
  return status;
}

IOStatus RecordedDisk::DeleteFile(const std::string& name, const IOOptions& options,
                                  IODebugContext* debug) {
  std::string mine;
  IOStatus status = target()->DeleteFile(name, options, debug);
  if (status.ok() && Mine(name, &mine)) Note({.kind = Kind::kDelete, .name = mine});
  return status;
}

IOStatus RecordedDisk::RenameFile(const std::string& from, const std::string& to,
                                  const IOOptions& options, IODebugContext* debug) {
  std::string mine, new_name;
  IOStatus status = target()->RenameFile(from, to, options, debug);
  if (status.ok() && Mine(from, &mine) && Mine(to, &new_name)) {
    Note({.kind = Kind::kRename, .name = mine, .to = new_name});
  }
  return status;
}

IOStatus RecordedDisk::CreateDir(const std::string& name, const IOOptions& options,
                                 IODebugContext* debug) {
  std::string mine;
  IOStatus status = target()->CreateDir(name, options, debug);
  if (status.ok() && Mine(name, &mine) && !mine.empty()) {
    Note({.kind = Kind::kMakeDirectory, .name = absl::StrCat(absl::StripSuffix(mine, "/"), "/")});
  }
  return status;
}

IOStatus RecordedDisk::CreateDirIfMissing(const std::string& name, const IOOptions& options,
                                          IODebugContext* debug) {
  if (fs::is_directory(name)) return IOStatus::OK();
  return CreateDir(name, options, debug);
}

IOStatus RecordedDisk::ReopenWritableFile(const std::string& name,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file,
                                          IODebugContext* debug) {
  std::string mine;
  const bool exists = fs::exists(name);
  IOStatus status = target()->ReopenWritableFile(name, options, file, debug);
  if (!status.ok() || !Mine(name, &mine)) return status;
  const uint32_t number = NewFile(exists ? Kind::kReopen : Kind::kCreate, mine);
  *file = std::make_unique<File>(std::move(*file), number, this);
  return status;
}

IOStatus RecordedDisk::ReuseWritableFile(const std::string&, const std::string&,
                                         const rocksdb::FileOptions&,
                                         std::unique_ptr<rocksdb::FSWritableFile>*,
                                         IODebugContext*) {
  return IOStatus::NotSupported("the recorded disk");
}

IOStatus RecordedDisk::NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                       IODebugContext* debug) {
  std::string mine;
  IOStatus status = target()->NewRandomRWFile(name, options, file, debug);
  if (!status.ok() || !Mine(name, &mine)) return status;
  *file = std::make_unique<RandomFile>(std::move(*file), NewFile(Kind::kReopen, mine), this);
  return status;
}

IOStatus RecordedDisk::LinkFile(const std::string&, const std::string&, const IOOptions&,
                                IODebugContext*) {
  return IOStatus::NotSupported("the recorded disk");
}

}  // namespace berth

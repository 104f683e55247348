#include "tests/simulation/disk.h"

#include <algorithm>
#include <utility>

namespace berth::simulation {

class SimDisk::OpenFile final : public Disk::File {
 public:
  OpenFile(SimDisk* disk, ContentPtr content) : disk_(disk), content_(std::move(content)) {}
  absl::Status Append(absl::string_view data) override { return disk_->Write(*content_, data); }
  absl::Status Truncate(uint64_t size) override {
    content_->data.resize(size);
    content_->synced = std::min<size_t>(content_->synced, size);
    return absl::OkStatus();
  }
  absl::Status Sync() override { return disk_->Sync(*content_); }

 private:
  SimDisk* const disk_;
  const ContentPtr content_;
};

absl::Status SimDisk::Write(Content& content, absl::string_view data) {
  if (!full) {
    content.data.append(data.data(), data.size());
    return absl::OkStatus();
  }
  content.data.append(data.data(), data.size() / 2);
  return absl::ResourceExhaustedError("simulated: the disk is full");
}

absl::Status SimDisk::Sync(Content& content) {
  if (syncs_until_failure > 0 && --syncs_until_failure == 0) {
    return absl::InternalError("simulated: the sync failed");
  }
  content.synced = content.data.size();
  return absl::OkStatus();
}

void SimDisk::Change(Names names) { unsynced_.push_back(std::exchange(names_, std::move(names))); }

absl::StatusOr<std::string> SimDisk::ReadFile(const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(path);
  return found->second->data;
}

absl::StatusOr<std::unique_ptr<Disk::File>> SimDisk::OpenAppend(const std::string& path,
                                                                bool truncate) {
  const auto found = names_.find(path);
  if (found != names_.end() && !truncate) return std::make_unique<OpenFile>(this, found->second);
  Names names = names_;
  names[path] = std::make_shared<Content>();
  Change(std::move(names));
  return std::make_unique<OpenFile>(this, names_[path]);
}

absl::Status SimDisk::Rename(const std::string& from, const std::string& to) {
  Names names = names_;
  names[to] = names.at(from);
  names.erase(from);
  Change(std::move(names));
  return absl::OkStatus();
}

absl::Status SimDisk::SyncDirectory(const std::string&) {
  unsynced_.clear();
  return absl::OkStatus();
}

void SimDisk::PowerCut(Dice& dice) {
  const size_t kept = dice.Below(unsynced_.size() + 1);
  if (kept < unsynced_.size()) names_ = unsynced_[kept];
  unsynced_.clear();
  for (auto& [name, content] : names_) {
    const size_t rest = content->data.size() - content->synced;
    content->data.resize(content->synced + dice.Below(rest + 1));
    content->synced = content->data.size();
  }
  syncs_until_failure = 0;
}

}  // namespace berth::simulation

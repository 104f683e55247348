// A node's disk in memory: a power cut keeps what was synced, and a prefix of the rest.
#ifndef BERTH_TESTS_SIMULATION_DISK_H_
#define BERTH_TESTS_SIMULATION_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/agent/disk.h"
#include "tests/simulation/dice.h"

namespace berth::simulation {

class SimDisk final : public Disk {
 public:
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenAppend(const std::string& path, bool truncate) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string& path) override;

  // The machine lost its power. Each file keeps its synced bytes and a prefix of the others; the
  // directory keeps its synced names and a prefix of the changes since. No file may be open.
  void PowerCut(Dice& dice);
  // Replaces the disk by a new, empty one.
  void Wipe() { *this = SimDisk(); }

  bool full = false;
  int syncs_until_failure = 0;  // 0: no sync fails

 private:
  struct Content {
    std::string data;
    size_t synced = 0;
  };
  using ContentPtr = std::shared_ptr<Content>;
  using Names = std::map<std::string, ContentPtr>;
  class OpenFile;

  absl::Status Write(Content& content, absl::string_view data);
  absl::Status Sync(Content& content);
  // Each change copies the names: a power cut may restore an earlier copy.
  void Change(Names names);

  Names names_;
  std::vector<Names> unsynced_;  // the names since the last sync of the directory
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_DISK_H_

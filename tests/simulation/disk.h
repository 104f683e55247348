// A node's disk in memory: what was synced outlives a power cut, of the rest a beginning does.
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

  // The machine is without power: of each file the synced bytes and a beginning of the others stay,
  // of the names those that were synced and a beginning of the changes since. Files that are open
  // must be gone.
  void PowerCut(Dice& dice);
  // A new, empty one.
  void Wipe() { *this = SimDisk(); }

  bool full = false;
  int syncs_until_failure = 0;  // 0: none fails

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
  // Each change makes the names anew: those of before are what a power cut may go back to.
  void Change(Names names);

  Names names_;
  std::vector<Names> unsynced_;  // names as they were since the last sync of the directory
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_DISK_H_

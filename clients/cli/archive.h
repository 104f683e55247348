// Tar archives of berth cp, by libarchive.
//
// An archive that comes from a task may be anything: only regular files, directories and links
// below the target are made, no link is followed, and owners, devices and special bits are left
// out.
#ifndef BERTH_CLIENTS_CLI_ARCHIVE_H_
#define BERTH_CLIENTS_CLI_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

struct ArchiveReport {
  int64_t files = 0;
  int64_t bytes = 0;                 // of files
  std::vector<std::string> skipped;  // "a/b: a device"; at most kMaxSkipped
  int64_t more_skipped = 0;
};
inline constexpr size_t kMaxSkipped = 20;

// The path of an entry below NAME, which all entries must have first: "" for NAME itself. Absolute
// paths, ".." and other first names are INVALID_ARGUMENT.
absl::StatusOr<std::string> PathBelow(absl::string_view entry, absl::string_view name);
// Whether a symbolic link at `path` (as PathBelow) leads to something below NAME.
bool LinkStaysBelow(absl::string_view path, absl::string_view target);

// Reads an archive whose entries are `name` and what is below it, and makes them as `target`, whose
// directory exists. `next` returns the next piece of the archive, empty at its end.
absl::Status ExtractTar(const std::function<std::string()>& next, const std::string& name,
                        const std::string& target, ArchiveReport* report);

// Writes `source`, a file or directory, as `name`. `write` returns false to end it.
absl::Status WriteTar(const std::string& source, const std::string& name,
                      const std::function<bool(absl::string_view)>& write, ArchiveReport* report);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_ARCHIVE_H_

// A directory that is deleted at the end of the test.
#ifndef BERTH_TESTS_UNIT_STORAGE_TEMP_DIRECTORY_H_
#define BERTH_TESTS_UNIT_STORAGE_TEMP_DIRECTORY_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/check.h"

namespace berth {

class TempDirectory {
 public:
  explicit TempDirectory(
      const std::filesystem::path& base = std::filesystem::temp_directory_path()) {
    std::string pattern = (base / "berth-test-XXXXXX").string();
    BERTH_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_TEMP_DIRECTORY_H_

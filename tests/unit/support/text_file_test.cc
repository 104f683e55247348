#include "support/text_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

std::string FileWith(const std::string& text) {
  const fs::path path = fs::temp_directory_path() / absl::StrCat("berth-text-file-test.", getpid());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST_CASE("text file: all bytes, up to a limit") {
  const std::string text("a\0b\r\n", 5);
  const std::string path = FileWith(text);
  CHECK(ReadTextFile(path).value() == text);
  CHECK(ReadTextFile(path, 5).value() == text);
  CHECK(ReadTextFile(path, 4).status() ==
        absl::InvalidArgumentError(absl::StrCat(path, ": larger than the 4 bytes allowed")));
  fs::remove(path);
}

TEST_CASE("text file: the reason names the file") {
  CHECK(ReadTextFile("/nowhere/x").status() ==
        absl::NotFoundError("/nowhere/x: No such file or directory"));
  CHECK(ReadConfiguredFile("/nowhere/x").status() ==
        absl::InvalidArgumentError("cannot read /nowhere/x: No such file or directory"));
  CHECK(ReadConfiguredFile("/").status() ==
        absl::InvalidArgumentError("cannot read /: Is a directory"));
  const std::string path = FileWith("text");
  CHECK(ReadConfiguredFile(path).value() == "text");
  fs::remove(path);
}

}  // namespace
}  // namespace berth

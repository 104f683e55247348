// The counter of acknowledged batches: never higher than what was written, even if damaged.
#include "storage/rocksdb/acked_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/storage/fault_file_system.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

struct World {
  AckedFile File() { return {faults, path}; }

  TempDirectory directory;
  const std::string path = directory / "ACKED";
  std::shared_ptr<FaultFileSystem> faults = std::make_shared<FaultFileSystem>();
};

TEST_CASE("acked: the last write is read back, also by the next process") {
  World world;
  CHECK(world.File().Read().batch == 0);
  for (uint64_t start = 0; start < 5; ++start) {
    AckedFile file = world.File();
    file.Read();
    for (uint64_t i = 1; i <= 3; ++i) {
      const uint64_t batch = start * 3 + i;
      file.Write({.batch = batch, .log = 4 + start, .bytes = 100 * batch});
      const Acknowledged read = world.File().Read();
      CHECK(read.batch == batch);
      CHECK(read.log == 4 + start);
      CHECK(read.bytes == 100 * batch);
    }
  }
}

TEST_CASE("acked: if any byte of the latest slot is changed, the previous slot is read") {
  World world;
  AckedFile file = world.File();
  for (uint64_t batch = 1; batch <= 9; ++batch) file.Write({.batch = batch, .log = 4, .bytes = 9});
  const std::string whole = ReadAll(world.path);
  REQUIRE(whole.size() == 1024);
  for (size_t i = 0; whole[i] != '\n'; ++i) {  // the ninth is in the first slot
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(world.path, std::ios::binary) << changed;
    CHECK(world.File().Read().batch == 8);
  }
  for (size_t size = 0; size < 512; size += 31) {
    std::ofstream(world.path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    CHECK(world.File().Read().batch == (whole.find('\n') < size ? 9 : 0));
  }
  // The next write replaces the slot that is not the latest.
  std::ofstream(world.path, std::ios::binary) << std::string(512, '\0') + whole.substr(512);
  AckedFile next = world.File();
  CHECK(next.Read().batch == 8);
  next.Write({.batch = 10, .log = 4, .bytes = 10});
  CHECK(ReadAll(world.path).substr(512) == whole.substr(512));
}

TEST_CASE("acked: a failed write does no harm, and its value is written with the next") {
  World world;
  AckedFile file = world.File();
  world.faults->FailOverwrites(true);
  file.Write({.batch = 1, .log = 4, .bytes = 100});
  CHECK(world.File().Read().batch == 0);
  world.faults->FailOverwrites(false);
  file.Write({.batch = 2, .log = 4, .bytes = 200});
  CHECK(world.File().Read().batch == 2);
}

}  // namespace
}  // namespace berth

#include "storage/chain_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

struct Place {
  TempDirectory directory;
  ChainFiles::Options options{.directory = directory / "chain"};
  std::unique_ptr<ChainFiles> files;

  Place() { files = Reopen(); }

  std::unique_ptr<ChainFiles> Reopen() {
    files.reset();
    auto opened = ChainFiles::Open(options);
    REQUIRE(opened.ok());
    return *std::move(opened);
  }
  std::vector<std::string> All(uint64_t after = 0, absl::Time from = absl::InfinitePast()) const {
    std::vector<std::string> found;
    REQUIRE(files
                ->Read(after, from,
                       [&](uint64_t sequence, absl::string_view entry) {
                         found.push_back(std::to_string(sequence) + " " + std::string(entry));
                         return true;
                       })
                .ok());
    return found;
  }
  std::string OnlyFile() const {
    for (const auto& entry : fs::directory_iterator(options.directory)) {
      if (entry.path().extension() == ".chain") return entry.path().string();
    }
    return "";
  }
  size_t Count(const std::string& extension) const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(options.directory)) {
      count += entry.path().extension() == extension ? 1 : 0;
    }
    return count;
  }
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST_CASE("chain files: entries come back in order, also after a restart") {
  Place place;
  CHECK(place.files->Verify().value().entries == 0);
  CHECK(place.files->Last().value().empty());
  REQUIRE(place.files->Append(kStart, {"a", "b"}).ok());
  REQUIRE(place.files->Sync().ok());
  const ChainHash head = place.files->Verify().value().head;
  place.files = place.Reopen();
  CHECK(place.files->last_sequence() == 2);
  CHECK(place.files->Last().value() == "b");
  REQUIRE(place.files->Append(kStart, {"c"}).ok());
  CHECK(place.All() == std::vector<std::string>{"1 a", "2 b", "3 c"});
  CHECK(place.All(2) == std::vector<std::string>{"3 c"});
  const ChainSummary found = place.files->Verify().value();
  CHECK(found.first == 1);
  CHECK(found.last == 3);
  CHECK(found.entries == 3);
  CHECK(found.head == NextChainHash(head, 3, "c"));
}

TEST_CASE("chain files: new files begin with size and age, and old ones can be deleted") {
  Place place;
  place.options.file_bytes = 200;
  place.files = place.Reopen();
  for (int i = 1; i <= 20; ++i) {
    REQUIRE(place.files->Append(kStart + absl::Minutes(i), {"entry " + std::to_string(i)}).ok());
  }
  const size_t files = place.Count(".chain");
  CHECK(files > 4);
  const ChainHash head = place.files->Verify().value().head;
  REQUIRE(place.files->Trim(kStart + absl::Minutes(10), UINT64_MAX).ok());
  CHECK(place.Count(".chain") < files);
  ChainSummary rest = place.files->Verify().value();
  CHECK(rest.first > 1);
  CHECK(rest.first <= 10);  // what is not old stays
  CHECK(rest.head == head);
  CHECK(place.All(0, kStart + absl::Minutes(18)).size() < 6);

  REQUIRE(place.files->Trim(absl::InfinitePast(), 500).ok());
  CHECK(place.files->bytes() <= 500);
  place.files = place.Reopen();
  rest = place.files->Verify().value();
  CHECK(rest.last == 20);
  REQUIRE(place.files->Trim(absl::InfiniteFuture(), 0).ok());
  CHECK(place.Count(".chain") == 1);  // never the last
  REQUIRE(place.files->Append(kStart + absl::Hours(48), {"next day"}).ok());
  CHECK(place.Count(".chain") == 2);
  CHECK(place.files->Verify().value().last == 21);
}

TEST_CASE("chain files: an incomplete end is cut off and kept aside") {
  for (const size_t lost : {1, 20, 40}) {
    Place place;
    REQUIRE(place.files->Append(kStart, {"first", "second"}).ok());
    const std::string path = place.OnlyFile();
    place.files.reset();
    const std::string whole = ReadAll(path);
    WriteFile(path, whole.substr(0, whole.size() - lost));
    place.options.read_only = true;
    place.files = place.Reopen();
    CHECK(place.files->Verify().value().entries == 1);
    CHECK(place.Count(".cut") == 0);
    place.options.read_only = false;
    place.files = place.Reopen();
    CHECK(place.All() == std::vector<std::string>{"1 first"});
    CHECK(place.Count(".cut") == 1);
    REQUIRE(place.files->Append(kStart, {"again"}).ok());
    CHECK(place.files->Verify().value().last == 2);
  }
}

TEST_CASE(
    "chain files: zeros and garbage at the end are cut off, and so is a file without a header") {
  Place place;
  place.options.file_bytes = 1;  // a file for each entry
  place.files = place.Reopen();
  REQUIRE(place.files->Append(kStart, {"first"}).ok());
  const std::string first = place.OnlyFile();
  REQUIRE(place.files->Append(kStart, {"second"}).ok());
  place.files.reset();
  WriteFile(place.options.directory + "/00000000000000000002.chain", "BERTH");
  WriteFile(first, ReadAll(first) + std::string(100, '\0'));
  place.files = place.Reopen();
  CHECK(place.All() == std::vector<std::string>{"1 first"});
  REQUIRE(place.files->Append(kStart, {"2nd"}).ok());
  CHECK(place.files->Verify().value().last == 2);
}

TEST_CASE("chain files: whichever byte is changed, the entry is named") {
  Place place;
  REQUIRE(place.files->Append(kStart, {"first", "second", "third"}).ok());
  const std::string path = place.OnlyFile();
  const std::string whole = ReadAll(path);
  const size_t header = 56, entry = 4 + 32 + 5;  // of the first
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    WriteFile(path, changed);
    const absl::StatusOr<ChainSummary> found = place.files->Verify();
    if (i >= 16 && i < 24) continue;  // when the file began: only for deleting it
    INFO("byte " << i);
    REQUIRE(absl::IsDataLoss(found.status()));
    if (i >= header && i < header + entry) {
      CHECK(std::string(found.status().message()).find("entry 1 ") == 0);
    }
  }
}

TEST_CASE("chain files: a restart keeps a changed entry in the middle, for Verify to name") {
  Place place;
  REQUIRE(place.files->Append(kStart, {"first", "second", "third"}).ok());
  const std::string path = place.OnlyFile();
  place.files.reset();
  std::string content = ReadAll(path);
  content.replace(content.find("second"), 6, "Second");
  WriteFile(path, content);
  place.files = place.Reopen();
  REQUIRE(place.files->Append(kStart, {"fourth"}).ok());
  CHECK(place.All().size() == 4);
  const absl::Status found = place.files->Verify().status();
  CHECK(std::string(found.message()) ==
        "entry 2 was changed (00000000000000000001.chain); 1 entries before it are unchanged");
}

TEST_CASE("chain files: a changed last entry is named by a check, and a restart cuts it off") {
  Place place;
  REQUIRE(place.files->Append(kStart, {"first", "second"}).ok());
  const std::string path = place.OnlyFile();
  place.files.reset();
  std::string content = ReadAll(path);
  content.replace(content.find("second"), 6, "Second");
  WriteFile(path, content);
  place.options.read_only = true;
  place.files = place.Reopen();
  CHECK(absl::IsDataLoss(place.files->Verify().status()));
  place.options.read_only = false;
  place.files = place.Reopen();
  CHECK(place.files->last_sequence() == 1);
  CHECK(place.Count(".cut") == 1);
}

TEST_CASE("chain files: a deleted file in the middle is noticed") {
  Place place;
  place.options.file_bytes = 1;
  place.files = place.Reopen();
  for (const char* entry : {"a", "b", "c"}) REQUIRE(place.files->Append(kStart, {entry}).ok());
  place.files.reset();
  fs::remove(place.options.directory + "/00000000000000000002.chain");
  place.options.read_only = true;
  place.files = place.Reopen();
  const absl::Status found = place.files->Verify().status();
  REQUIRE(absl::IsDataLoss(found));
  CHECK(std::string(found.message()).find("entry 2 is missing") == 0);
}

TEST_CASE("chain files: what cannot be written leaves the chain as it was") {
  Place place;
  REQUIRE(place.files->Append(kStart, {"a"}).ok());
  CHECK(absl::IsInvalidArgument(
      place.files->Append(kStart, {"b", std::string(ChainFiles::kMaxEntry + 1, 'x')})));
  CHECK(place.All() == std::vector<std::string>{"1 a"});
  ChainFiles::Options nowhere{.directory = place.directory / "no/such/place"};
  CHECK_FALSE(ChainFiles::Open(nowhere).ok());
}

}  // namespace
}  // namespace berth

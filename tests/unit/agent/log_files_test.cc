// Logs: how a supervisor writes them, and how they are read.
#include "clients/agent/log_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/agent/supervisor/log_writer.h"
#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

v1::ReadLog LogOf(v1::LogStream stream, int64_t tail, const v1::LogPosition& from = {}) {
  v1::ReadLog request;
  *request.mutable_key() = ToKey({1, 0, 1});
  request.set_stream(stream);
  request.set_tail_lines(tail);
  *request.mutable_from() = from;
  return request;
}

// Everything that a cursor returns, with a mark where the stream changes.
std::string ReadAll(LogSource& source, v1::LogStream stream, int64_t tail) {
  auto cursor = source.Open(LogOf(stream, tail));
  REQUIRE(cursor.ok());
  std::string out;
  for (;;) {
    auto piece = (*cursor)->Read(7);
    REQUIRE(piece.ok());
    if (piece->data.empty()) return out;
    if (stream == v1::LOG_STREAM_UNSPECIFIED) out += piece->stream == v1::STDERR ? "!" : "";
    out += piece->data;
  }
}

// Like ReadAll, but a new reader continues after each piece.
std::string ReadInTurns(LogSource& source, v1::LogStream stream, int64_t tail, size_t piece_bytes) {
  std::string out;
  for (v1::ReadLog request = LogOf(stream, tail);;) {
    auto cursor = source.Open(request);
    REQUIRE(cursor.ok());
    request = LogOf(stream, 0, (*cursor)->Next());
    cursor = source.Open(request);  // the start of a tail is known before it is read
    auto piece = (*cursor)->Read(piece_bytes);
    REQUIRE(piece.ok());
    if (piece->data.empty()) return out;
    out += piece->data;
    *request.mutable_from() = (*cursor)->Next();
  }
}

TEST_CASE("logs: any reader can continue where another stopped") {
  testing::TemporaryDirectory tasks;
  const std::string directory = tasks.path() + "/1-0-1";
  std::filesystem::create_directory(directory);
  LogFiles files(tasks.path());
  LogWriter writer(directory, 1000, 2);
  writer.Append(OutputStream::kStdout, "a\nb\n", 0);
  writer.Append(OutputStream::kStderr, "x\nyz\n", 0);
  writer.Append(OutputStream::kStdout, "c\nd\n", 0);
  writer.Append(OutputStream::kStderr, "w\n", 0);
  for (const size_t bytes : {1u, 2u, 3u, 100u}) {
    CHECK(ReadInTurns(files, v1::STDOUT, 0, bytes) == "a\nb\nc\nd\n");
    CHECK(ReadInTurns(files, v1::STDERR, 0, bytes) == "x\nyz\nw\n");
    CHECK(ReadInTurns(files, v1::LOG_STREAM_UNSPECIFIED, 0, bytes) == "a\nb\nx\nyz\nc\nd\nw\n");
    // The tail of both streams starts inside stderr: earlier stdout is not read later.
    CHECK(ReadInTurns(files, v1::LOG_STREAM_UNSPECIFIED, 4, bytes) == "yz\nc\nd\nw\n");
    CHECK(ReadInTurns(files, v1::STDOUT, 1, bytes) == "d\n");
  }
}

TEST_CASE("logs: a late reader misses only what rotation removed") {
  testing::TemporaryDirectory tasks;
  const std::string directory = tasks.path() + "/1-0-1";
  std::filesystem::create_directory(directory);
  LogFiles files(tasks.path());
  LogWriter writer(directory, 10, 2);
  v1::LogPosition from;
  from.set_stdout_bytes(3);
  auto cursor = files.Open(LogOf(v1::STDOUT, 0, from));
  REQUIRE(cursor.ok());
  CHECK((*cursor)->Read(100)->data.empty());  // beyond the end: not written yet
  writer.Append(OutputStream::kStdout, "0123456789", 0);
  CHECK((*cursor)->Read(2)->data == "34");
  for (int i = 0; i < 9; ++i) writer.Append(OutputStream::kStdout, "0123456789", 0);
  const std::string kept = ReadAll(files, v1::STDOUT, 0);
  REQUIRE(kept.size() < 100);
  from = (*cursor)->Next();
  CHECK(from.stdout_bytes() == 5);
  auto late = files.Open(LogOf(v1::STDOUT, 0, from));
  CHECK((*late)->Read(4)->data == kept.substr(0, 4));
  CHECK((*late)->Next().stdout_bytes() == 100 - static_cast<int64_t>(kept.size()) + 4);
}

// "MS:data ", or "-:data " if the time is unknown.
std::string WithTimes(LogSource& source, v1::LogStream stream, int64_t tail) {
  v1::ReadLog request = LogOf(stream, tail);
  request.set_times(true);
  auto cursor = source.Open(request);
  REQUIRE(cursor.ok());
  std::string out;
  for (;;) {
    auto piece = (*cursor)->Read(1000);
    if (piece->data.empty()) return out;
    const std::string time = piece->unix_ms.has_value() ? absl::StrCat(*piece->unix_ms) : "-";
    absl::StrAppend(&out, time, ":", absl::StrReplaceAll(piece->data, {{"\n", ""}}), " ");
  }
}

TEST_CASE("logs: the time of output is known to 0.1 s for each stream") {
  testing::TemporaryDirectory tasks;
  const std::string directory = tasks.path() + "/1-0-1";
  std::filesystem::create_directory(directory);
  LogFiles files(tasks.path());
  LogWriter writer(directory, 10, 2);
  v1::ReadLog request = LogOf(v1::STDOUT, 0);
  request.set_times(true);
  auto follower = files.Open(request);
  REQUIRE(follower.ok());
  CHECK((*follower)->Read(100)->data.empty());
  writer.Append(OutputStream::kStdout, "a\n", 1000);
  writer.Append(OutputStream::kStdout, "b\n", 1099);
  writer.Append(OutputStream::kStderr, "x\n", 1105);
  writer.Append(OutputStream::kStdout, "c\n", 1100);
  writer.Append(OutputStream::kStdout, "d\n", 700);  // the clock was set back
  CHECK(WithTimes(files, v1::STDOUT, 0) == "1000:ab 1100:c 700:d ");
  CHECK(WithTimes(files, v1::STDOUT, 2) == "1100:c 700:d ");
  CHECK(WithTimes(files, v1::LOG_STREAM_UNSPECIFIED, 0) == "1000:ab 1105:x 1100:c 700:d ");
  CHECK(ReadAll(files, v1::STDOUT, 0) == "a\nb\nc\nd\n");
  auto piece = (*follower)->Read(100);
  CHECK(piece->data == "a\nb\n");
  CHECK(piece->unix_ms == 1000);
  for (int i = 0; i < 2; ++i) CHECK_FALSE((*follower)->Read(100)->data.empty());
  writer.Append(OutputStream::kStdout, "e\n", 5000);
  piece = (*follower)->Read(100);
  CHECK(piece->data == "e\n");
  CHECK(piece->unix_ms == 5000);
  // An older supervisor wrote no time records.
  std::filesystem::remove(directory + "/times.stdout.0");
  CHECK(WithTimes(files, v1::STDOUT, 0) == "-:abcde ");
}

TEST_CASE(
    "logs: in a long log, times are known where a reader starts, and wherever records exist") {
  testing::TemporaryDirectory tasks;
  const std::string directory = tasks.path() + "/1-0-1";
  std::filesystem::create_directory(directory);
  LogFiles files(tasks.path());
  LogWriter writer(directory, 1 << 20, 2);
  const int64_t lines = kTimeRecordsPerFile * (static_cast<int64_t>(kTimeFiles) + 1) + 5;
  for (int64_t i = 0; i < lines; ++i) writer.Append(OutputStream::kStdout, "l\n", i * 100);
  CHECK(WithTimes(files, v1::STDOUT, 2) ==
        absl::StrCat((lines - 2) * 100, ":l ", (lines - 1) * 100, ":l "));
  v1::ReadLog request = LogOf(v1::STDOUT, 0);
  request.set_times(true);
  request.mutable_from()->set_stdout_bytes(2 * 200'000);
  auto cursor = files.Open(request);
  REQUIRE(cursor.ok());
  CHECK((*cursor)->Read(100)->unix_ms == 200'000 * 100);
  CHECK((*cursor)->Read(100)->unix_ms == 200'001 * 100);
  // The first records were removed, their output was not: it is one piece without a time.
  auto first = files.Open([] {
    v1::ReadLog all = LogOf(v1::STDOUT, 0);
    all.set_times(true);
    return all;
  }());
  auto piece = (*first)->Read(1 << 20);
  CHECK_FALSE(piece->unix_ms.has_value());
  piece = (*first)->Read(1 << 20);
  CHECK(piece->unix_ms.has_value());
}

TEST_CASE("logs: order between the streams, tails, rotation") {
  testing::TemporaryDirectory tasks;
  const std::string directory = tasks.path() + "/1-0-1";
  std::filesystem::create_directory(directory);
  LogFiles files(tasks.path());
  LogWriter writer(directory, 10, 2);
  CHECK(ReadAll(files, v1::STDOUT, 0).empty());
  writer.Append(OutputStream::kStdout, "a\nb\n", 0);
  writer.Append(OutputStream::kStderr, "x\n", 0);
  writer.Append(OutputStream::kStdout, "c\n", 0);
  CHECK(ReadAll(files, v1::STDOUT, 0) == "a\nb\nc\n");
  CHECK(ReadAll(files, v1::STDERR, 0) == "x\n");
  CHECK(ReadAll(files, v1::LOG_STREAM_UNSPECIFIED, 0) == "a\nb\n!x\nc\n");
  CHECK(ReadAll(files, v1::STDOUT, 1) == "c\n");
  CHECK(ReadAll(files, v1::STDOUT, 2) == "b\nc\n");
  CHECK(ReadAll(files, v1::STDOUT, 9) == "a\nb\nc\n");
  CHECK(ReadAll(files, v1::LOG_STREAM_UNSPECIFIED, 1) == "c\n");
  CHECK(ReadAll(files, v1::LOG_STREAM_UNSPECIFIED, 2) == "!x\nc\n");
  CHECK(ReadAll(files, v1::LOG_STREAM_UNSPECIFIED, 3) == "b\n!x\nc\n");
  CHECK(ReadAll(files, v1::LOG_STREAM_UNSPECIFIED, 4) == "a\nb\n!x\nc\n");

  auto follower = files.Open(LogOf(v1::LOG_STREAM_UNSPECIFIED, 1));
  REQUIRE(follower.ok());
  CHECK((*follower)->Read(100)->data == "c\n");
  CHECK((*follower)->Read(100)->data.empty());
  writer.Append(OutputStream::kStdout, "d\n", 0);  // appends to a run that was read to its end
  CHECK((*follower)->Read(100)->data == "d\n");
  writer.Append(OutputStream::kStderr, "y", 0);
  writer.Append(OutputStream::kStdout, "e", 0);
  CHECK((*follower)->Read(100)->data == "y");
  CHECK((*follower)->Read(100)->data == "e");

  for (int i = 0; i < 10; ++i) writer.Append(OutputStream::kStdout, "0123456789", 0);
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().filename().string().rfind("stdout.", 0) == 0)
      bytes += static_cast<int64_t>(file.file_size());
  }
  CHECK(bytes <= 20);
  CHECK(ReadAll(files, v1::STDOUT, 0).size() == static_cast<size_t>(bytes));
  CHECK(ReadAll(files, v1::STDOUT, 5).size() ==
        static_cast<size_t>(bytes));  // fewer lines than requested
  std::string rest;
  for (;;) {
    const auto piece = (*follower)->Read(100);
    if (piece->data.empty()) break;
    rest += piece->data;
  }
  CHECK(rest.size() == static_cast<size_t>(bytes));  // what rotation removed is skipped
  v1::ReadLog of_another = LogOf(v1::STDOUT, 0);
  of_another.mutable_key()->set_job_uid(2);
  CHECK(absl::IsNotFound(files.Open(of_another).status()));
}

}  // namespace
}  // namespace berth

// What a task may write to its NOTIFY_SOCKET, and what follows from it.
#include "clients/agent/supervisor/notify.h"

#include <catch2/catch.hpp>

#include "clients/agent/notice_files.h"
#include "clients/agent/supervisor/spec.h"
#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("notices: all lines of one datagram are read, and others ignored") {
  const Notice notice = ParseNotice(
      "READY=1\nSTATUS=epoch 3: loss=0.25\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=5000000\nSTOPPING=1\n"
      "X_BERTH_STEP=120\nX_BERTH_STEP_TIME_US=250000\nX_BERTH_CHECKPOINT=100,shared,4096\n"
      "MAINPID=7\nFDSTORE=1\nno assignment\n\n=\nready=0\n");
  CHECK(notice.ready);
  CHECK(notice.stopping);
  CHECK(notice.watchdog);
  CHECK(notice.status == "epoch 3: loss=0.25");
  CHECK(notice.extend_us == 5'000'000);
  CHECK(notice.step == 120);
  CHECK(notice.step_time_us == 250'000);
  CHECK(notice.checkpoint == NoticeCheckpoint{.step = 100, .where = 3, .bytes = 4096});
  CHECK_FALSE(notice.invalid);
  CHECK(ParseNotice("") == Notice());
  CHECK(ParseNotice("BARRIER=1") == Notice());
  CHECK(ParseNotice("READY=1").ready);                             // without a line break
  CHECK(ParseNotice(std::string_view("READY=1\0", 8)).ready);      // as C programs may send it
  CHECK(ParseNotice("X_BERTH_STEP=1\nX_BERTH_STEP=2").step == 2);  // the last one counts
}

TEST_CASE("notices: places of a checkpoint are those of the API") {
  for (const auto& [name, where] :
       {std::pair("local", v1::Checkpoint::LOCAL), std::pair("peer", v1::Checkpoint::PEER),
        std::pair("shared", v1::Checkpoint::SHARED)}) {
    const Notice notice = ParseNotice(absl::StrCat("X_BERTH_CHECKPOINT=5,", name));
    REQUIRE(notice.checkpoint.has_value());
    Notices sum;
    AddNotice(notice, kSecond, &sum);
    const v1::Checkpoint checkpoint = ToTaskNotices(sum).told.checkpoint();
    CHECK(checkpoint.step() == 5);
    CHECK(checkpoint.where() == where);
    CHECK(checkpoint.bytes() == 0);
  }
  Notices sum;
  AddNotice(ParseNotice("X_BERTH_CHECKPOINT=5"), kSecond, &sum);
  CHECK(ToTaskNotices(sum).told.checkpoint().where() == v1::Checkpoint::WHERE_UNSPECIFIED);
}

TEST_CASE("notices: an invalid value of a known line is ignored and counted, other lines count") {
  for (const char* line : {"READY=0",
                           "READY=",
                           "READY=yes",
                           "WATCHDOG=trigger",
                           "STOPPING=2",
                           "X_BERTH_STEP=",
                           "X_BERTH_STEP=-1",
                           "X_BERTH_STEP=+1",
                           "X_BERTH_STEP= 1",
                           "X_BERTH_STEP=1.5",
                           "X_BERTH_STEP=0x10",
                           "X_BERTH_STEP=9223372036854775808",
                           "X_BERTH_STEP_TIME_US=fast",
                           "EXTEND_TIMEOUT_USEC=-1",
                           "EXTEND_TIMEOUT_USEC=1s",
                           "X_BERTH_CHECKPOINT=",
                           "X_BERTH_CHECKPOINT=,local",
                           "X_BERTH_CHECKPOINT=1,",
                           "X_BERTH_CHECKPOINT=1,disk",
                           "X_BERTH_CHECKPOINT=1,local,",
                           "X_BERTH_CHECKPOINT=1,local,2,3",
                           "X_BERTH_CHECKPOINT=1,local,-2"}) {
    CAPTURE(line);
    const Notice notice = ParseNotice(absl::StrCat(line, "\nSTATUS=good"));
    CHECK(notice == Notice{.status = "good", .invalid = true});
    Notices sum;
    sum.step = 4;
    AddNotice(notice, kSecond, &sum);
    CHECK(sum.dropped == 1);
    CHECK(sum.step == 4);
    CHECK(sum.status == "good");
    CHECK(sum.progress_ns == 0);
  }
  CHECK(ParseNotice("X_BERTH_STEP=9223372036854775807").step == INT64_MAX);
  CHECK(ParseNotice(std::string_view("READY=1\0STATUS=x", 16)) == Notice{.invalid = true});
}

TEST_CASE("notices: a status is printable and at most 256 bytes, cut between characters") {
  const auto status = [](std::string_view text) {
    return *ParseNotice(absl::StrCat("STATUS=", absl::string_view(text.data(), text.size())))
                .status;
  };
  CHECK(status("") == "");
  CHECK(status("a\x1b[31mb\tc\x7f\r") == "a?[31mb?c??");
  CHECK(status("\xc2\x9b"
               "1m") == "?1m");  // a control character of two bytes
  CHECK(status("Schlüssel 鍵 🔑") == "Schlüssel 鍵 🔑");
  CHECK(status("\xff"
               "a\xc3") == "?a?");              // no such byte; an end that is missing
  CHECK(status("\xc0\xaf") == "??");            // overlong
  CHECK(status("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(status("\xf4\x90\x80\x80") == "????");  // above U+10FFFF
  CHECK(status("\xe9\x8d"
               "b") == "??b");
  CHECK(status(std::string(300, 'x')) == std::string(256, 'x'));
  CHECK(status(std::string(255, 'x') + "ü") == std::string(255, 'x'));
  CHECK(status(std::string(254, 'x') + "ü!") == std::string(254, 'x') + "ü");
}

TEST_CASE("notices: what is progress") {
  Notices sum;
  const auto at = [&sum](const char* text, int64_t second) {
    AddNotice(ParseNotice(text), second * kSecond, &sum);
    return sum.progress_ns / kSecond;
  };
  CHECK(at("STATUS=loading", 1) == 0);
  CHECK(at("STOPPING=1", 2) == 0);
  CHECK(at("X_BERTH_STEP_TIME_US=5", 3) == 0);
  CHECK(at("EXTEND_TIMEOUT_USEC=1", 4) == 0);
  CHECK(at("BARRIER=1", 5) == 0);
  CHECK(at("READY=1", 6) == 6);
  CHECK(at("READY=1", 7) == 6);  // only the first time
  CHECK(at("X_BERTH_STEP=1", 8) == 8);
  CHECK(at("X_BERTH_STEP=1", 9) == 8);  // the same one
  CHECK(at("X_BERTH_STEP=2", 10) == 10);
  CHECK(at("X_BERTH_STEP=1", 11) == 11);  // back to a checkpoint
  CHECK(at("WATCHDOG=1", 12) == 12);
  CHECK(at("WATCHDOG=1", 13) == 13);
  CHECK(at("X_BERTH_CHECKPOINT=1", 14) == 14);
  CHECK(at("X_BERTH_CHECKPOINT=1", 15) == 15);
  CHECK(sum.ready);
  CHECK(sum.stopping);
  CHECK(sum.status == "loading");
  CHECK(sum.step_time_us == 5);
}

TEST_CASE("notices: the latest extension counts, and none is longer than a day") {
  Notices sum;
  const auto extend = [&sum](const char* text) {
    AddNotice(ParseNotice(text), 100 * kSecond, &sum);
    return sum.not_before_ns / kSecond;
  };
  CHECK(extend("EXTEND_TIMEOUT_USEC=3000000") == 103);
  CHECK(extend("STATUS=x") == 103);
  CHECK(extend("EXTEND_TIMEOUT_USEC=1000000") == 101);
  CHECK(extend("EXTEND_TIMEOUT_USEC=0") == 100);
  CHECK(extend("EXTEND_TIMEOUT_USEC=9223372036854775807") == 100 + 86400);
}

TEST_CASE("notices: twenty at once, then ten each second") {
  NoticeLimit limit;
  const auto count = [&limit](int64_t now_ns, int tries) {
    int passed = 0;
    for (int i = 0; i < tries; ++i) passed += limit.Take(now_ns) ? 1 : 0;
    return passed;
  };
  CHECK(count(kSecond, 10'000) == 20);
  CHECK(count(kSecond + kSecond / 10, 10) == 1);
  CHECK(count(3 * kSecond, 10'000) == 19);  // of the 20 that fit, one is not yet back
  CHECK(count(100 * kSecond, 10'000) == 20);
  int64_t now = 200 * kSecond;
  int passed = 0;
  for (int i = 0; i < 1000; ++i, now += kSecond / 10) passed += limit.Take(now) ? 1 : 0;
  CHECK(passed == 1000);  // a program that keeps to ten each second loses none
}

TEST_CASE("notices: as a file, and read again, they are the same") {
  Notices sum;
  std::string text = EncodeNotices(sum);
  Notices read;
  REQUIRE(DecodeNotices(text, &read));
  CHECK(read == sum);
  AddNotice(ParseNotice("READY=1\nSTOPPING=1\nSTATUS=a=b\nX_BERTH_STEP=0\nX_BERTH_STEP_TIME_US=7\n"
                        "X_BERTH_CHECKPOINT=3,peer,9\nEXTEND_TIMEOUT_USEC=10\nREADY=no"),
            5 * kSecond, &sum);
  text = EncodeNotices(sum);
  REQUIRE(DecodeNotices(text + std::string("later=1\0", 8), &read));
  CHECK(read == sum);
  CHECK_FALSE(DecodeNotices(text.substr(0, text.size() - 1), &read));  // truncated
  CHECK_FALSE(DecodeNotices("nonsense", &read));
}

TEST_CASE("notices: a file is read again only if it was replaced") {
  const testing::TemporaryDirectory tasks;
  const TaskId id = {1, 0, 1};
  const std::string directory = tasks.path() + "/" + ToString(id) + kProgressDirectory;
  NoticeFiles files(tasks.path());
  NoticesVersion version;
  CHECK_FALSE(files.Read(id, &version).has_value());
  std::filesystem::create_directories(directory);
  Notices sum;
  AddNotice(ParseNotice("X_BERTH_STEP=3"), 7 * kSecond, &sum);
  REQUIRE(ReplaceFile(directory, kNoticesFile, EncodeNotices(sum)) == 0);
  const auto read = files.Read(id, &version);
  REQUIRE(read.has_value());
  CHECK(read->told.step() == 3);
  CHECK(read->told.has_step());
  CHECK_FALSE(read->told.has_checkpoint());
  CHECK(read->progress == absl::Seconds(7));
  CHECK_FALSE(files.Read(id, &version).has_value());
  sum.dropped = 9;
  REQUIRE(ReplaceFile(directory, kNoticesFile, EncodeNotices(sum)) == 0);
  CHECK(files.Read(id, &version)->told.dropped() == 9);
  NoticesVersion fresh;  // of an agent that has just started
  CHECK(files.Read(id, &fresh).has_value());
  REQUIRE(ReplaceFile(directory, kNoticesFile, "damaged") == 0);
  CHECK_FALSE(files.Read(id, &version).has_value());
}

}  // namespace
}  // namespace berth

#include "support/visible.h"

#include <catch2/catch.hpp>
#include <string>

#include "berth/v1/job.pb.h"
#include "support/log.h"
#include "support/visible_message.h"

namespace berth::testing {

TEST_CASE("visible: characters that control a terminal or the text direction are escaped") {
  CHECK(Visible("plain \xc3\xa4 \xe6\x97\xa5") == "plain \xc3\xa4 \xe6\x97\xa5");
  CHECK(Visible("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  CHECK(Visible("\x1b[2J\x7f") == "\\x1b[2J\\x7f");
  CHECK(Visible(std::string("\0x", 2)) == "\\x00x");
  CHECK(Visible("\xc2\x9b"
                "2J") == "\\u009b2J");
  CHECK(Visible("\xe2\x80\xae"
                "abc\xe2\x80\xac") == "\\u202eabc\\u202c");
  CHECK(Visible("\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf") == "\\u2066\\u2028\\ufeff");
  CHECK(Visible("bad \xff\xc3") == "bad \\xff\\xc3");
  CHECK(FirstInvisible("ab\n") == 2);
  CHECK(FirstInvisible("ab\xff") == 2);
  CHECK(FirstInvisible("") == std::string::npos);
}

TEST_CASE("visible: shortened text keeps whole characters") {
  CHECK(Shortened("abc", 3) == "abc");
  CHECK(Shortened("abcdefgh", 6) == "abc...");
  CHECK(Shortened("ab\xc3\xa4"
                  "cdef",
                  6) == "ab...");
  CHECK(Shortened(std::string(10'000, 'x'), 200).size() == 200);
}

TEST_CASE("visible: line breaks are kept") {
  CHECK(VisibleLines("a\x1b[2J\nb\tc\n") == "a\\x1b[2J\nb\\tc\n");
  CHECK(VisibleLines("").empty());
}

TEST_CASE("visible: every string of a message is escaped, also keys of maps, but no bytes") {
  v1::Job job;
  job.set_name("a\nb");
  (*job.mutable_spec()->mutable_labels())["k\x1b"] = "v\x1b";
  job.mutable_spec()->add_groups()->add_command("x\ty");
  job.mutable_status()->set_message("\xe2\x80\xae");
  MakeVisible(&job);
  CHECK(job.name() == "a\\nb");
  CHECK(job.spec().labels().at("k\\x1b") == "v\\x1b");
  CHECK(job.spec().groups(0).command(0) == "x\\ty");
  CHECK(job.status().message() == "\\u202e");
  v1::ReadLogsResponse output;
  output.set_data("raw\n\x1b");
  MakeVisible(&output);
  CHECK(output.data() == "raw\n\x1b");
}

TEST_CASE("visible: lines of the log are escaped") {
  CHECK(FormatLogLine("x\ny", {{"m",
                                "\xe2\x80\xae"
                                "a"},
                               {"c", "\xc2\x9b"}}) == "x\\ny  m=\"\\u202ea\" c=\"\\u009b\"");
}

}  // namespace berth::testing

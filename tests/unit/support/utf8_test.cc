#include "support/utf8.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

TEST_CASE("invalid UTF-8 is found and sanitized") {
  CHECK(FirstBadUtf8("") == absl::string_view::npos);
  CHECK(FirstBadUtf8("gr\xc3\xbc\xc3\x9f") == absl::string_view::npos);
  CHECK(FirstBadUtf8("a\xfc") == 1);
  CHECK(FirstBadUtf8("\xed\xa0\x80") == 0);  // a surrogate
  CHECK(SanitizedUtf8("disk vollst\xe4ndig", 100) == "disk vollst?ndig");
  CHECK(SanitizedUtf8("gr\xc3\xbcn", 100) == "gr\xc3\xbcn");
  CHECK(SanitizedUtf8("gr\xc3\xbcn", 3) == "gr?");  // cut within a character
  CHECK(SanitizedUtf8("abc", 2) == "ab");
}

}  // namespace
}  // namespace berth

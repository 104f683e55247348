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
  CHECK(SanitizedUtf8(std::string(1'000'000, '\xe4'), 1'000'000) == std::string(1'000'000, '?'));
}

TEST_CASE("every character is UTF-8 in one form only") {
  // The shortest form of each character, by RFC 3629.
  const auto encoded = [](uint32_t code) {
    const auto tail = [&](int bits) { return static_cast<char>(0x80 | (code >> bits & 0x3f)); };
    if (code < 0x80) return std::string{static_cast<char>(code)};
    if (code < 0x800) return std::string{static_cast<char>(0xc0 | code >> 6), tail(0)};
    if (code < 0x10000) return std::string{static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
    return std::string{static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
  };
  for (uint32_t code = 0; code < 0x120000; code += code < 0x11000 ? 1 : 61) {
    const std::string one = encoded(code);
    const bool valid = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    if ((FirstBadUtf8(one) == absl::string_view::npos) != valid) FAIL("U+" << std::hex << code);
    if (!valid) continue;
    absl::string_view rest = one;
    if (TakeCharacter(&rest) != code || !rest.empty()) FAIL("U+" << std::hex << code);
    if (FirstBadUtf8("a" + one.substr(0, one.size() - 1)) != (one.size() > 1 ? 1 : -1ull)) {
      FAIL("cut U+" << std::hex << code);
    }
  }
}

TEST_CASE("no other bytes are UTF-8") {
  // Longer forms than necessary, surrogates and too large values, for all first and second bytes.
  // There are 128 * 128 + 1920 valid strings of two bytes, and 65536 - 2048 - 2048 characters of
  // three.
  int two = 0, three = 0, four = 0;
  std::string text(4, '\x80');
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      text[0] = static_cast<char>(first);
      text[1] = static_cast<char>(second);
      const auto valid = [&](size_t bytes) {
        return FirstBadUtf8(absl::string_view(text).substr(0, bytes)) == absl::string_view::npos;
      };
      two += valid(2);
      three += first >= 0xc0 && valid(3);
      four += first >= 0xc0 && valid(4);
    }
  }
  CHECK(two == 128 * 128 + 1920);
  CHECK(three == (0x10000 - 0x800 - 0x800) / 64);
  CHECK(four == 0x100000 / 64 / 64);
}

}  // namespace
}  // namespace berth

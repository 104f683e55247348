// The text of join tokens, and patterns of names.
#include "support/pki/join_token.h"

#include <catch2/catch.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/wildcard.h"

namespace berth {
namespace {

constexpr char kId[] = "0123456789abcdef";
const std::string kSecret(43, 'A');

TEST_CASE("join token: its text has the id and the secret of its key") {
  const NewJoinToken token = MakeJoinToken().value();
  CHECK(ReadJoinToken(token.text).value() == token.key);
  CHECK(token.text.size() <= kMaxJoinTokenBytes);
  CHECK(token.key.secret_hash.size() == 32);
  CHECK(absl::StartsWith(token.text, absl::StrCat("berth-join.", token.key.id, ".")));
  CHECK_FALSE(MakeJoinToken()->key == token.key);
}

TEST_CASE("join token: the hash is SHA-256 of the secret's text") {
  CHECK(absl::BytesToHexString(Sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const auto key = ReadJoinToken(absl::StrCat("berth-join.", kId, ".", kSecret));
  REQUIRE(key.ok());
  CHECK(key->id == kId);
  CHECK(key->secret_hash == Sha256(kSecret));
  CHECK(SameHash(key->secret_hash, Sha256(kSecret)));
  CHECK_FALSE(SameHash(key->secret_hash, Sha256("other")));
  CHECK_FALSE(SameHash(key->secret_hash, ""));
}

TEST_CASE("join token: texts that are none, and the error does not repeat them") {
  const std::string good = absl::StrCat("berth-join.", kId, ".", kSecret);
  REQUIRE(ReadJoinToken(good).ok());
  for (const std::string& text :
       {std::string(), std::string("berth-join."), good + "A", good.substr(0, good.size() - 1),
        " " + good, good + "\n", absl::StrCat("berth-join.", kId, "-", kSecret),
        absl::StrCat("Berth-join.", kId, ".", kSecret),
        absl::StrCat("berth-join.0123456789ABCDEF.", kSecret),
        absl::StrCat("berth-join.", kId, ".", std::string(42, 'A'), "="),
        absl::StrCat("berth-join.", kId, ".", std::string(42, 'A'), std::string(1, '\0'))}) {
    const absl::Status status = ReadJoinToken(text).status();
    INFO(text);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_FALSE(absl::StrContains(status.message(), "AAAA"));
  }
}

TEST_CASE("patterns of names match whole texts") {
  CHECK(MatchesPattern("gpu-17", "gpu-*"));
  CHECK(MatchesPattern("gpu-17", "gpu-1?"));
  CHECK(MatchesPattern("gpu-17", "*"));
  CHECK(MatchesPattern("gpu-17", "*-*7"));
  CHECK_FALSE(MatchesPattern("xgpu-17", "gpu-*"));
  CHECK_FALSE(MatchesPattern("gpu-17", "gpu-?"));
  CHECK_FALSE(MatchesPattern("gpu-17", "gpu-17?"));
  CHECK(HasWildcard("a*"));
  CHECK(HasWildcard("a?"));
  CHECK_FALSE(HasWildcard("a.b-c"));
}

}  // namespace
}  // namespace berth

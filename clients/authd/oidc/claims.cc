#include "clients/authd/oidc/claims.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/authd/oidc/json.h"
#include "clients/authd/oidc/token.h"
#include "core/access/access.h"
#include "support/pki/certificate.h"
#include "support/proto_time.h"

namespace berth::oidc {
namespace {

using auth::v1::TokenRule;
using Rules = absl::Span<const TokenRule* const>;

// Seconds of the years 1970 to 2200, so that sums stay exact.
constexpr double kLatestSecond = 7258118400;
constexpr size_t kMaxSubjectBytes = 255;  // OpenID Connect Core, 2

absl::Status Refused(absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("the token ", why));
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", text, "\""); }

// One text, or a list of at most `most` texts; nullopt for anything else.
std::optional<std::vector<std::string>> TextsOf(const json_t* value, size_t most) {
  std::vector<std::string> texts;
  if (const std::optional<std::string> text = TextOf(value)) return std::vector<std::string>{*text};
  if (!json_is_array(value) || json_array_size(value) > most) return std::nullopt;
  for (size_t i = 0; i < json_array_size(value); ++i) {
    const std::optional<std::string> text = TextOf(json_array_get(value, i));
    if (!text.has_value()) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

absl::StatusOr<absl::Time> TimeAt(const json_t* claims, const char* name) {
  const json_t* value = json_object_get(claims, name);
  if (value == nullptr) return absl::NotFoundError(absl::StrCat("has no claim ", Quoted(name)));
  const double seconds = json_number_value(value);
  if (!json_is_number(value) || !(seconds >= 0 && seconds <= kLatestSecond)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a claim ", Quoted(name), " that is no time"));
  }
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// The time of a token counts until it could be used.
struct TokenTimes {
  absl::Time issued, end;
};

absl::StatusOr<TokenTimes> CheckTimes(const json_t* claims, absl::Time now) {
  const absl::StatusOr<absl::Time> end = TimeAt(claims, "exp");
  if (!end.ok()) return Refused(end.status().message());
  const absl::StatusOr<absl::Time> issued = TimeAt(claims, "iat");
  if (!issued.ok()) return Refused(issued.status().message());
  const absl::StatusOr<absl::Time> begin = TimeAt(claims, "nbf");
  if (!begin.ok() && !absl::IsNotFound(begin.status())) return Refused(begin.status().message());
  const auto shown = [](absl::Time time) {
    return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
  };
  if (now >= *end + kTokenSkew) return Refused(absl::StrCat("expired at ", shown(*end)));
  if (*issued > now + kTokenSkew || (begin.ok() && *begin > now + kTokenSkew)) {
    return Refused(absl::StrCat("is not valid before ",
                                shown(begin.ok() ? std::max(*issued, *begin) : *issued),
                                "; compare the clocks of the issuer and of berth-authd"));
  }
  return TokenTimes{*issued, *end};
}

absl::Status CheckAudience(const std::vector<std::string>& audiences, const TokenRule& rule) {
  for (const std::string& audience : audiences) {
    const auto& allowed = rule.audiences();
    if (std::find(allowed.begin(), allowed.end(), audience) != allowed.end()) continue;
    return Refused(absl::StrCat("is for the audience ", QuotedBriefly(audience), ", not for ",
                                absl::StrJoin(allowed, " or ", [](std::string* out, const auto& a) {
                                  absl::StrAppend(out, Quoted(a));
                                })));
  }
  return absl::OkStatus();
}

bool HasValue(const json_t* claim, const std::string& wanted) {
  if (json_is_boolean(claim)) return wanted == (json_is_true(claim) ? "true" : "false");
  const auto texts = TextsOf(claim, kMaxCertificateGroups);
  return texts.has_value() && std::find(texts->begin(), texts->end(), wanted) != texts->end();
}

absl::Status CheckRequired(const json_t* claims, const TokenRule& rule) {
  std::vector<std::string> names;
  for (const auto& [name, value] : rule.required_claims()) {
    if (!HasValue(json_object_get(claims, name.c_str()), value)) names.push_back(Quoted(name));
  }
  if (names.empty()) return absl::OkStatus();
  std::sort(names.begin(), names.end());
  return Refused(
      absl::StrCat("does not have the required value of the claim ", absl::StrJoin(names, ", ")));
}

// The first rule for such a token, or what the rules miss.
absl::StatusOr<const TokenRule*> RuleFor(const json_t* claims, Rules rules) {
  const auto audiences = TextsOf(json_object_get(claims, "aud"), kMaxAudiences);
  if (!audiences.has_value() || audiences->empty())
    return Refused("has no claim \"aud\" with an audience");
  std::vector<std::string> problems;
  for (const TokenRule* rule : rules) {
    absl::Status status = CheckAudience(*audiences, *rule);
    if (status.ok()) status = CheckRequired(claims, *rule);
    if (status.ok()) return rule;
    std::string problem(status.message());
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
      problems.push_back(std::move(problem));
    }
  }
  return absl::PermissionDeniedError(absl::StrJoin(problems, "; "));
}

absl::StatusOr<std::string> UserOf(const json_t* claims, const TokenRule& rule) {
  if (!rule.user().empty()) return rule.user();
  const std::string& claim = rule.user_claim();
  const json_t* value = json_object_get(claims, claim.c_str());
  if (value == nullptr)
    return Refused(absl::StrCat("has no claim ", Quoted(claim), " (userClaim)"));
  const std::optional<std::string> text = TextOf(value);
  if (!text.has_value())
    return Refused(absl::StrCat("has a claim ", Quoted(claim), " that is no text"));
  if (claim == "email" && !json_is_true(json_object_get(claims, "email_verified"))) {
    return Refused("has an \"email\" that the issuer has not verified");
  }
  absl::string_view name = *text;
  if (!absl::ConsumeSuffix(&name, rule.remove_suffix())) {
    return Refused(
        absl::StrCat("has a claim ", Quoted(claim), " without the end that removeSuffix asks for"));
  }
  if (name.empty()) return Refused(absl::StrCat("has an empty claim ", Quoted(claim)));
  return absl::StrCat(rule.user_prefix(), name);
}

absl::StatusOr<std::string> CheckedUserOf(const json_t* claims, const TokenRule& rule) {
  absl::StatusOr<std::string> user = UserOf(claims, rule);
  if (!user.ok()) return user;
  if (!IsAccessName(*user) || !CanBeInCertificate(*user)) {
    return Refused(
        "names a user with characters that no name may have, or with a name that is too long");
  }
  if (*user == "root" && rule.user().empty())
    return Refused("names the user \"root\", who gets no certificate");
  return user;
}

// Adds the name if it is a possible and a new one.
void AddGroup(const std::string& name, std::vector<std::string>* groups) {
  if (!IsAccessName(name) || !CanBeInCertificate(name)) return;
  if (std::find(groups->begin(), groups->end(), name) == groups->end()) groups->push_back(name);
}

absl::StatusOr<std::vector<std::string>> GroupsOf(const json_t* claims, const TokenRule& rule) {
  std::vector<std::string> groups(rule.groups().begin(), rule.groups().end());
  const json_t* value =
      rule.groups_claim().empty() ? nullptr : json_object_get(claims, rule.groups_claim().c_str());
  if (value == nullptr) return groups;
  const auto names = TextsOf(value, kMaxCertificateGroups - groups.size());
  if (!names.has_value()) {
    return Refused(absl::StrCat("has a claim ", Quoted(rule.groups_claim()),
                                " that is no list of at most ", kMaxCertificateGroups, " groups"));
  }
  for (const std::string& name : *names) {
    if (!name.empty()) AddGroup(absl::StrCat(rule.group_prefix(), name), &groups);
  }
  return groups;
}

}  // namespace

absl::StatusOr<TokenHolder> HolderOf(absl::string_view claims_text, Rules rules, absl::Time now) {
  const OwnedJson claims = ParseJsonObject(claims_text);
  if (claims == nullptr)
    return absl::InvalidArgumentError("the token's claims are not a JSON object");
  // A message about the end of a login has the same form (OpenID Connect Back-Channel Logout).
  if (json_object_get(claims.get(), "events") != nullptr) return Refused("is one of a log-out");
  const std::optional<std::string> issuer = TextAt(claims.get(), "iss");
  const std::optional<std::string> subject = TextAt(claims.get(), "sub");
  if (!subject.has_value() || subject->empty() || subject->size() > kMaxSubjectBytes) {
    return Refused("has no claim \"sub\" of 1 to 255 bytes");
  }
  const absl::StatusOr<TokenTimes> times = CheckTimes(claims.get(), now);
  if (!times.ok()) return times.status();
  const absl::StatusOr<const TokenRule*> rule = RuleFor(claims.get(), rules);
  if (!rule.ok()) return rule.status();
  if (issuer != (*rule)->issuer()) return Refused("is of another issuer");
  const absl::Duration most = DurationFrom((*rule)->max_token_age());
  if (times->end <= times->issued || times->end - times->issued > most) {
    return Refused(absl::StrCat("is valid for ", absl::FormatDuration(times->end - times->issued),
                                "; at most ", absl::FormatDuration(most), " is allowed"));
  }
  absl::StatusOr<std::string> user = CheckedUserOf(claims.get(), **rule);
  if (!user.ok()) return user.status();
  absl::StatusOr<std::vector<std::string>> groups = GroupsOf(claims.get(), **rule);
  if (!groups.ok()) return groups.status();
  return TokenHolder{.user = *std::move(user),
                     .groups = *std::move(groups),
                     .issuer = *issuer,
                     .subject = *subject,
                     .lifetime = DurationFrom((*rule)->lifetime())};
}

}  // namespace berth::oidc

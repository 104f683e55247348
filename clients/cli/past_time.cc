#include "clients/cli/past_time.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/session/begin_time.h"
#include "support/quantity.h"

namespace berth {

absl::StatusOr<absl::Time> PastTime(const std::string& text, const Session& session,
                                    absl::TimeZone zone) {
  const auto ago = ParseDuration(text);
  if (ago.ok()) {
    return session.Now() - absl::Seconds(ago->seconds) - absl::Nanoseconds(ago->nanos);
  }
  const bool is_date =
      text.size() > 4 && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) && text[4] == '-';
  if (is_date) return ParseBeginTime(text, session.Now(), zone);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is neither how long ago (24h, 30d) nor a time (2026-12-01T10:00)"));
}

}  // namespace berth

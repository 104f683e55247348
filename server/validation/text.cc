#include "server/validation/text.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr absl::string_view kDnsLabelRule =
    "must be a DNS label (at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or "
    "digit)";
constexpr absl::string_view kDnsNameRule =
    "must be DNS labels joined by dots (a-z, 0-9 and '-', at most 63 each and 253 in all)";
constexpr absl::string_view kLabelKeyRule =
    "must be [DNS name/]NAME with NAME of at most 63 letters, digits, '-', '_' and '.', beginning "
    "and ending with a letter or digit";
constexpr absl::string_view kLabelValueRule =
    "must be empty or at most 63 letters, digits, '-', '_' and '.', beginning and ending with a "
    "letter or digit";

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsLabelName(absl::string_view text) {
  if (text.empty() || text.size() > kMaxLabelBytes) return false;
  if (!IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

constexpr std::array<absl::string_view, 12> kStopSignals = {
    "SIGHUP",  "SIGINT",  "SIGQUIT", "SIGABRT", "SIGKILL", "SIGUSR1",
    "SIGUSR2", "SIGALRM", "SIGTERM", "SIGCONT", "SIGXCPU", "SIGWINCH"};

}  // namespace

bool IsLabelKey(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos) return IsLabelName(text);
  return IsDnsName(text.substr(0, slash)) && IsLabelName(text.substr(slash + 1));
}

bool IsLabelValue(absl::string_view text) { return text.empty() || IsLabelName(text); }

bool IsEnvName(absl::string_view text) {
  if (text.empty() || IsDigit(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsAlnum(c) || c == '_'; });
}

bool IsStopSignal(absl::string_view text) {
  return std::find(kStopSignals.begin(), kStopSignals.end(), text) != kStopSignals.end();
}

bool IsUserName(absl::string_view text) {
  constexpr size_t kMaxUserBytes = 128;
  constexpr absl::string_view kOthers = "._-@+";
  return !text.empty() && text.size() <= kMaxUserBytes &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return IsAlnum(c) || absl::StrContains(kOthers, c); });
}

bool IsImageName(absl::string_view text) {
  constexpr size_t kMaxImageBytes = 512;
  constexpr absl::string_view kOthers = "._-@+:";
  if (text.size() > kMaxImageBytes) return false;
  for (const absl::string_view part : absl::StrSplit(text, '/')) {
    const bool good = std::all_of(part.begin(), part.end(), [&](char c) {
      return IsAlnum(c) || absl::StrContains(kOthers, c);
    });
    if (part.empty() || part[0] == '.' || !good) return false;
  }
  return true;
}

bool IsGivenJobName(absl::string_view text) {
  return absl::ConsumePrefix(&text, "job-") && !text.empty() &&
         std::all_of(text.begin(), text.end(), IsDigit);
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 80;
  const std::string escaped = Visible(absl::Utf8SafeCEscape(text.substr(0, kShown)));
  return absl::StrCat("\"", escaped, text.size() > kShown ? "...\"" : "\"");
}

void CheckDnsLabel(const FieldPath& path, absl::string_view text, Findings& findings) {
  if (IsDnsLabel(text)) return;
  findings.Invalid(path, absl::StrCat(kDnsLabelRule, ", is ", Quoted(text)));
}

void CheckDnsName(const FieldPath& path, absl::string_view text, Findings& findings) {
  if (IsDnsName(text)) return;
  findings.Invalid(path, absl::StrCat(kDnsNameRule, ", is ", Quoted(text)));
}

void CheckNoNul(const FieldPath& path, absl::string_view text, Findings& findings) {
  if (!absl::StrContains(text, '\0')) return;
  findings.Invalid(path, "must not contain a NUL byte");
}

void CheckLabels(const FieldPath& parent, absl::string_view field, const StringMap& labels,
                 Findings& findings) {
  if (labels.size() > kMaxLabels) {
    findings.Invalid(FieldPath(parent, field),
                     absl::StrCat("at most ", kMaxLabels, " entries, has ", labels.size()));
  }
  for (const auto& [key, value] : labels) {
    if (!IsLabelKey(key)) {
      findings.Invalid(FieldPath(parent, field, key), absl::StrCat("key ", kLabelKeyRule));
    }
    if (!IsLabelValue(value)) {
      findings.Invalid(FieldPath(parent, field, key),
                       absl::StrCat("value ", kLabelValueRule, ", is ", Quoted(value)));
    }
  }
}

void CheckAnnotations(const FieldPath& parent, absl::string_view field,
                      const StringMap& annotations, Findings& findings) {
  size_t bytes = 0;
  for (const auto& [key, value] : annotations) {
    bytes += key.size() + value.size();
    if (!IsLabelKey(key)) {
      findings.Invalid(FieldPath(parent, field, key), absl::StrCat("key ", kLabelKeyRule));
    }
  }
  if (bytes > kMaxAnnotationBytes) {
    findings.Invalid(FieldPath(parent, field),
                     absl::StrCat("keys and values are at most ", kMaxAnnotationBytes,
                                  " bytes in all, have ", bytes));
  }
}

}  // namespace berth

// Rules for the texts of the API: names, labels, environment, signals. Pure functions.
#ifndef BERTH_SERVER_VALIDATION_TEXT_H_
#define BERTH_SERVER_VALIDATION_TEXT_H_

#include <google/protobuf/map.h>

#include <string>

#include "absl/strings/string_view.h"
#include "server/validation/findings.h"
#include "support/dns_name.h"

namespace berth {

inline constexpr int kMaxLabels = 64;
inline constexpr size_t kMaxAnnotationBytes = size_t{64} << 10;

// [DNS name "/"] name; name: letters, digits, '-', '_', '.', beginning and ending with a letter or
// digit, at most 63.
bool IsLabelKey(absl::string_view text);
// As the name of a label key, or empty.
bool IsLabelValue(absl::string_view text);
// [A-Za-z_][A-Za-z0-9_]*
bool IsEnvName(absl::string_view text);
// The user for accounting, or to run as: at most 128 letters, digits, '.', '_', '-', '@' and '+'.
bool IsUserName(absl::string_view text);
// A name in a node's image store: "team/torch:2.3". It cannot lead out of the store.
bool IsImageName(absl::string_view text);
// A name such as "SIGTERM" that can stop a process.
bool IsStopSignal(absl::string_view text);
// The form of generated job names: "job-" and digits.
bool IsGivenJobName(absl::string_view text);

// The text in quotes, shortened and escaped, for messages.
std::string Quoted(absl::string_view text);

// One finding if the text breaks the rule; `what` names it: "a queue name".
void CheckDnsLabel(const FieldPath& path, absl::string_view text, Findings& findings);
void CheckDnsName(const FieldPath& path, absl::string_view text, Findings& findings);
void CheckNoNul(const FieldPath& path, absl::string_view text, Findings& findings);

using StringMap = google::protobuf::Map<std::string, std::string>;
void CheckLabels(const FieldPath& parent, absl::string_view field, const StringMap& labels,
                 Findings& findings);
void CheckAnnotations(const FieldPath& parent, absl::string_view field,
                      const StringMap& annotations, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_TEXT_H_

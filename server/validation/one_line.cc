#include "server/validation/one_line.h"

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"
#include "support/visible.h"

namespace berth {

void CheckOneLine(const FieldPath& path, absl::string_view text, Findings& findings) {
  const size_t at = FirstInvisible(text);
  if (at == absl::string_view::npos) return;
  findings.Invalid(path, absl::StrCat("must be a single line without control characters or "
                                      "directional marks; byte ",
                                      at, " is one: ", Quoted(text.substr(at, 16))));
}

}  // namespace berth

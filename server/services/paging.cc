#include "server/services/paging.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "support/errors.h"

namespace berth {
namespace {

absl::Status Wrong(absl::string_view field, std::string description) {
  return ViolationsError(absl::StatusCode::kInvalidArgument,
                         {{std::string(field), std::move(description)}});
}

}  // namespace

absl::StatusOr<Page> ReadPage(int page_size, absl::string_view page_token,
                              const std::string& scope) {
  if (page_size < 0 || page_size > kMaxPageSize) {
    return Wrong("page_size", absl::StrCat("must be 1..", kMaxPageSize, ", or 0 for ",
                                           kDefaultPageSize, ", is ", page_size));
  }
  Page page;
  if (page_size > 0) page.size = page_size;
  if (page_token.empty()) return page;
  std::string token;
  if (!absl::WebSafeBase64Unescape(page_token, &token) || token.size() <= scope.size()) {
    return Wrong("page_token", "is not a token of this service; omit it to begin");
  }
  if (!absl::StartsWith(token, scope)) {
    return Wrong("page_token", "belongs to another list or filter; omit it to begin");
  }
  page.after = token.substr(scope.size());
  return page;
}

std::string PageToken(absl::string_view after, const std::string& scope) {
  return absl::WebSafeBase64Escape(absl::StrCat(scope, after));
}

std::string PageKey(uint64_t id) { return absl::StrCat(id); }

uint64_t PageKeyId(absl::string_view key) {
  uint64_t id = 0;
  return absl::SimpleAtoi(key, &id) ? id : 0;
}

}  // namespace berth

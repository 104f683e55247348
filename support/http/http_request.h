// The head of a request of HTTP/1, as far as answering GET needs it.
#ifndef BERTH_SUPPORT_HTTP_HTTP_REQUEST_H_
#define BERTH_SUPPORT_HTTP_HTTP_REQUEST_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace berth {

// The head at the beginning of `received`, with the empty line that ends it; "": it is not whole.
absl::string_view HttpHeadOf(absl::string_view received);

// Views of the head that it was read from.
struct HttpRequest {
  absl::string_view method;
  absl::string_view path;  // without what follows a "?"
  bool has_body = false;   // or says that it has
};
// nullopt: not HTTP/1.
std::optional<HttpRequest> ParseHttpHead(absl::string_view head);

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_REQUEST_H_

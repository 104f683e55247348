// Requests to HTTPS servers, with bounds. Nothing of libcurl appears in the interface.
#ifndef BERTH_SUPPORT_FETCH_HTTPS_CLIENT_H_
#define BERTH_SUPPORT_FETCH_HTTPS_CLIENT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

// Who may have signed the server's certificate. Both empty: the system's authorities.
struct HttpsTrust {
  std::string file;  // PEM file, read for each request
  std::string pem;
};

struct HttpsRequest {
  std::string url;  // https://
  // Empty: GET. Otherwise POST.
  std::string body;
  std::string content_type;
  std::string client_file;              // PEM file: the client's certificate and its key; "" = none
  size_t most_bytes = size_t{1} << 20;  // of the answer
  absl::Duration patience = absl::Seconds(10);  // for all of it
};

struct HttpsAnswer {
  int code = 0;
  std::string body;
};

// An answer with any code. The server's certificate must be valid for the host of the URL;
// redirects are not followed. Blocks; thread-safe. INVALID_ARGUMENT: the URL or the file of
// authorities; UNAVAILABLE: no connection, no trust, too slow, or an answer that is too large. The
// messages contain the URL, and nothing of the body.
absl::StatusOr<HttpsAnswer> AskHttps(const HttpsRequest& request, const HttpsTrust& trust);

// "https://", a host, and printable ASCII without spaces, quotes, '\\', '<', '>', '#' and user
// names; at most kMaxUrlBytes.
bool IsHttpsUrl(absl::string_view url);
inline constexpr size_t kMaxUrlBytes = 1024;

// "a=1&b=x%20y" (application/x-www-form-urlencoded).
std::string FormOf(const std::vector<std::pair<std::string, std::string>>& fields);
inline constexpr char kFormType[] = "application/x-www-form-urlencoded";
inline constexpr char kJsonType[] = "application/json";

}  // namespace berth

#endif  // BERTH_SUPPORT_FETCH_HTTPS_CLIENT_H_

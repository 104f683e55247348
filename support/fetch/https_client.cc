#include "support/fetch/https_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr absl::Duration kConnectPatience = absl::Seconds(5);

struct Receiver {
  std::string body;
  size_t most_bytes = 0;
  bool too_large = false;
};

size_t ReceivePart(char* data, size_t size, size_t count, void* receiver_pointer) {
  auto* receiver = static_cast<Receiver*>(receiver_pointer);
  const size_t bytes = size * count;
  if (bytes > receiver->most_bytes - receiver->body.size()) {
    receiver->too_large = true;
    return 0;  // libcurl gives up
  }
  receiver->body.append(data, bytes);
  return bytes;
}

void InitialiseCurl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

void SetTrust(CURL* curl, const HttpsTrust& trust) {
  if (!trust.file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, trust.file.c_str());
  if (!trust.pem.empty()) {
    curl_blob blob{const_cast<char*>(trust.pem.data()), trust.pem.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
  }
  // Only the authorities that are named here, not also those of the system's folder.
  if (!trust.file.empty() || !trust.pem.empty()) curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
}

void SetRequest(CURL* curl, const HttpsRequest& request, curl_slist* headers) {
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, absl::ToInt64Milliseconds(kConnectPatience));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, absl::ToInt64Milliseconds(request.patience));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  if (!request.client_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_SSLCERT, request.client_file.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, request.client_file.c_str());
  }
  if (request.body.empty()) return;
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
}

absl::Status Failure(CURLcode code, const HttpsRequest& request, const Receiver& receiver,
                     const char* reason) {
  if (receiver.too_large) {
    return absl::UnavailableError(
        absl::StrCat(request.url, ": the answer has more than ", request.most_bytes, " bytes"));
  }
  const absl::string_view text = reason[0] == '\0' ? curl_easy_strerror(code) : reason;
  std::string message = absl::StrCat(request.url, ": ", absl::StripAsciiWhitespace(text));
  const bool ours = code == CURLE_SSL_CACERT_BADFILE || code == CURLE_URL_MALFORMAT ||
                    code == CURLE_UNSUPPORTED_PROTOCOL;
  return ours ? absl::InvalidArgumentError(message) : absl::UnavailableError(message);
}

}  // namespace

absl::StatusOr<HttpsAnswer> AskHttps(const HttpsRequest& request, const HttpsTrust& trust) {
  if (!IsHttpsUrl(request.url)) {
    return absl::InvalidArgumentError(absl::StrCat("not an https URL: ", request.url));
  }
  InitialiseCurl();
  CURL* curl = curl_easy_init();
  if (curl == nullptr) return absl::UnavailableError("out of memory");
  const absl::Cleanup clean_up = [curl] { curl_easy_cleanup(curl); };
  curl_slist* headers = curl_slist_append(nullptr, "Accept: application/json");
  if (!request.body.empty()) {
    const std::string type = absl::StrCat("Content-Type: ", request.content_type);
    headers = curl_slist_append(headers, type.c_str());
    headers = curl_slist_append(headers, "Expect:");
  }
  const absl::Cleanup free_headers = [headers] { curl_slist_free_all(headers); };
  SetRequest(curl, request, headers);
  SetTrust(curl, trust);
  Receiver receiver{.body = "", .most_bytes = request.most_bytes};
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &ReceivePart);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &receiver);
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return Failure(code, request, receiver, reason);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return HttpsAnswer{.code = static_cast<int>(status), .body = std::move(receiver.body)};
}

bool IsHttpsUrl(absl::string_view url) {
  if (url.size() > kMaxUrlBytes || !absl::ConsumePrefix(&url, "https://")) return false;
  const absl::string_view host = url.substr(0, url.find_first_of("/?"));
  if (host.empty() || absl::StrContains(host, '@')) return false;
  return std::all_of(url.begin(), url.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && !absl::StrContains("\"\\<>#", c);
  });
}

std::string FormOf(const std::vector<std::pair<std::string, std::string>>& fields) {
  const auto encoded = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (absl::ascii_isalnum(byte) || absl::StrContains("-._~", c)) {
        out.push_back(c);
      } else {
        absl::StrAppend(&out, "%", absl::Hex(byte, absl::kZeroPad2));
      }
    }
    return out;
  };
  std::string form;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&form, form.empty() ? "" : "&", encoded(name), "=", encoded(value));
  }
  return form;
}

}  // namespace berth

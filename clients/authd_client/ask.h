// Requests whose answers are messages in JSON.
#ifndef BERTH_CLIENTS_AUTHD_CLIENT_ASK_H_
#define BERTH_CLIENTS_AUTHD_CLIENT_ASK_H_

#include <google/protobuf/message.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "support/fetch/https_client.h"

namespace berth {

// AskHttps, or a test's.
using Ask = std::function<absl::StatusOr<HttpsAnswer>(const HttpsRequest& request,
                                                      const HttpsTrust& trust)>;

// Ignores fields that the message does not have. The text is not in the error: it may be secret.
bool ParseJson(const std::string& text, google::protobuf::Message* message);

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_CLIENT_ASK_H_

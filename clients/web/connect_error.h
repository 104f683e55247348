// Errors as the Connect protocol writes them: a status of HTTP, and JSON with code and message.
#ifndef BERTH_CLIENTS_WEB_CONNECT_ERROR_H_
#define BERTH_CLIENTS_WEB_CONNECT_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clients/web/web_server.h"

namespace berth::web {

// "not_found"
absl::string_view ConnectCode(absl::StatusCode code);
// {"code": "not_found", "message": "...", "details": [{"field": "...", "description": "..."}]}.
// Details are the violations of the request, in the order of the answer.
std::string ErrorJson(const absl::Status& status);
WebAnswer ErrorAnswer(const absl::Status& status);

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_CONNECT_ERROR_H_

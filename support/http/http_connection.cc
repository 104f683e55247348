#include "support/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/http/http_request.h"

namespace berth {
namespace {

const char* Reason(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string Encoded(const HttpAnswer& answer, bool head_only) {
  return absl::StrCat("HTTP/1.1 ", answer.code, " ", Reason(answer.code),
                      "\r\nContent-Type: ", answer.content_type,
                      "\r\nContent-Length: ", answer.body.size(), "\r\nConnection: close\r\n\r\n",
                      head_only ? "" : answer.body);
}

bool MayComeYet(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

HttpConnection::~HttpConnection() { close(fd_); }

short HttpConnection::events() const {
  switch (stage_) {
    case Stage::kReading:
    case Stage::kClosing:
      return POLLIN;
    case Stage::kWriting:
      return POLLOUT;
    default:
      return 0;
  }
}

bool HttpConnection::Advance(short events) {
  if (events == 0) return true;
  if (stage_ == Stage::kWriting) return Write();
  if (stage_ == Stage::kReading || stage_ == Stage::kClosing) return Read();
  return false;  // the client has gone
}

bool HttpConnection::Read() {
  std::array<char, kHttpHeaderBytes> buffer;
  const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
  if (count <= 0) return count < 0 && MayComeYet(errno);
  if (stage_ == Stage::kClosing) return true;
  request_.append(buffer.data(), static_cast<size_t>(count));
  const absl::string_view head = HttpHeadOf(request_);
  if (head.empty() && request_.size() < kHttpHeaderBytes) return true;
  if (!head.empty()) request_.resize(head.size());
  stage_ = Stage::kAsking;
  return true;
}

void HttpConnection::AwaitAnswer() {
  stage_ = Stage::kMaking;
  deadline_ = absl::InfiniteDuration();
}

bool HttpConnection::Answer(const HttpAnswer& answer, absl::Duration now) {
  answer_ = Encoded(answer, /*head_only=*/absl::StartsWith(request_, "HEAD "));
  deadline_ = now + kHttpAnswerTime;
  stage_ = Stage::kWriting;
  return Write();
}

bool HttpConnection::Write() {
  const absl::string_view rest = absl::string_view(answer_).substr(sent_bytes_);
  const ssize_t count = send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count < 0) return MayComeYet(errno);
  sent_bytes_ += static_cast<size_t>(count);
  if (sent_bytes_ < answer_.size()) return true;
  answer_ = std::string();
  stage_ = Stage::kClosing;
  return shutdown(fd_, SHUT_WR) == 0;
}

}  // namespace berth

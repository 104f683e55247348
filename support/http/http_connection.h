// One connection of an HttpServer: a request, an answer, and no more. Nothing here waits.
#ifndef BERTH_SUPPORT_HTTP_HTTP_CONNECTION_H_
#define BERTH_SUPPORT_HTTP_HTTP_CONNECTION_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

struct HttpAnswer {
  int code = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

inline constexpr size_t kHttpHeaderBytes = 4096;                      // of a request
inline constexpr absl::Duration kHttpRequestTime = absl::Seconds(2);  // for the whole request
inline constexpr absl::Duration kHttpAnswerTime = absl::Seconds(10);  // for the whole answer

class HttpConnection {
 public:
  // Owns the socket, which does not block. `now` is steady time, here and below.
  HttpConnection(int fd, absl::Duration now) : fd_(fd), deadline_(now + kHttpRequestTime) {}
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int fd() const { return fd_; }
  short events() const;  // to poll for
  absl::Duration deadline() const { return deadline_; }
  size_t answer_bytes() const { return answer_.size(); }  // until all of it is sent

  // Does what can be done now. False: it is over.
  bool Advance(short events);
  // Whether a request is there that Answer was not yet called for; its head, or what is too much of
  // one.
  bool asks() const { return stage_ == Stage::kAsking; }
  absl::string_view request() const { return request_; }
  // An answer is being made, which takes as long as it takes.
  void AwaitAnswer();
  // Once. False: it is over.
  bool Answer(const HttpAnswer& answer, absl::Duration now);

 private:
  // kClosing: until the client has closed, too. Closing with bytes of the client unread would take
  // the answer away from it.
  enum class Stage { kReading, kAsking, kMaking, kWriting, kClosing };
  bool Read();
  bool Write();

  const int fd_;
  absl::Duration deadline_;
  Stage stage_ = Stage::kReading;
  std::string request_;
  std::string answer_;
  size_t sent_bytes_ = 0;
};

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_HTTP_CONNECTION_H_

// The NOTIFY_SOCKET of one task: receives what the task reports, within limits, and writes the sum
// to TASK_DIR/progress/notices. Costs nothing while the task reports nothing.
//
// Descriptors that come with a datagram are closed at once: a program that sends BARRIER=1
// (systemd-notify) waits for that.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_SOCKET_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "clients/agent/supervisor/notify.h"

namespace berth {

class NotifySocket {
 public:
  explicit NotifySocket(const std::string& task_directory);
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // Makes the socket, which only `uid` and root can send to (-1: this process's user), and the file
  // `place` for it, if that is not empty. Returns an errno, 0 = OK.
  int Open(const std::string& path, int64_t uid, const std::string& place);
  // To wait for input; -1 if there is none to wait for.
  int fd() const { return resume_ns_ == 0 ? fd_ : -1; }
  // When to call Work, even without input; 0: never.
  int64_t NextNs() const;
  // Reads what has come, if `readable`, and writes what is due.
  void Work(int64_t now_ns, bool readable);
  // No process of the task remains: reads the rest, writes it, and removes the socket.
  void Close(int64_t now_ns);

 private:
  void Read(int64_t now_ns, int most, int64_t longest_ns);
  void Take(std::string_view datagram, bool whole, int64_t now_ns);
  void Write(int64_t now_ns);

  const std::string directory_;
  std::string path_, place_;
  int fd_ = -1;
  Notices notices_;
  NoticeLimit limit_;
  bool unwritten_ = false;
  int64_t write_ns_ = 0;   // not to be written before
  int64_t resume_ns_ = 0;  // reading pauses until then; 0: it does not
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_NOTIFY_SOCKET_H_

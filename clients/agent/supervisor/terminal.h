// The terminal of one task: a pseudo-terminal whose master the task's supervisor holds, and the
// socket at which the agent attaches clients to it. It outlives every client and the agent.
//
//   TASK_DIR/terminal   SOCK_SEQPACKET, accessible to the supervisor's user. Packets begin with a
//                       letter:
//     agent:       i BYTES      input, at most kTerminalPacketBytes
//                  w ROWS COLS  the size of the client's window
//     supervisor:  o BYTES      output; what was printed last comes first
//                  x CODE       the task's command has ended; the last packet
//                  e TEXT       refused; the last packet
//
// Output goes to the task's log and to all clients. A client that reads slowly slows the task down,
// as on any terminal; one that reads nothing for kStallNs is dropped. One thread; never blocks.
// Standard library only.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_TERMINAL_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_TERMINAL_H_

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

inline constexpr char kTerminalSocket[] = "terminal";  // in the task's directory
inline constexpr size_t kTerminalPacketBytes = 8192;   // besides the letter
inline constexpr size_t kMaxTerminalClients = 16;
inline constexpr size_t kTerminalHistoryBytes = 8192;

// The address of NAME in a directory whose path may be longer than an address: through `directory`,
// a descriptor of it. 0 or an errno of `use`, which is bind or connect.
int UseSocketIn(int directory, const char* name, int fd, bool bind_it);

class Terminal {
 public:
  using Print = std::function<void(std::string_view)>;

  Terminal() = default;
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Returns an errno, 0 = it is open.
  int Open(const std::string& task_directory);
  // The command is a container runtime, which gives its container another terminal. crun 1.8 passes
  // no sizes on: they are set on that terminal, too, through the runtime's descriptor of it.
  void SetRuntime(pid_t runtime) { runtime_ = runtime; }
  bool is_open() const { return master_ >= 0; }
  // The end of the task. It stays open here, so that the master never reports an end.
  int task_end() const { return task_end_; }
  // The process group in the foreground; 0: none.
  pid_t Foreground() const;

  void AddTo(std::vector<pollfd>* fds) const;
  // Moves bytes; `print` gets the output.
  void Work(int64_t now_ns, const Print& print);
  // When Work is due without an event, in BoottimeNs; 0: never.
  int64_t NextNs() const;
  // Reads what is left, however slowly clients read.
  void Drain(const Print& print);
  // The command has ended: tells the clients, and takes no more.
  void End(int exit_code);
  // Waits a short time for clients to read the rest.
  void Close();

 private:
  static constexpr int64_t kStallNs = 2'000'000'000;
  struct Client {
    int fd = -1;
    std::deque<std::string> packets;  // to send
    size_t bytes = 0;                 // of these
    int64_t stalled_ns = 0;           // since when it has taken nothing; 0: nothing waits
    bool sized = false;               // has told its size
    bool last = false;                // nothing more will be queued: dropped once it has all
  };

  void Accept();
  void Receive(Client* client);
  void Resize(Client* client, std::string_view sides);
  void TellSizeAgain(int64_t now_ns);
  void WriteInput();
  bool ReadOutput(const Print& print);
  bool HasRoom() const;
  void Queue(Client* client, std::string packet);
  void Flush(int64_t now_ns, Client* client);
  void DropClosed();

  int master_ = -1;
  int task_end_ = -1;
  int listener_ = -1;
  bool ended_ = false;
  pid_t runtime_ = 0;                 // 0: the command is none
  bool sized_ = false;                // since the last Work
  std::deque<int64_t> tell_size_at_;  // ascending
  std::string input_;                 // the terminal has not taken it yet
  std::string history_;               // what was printed last
  std::vector<Client> clients_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_TERMINAL_H_

// Unpacks images of OCI layouts with berth-image, in one process per image, so that the agent is
// not blocked. Tasks that need the same image wait for the same process; each then gets its own
// process, which finds the image and keeps it for the task.
#ifndef BERTH_CLIENTS_AGENT_IMAGE_UNPACKER_H_
#define BERTH_CLIENTS_AGENT_IMAGE_UNPACKER_H_

#include <sys/types.h>

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/agent/v1/image.pb.h"
#include "clients/agent/task_id.h"

namespace berth {

// Not thread-safe. The destructor leaves processes running: their results are found later.
class ImageUnpacker {
 public:
  struct Result {
    TaskId id;
    absl::Status status;  // OK: the request's link exists
    std::string digest;   // of what the name of a pulled image means; empty: not known
  };
  struct Progress {
    TaskId id;
    int64_t bytes = 0, of = 0;  // that are pulled from a registry
  };
  // `program`: the path of berth-image.
  static absl::StatusOr<std::unique_ptr<ImageUnpacker>> Create(std::string program);
  ~ImageUnpacker();

  // A result follows later. `name`: the image, for messages.
  void Begin(const TaskId& id, const std::string& name, agent::v1::ImageRequest request);
  // Unpacking continues for later tasks. If it is already this task's turn, a result follows, and
  // the receiver must remove the link.
  void Forget(const TaskId& id);
  // No result follows.
  void CleanUp(agent::v1::ImageRequest request);

  // Readable when Poll has something to do.
  int fd() const { return epoll_fd_; }
  std::vector<Result> Poll();
  // What Poll has read since the last call, in the order of the lines.
  std::vector<Progress> TakeProgress();

 private:
  struct Wish {
    TaskId id;
    std::string name;
    agent::v1::ImageRequest request;
  };
  struct Work {
    std::string image;       // layout and tag, or Pull.key; empty: cleaning up
    std::list<Wish> wishes;  // the process serves the first
    bool forgotten = false;  // the first is no longer needed
    pid_t pid = -1;
    int output = -1;
    std::string words;
    std::string line;  // of words, not complete
    std::string digest;
  };

  explicit ImageUnpacker(std::string program) : program_(std::move(program)) {}
  absl::Status Spawn(Work& work, const agent::v1::ImageRequest& request);
  void SpawnFirst(Work& work);
  void Read(Work& work);
  void OnEnd(Work& work);
  void TakeWords(Work& work, absl::string_view text);
  void FailAll(Work& work, const absl::Status& status);

  const std::string program_;
  int epoll_fd_ = -1;
  std::list<Work> works_;
  std::vector<Result> results_;
  std::vector<Progress> progress_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGE_UNPACKER_H_

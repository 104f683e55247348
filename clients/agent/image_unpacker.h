// Has images of OCI layouts unpacked by berth-image, a process each, so that the agent goes on
// meanwhile. Tasks that want the same image wait for the same process; each then gets one of its
// own, which finds the image there and keeps it for the task.
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

// Not thread-safe. Destroying it leaves the processes running: what they unpack is found later.
class ImageUnpacker {
 public:
  struct Result {
    TaskId id;
    absl::Status status;  // OK: the request's link is there
  };
  // `program`: the path of berth-image.
  static absl::StatusOr<std::unique_ptr<ImageUnpacker>> Create(std::string program);
  ~ImageUnpacker();

  // A result follows, later. `name`: the image, for messages.
  void Begin(const TaskId& id, const std::string& name, agent::v1::ImageRequest request);
  // What is being unpacked is unpacked to the end all the same, for who comes later; if it is this
  // task's turn already, a result follows, and who gets it removes the link.
  void Forget(const TaskId& id);
  // No result follows.
  void CleanUp(agent::v1::ImageRequest request);

  // Readable when Poll has something to do.
  int fd() const { return epoll_fd_; }
  std::vector<Result> Poll();

 private:
  struct Wish {
    TaskId id;
    std::string name;
    agent::v1::ImageRequest request;
  };
  struct Work {
    std::string image;       // layout and tag; empty: cleaning up
    std::list<Wish> wishes;  // the process works for the first
    bool forgotten = false;  // the first is not wanted any more
    pid_t pid = -1;
    int output = -1;
    std::string words;
  };

  explicit ImageUnpacker(std::string program) : program_(std::move(program)) {}
  absl::Status Spawn(Work& work, const agent::v1::ImageRequest& request);
  void SpawnFirst(Work& work);
  void Read(Work& work);
  void OnEnd(Work& work);
  void FailAll(Work& work, const absl::Status& status);

  const std::string program_;
  int epoll_fd_ = -1;
  std::list<Work> works_;
  std::vector<Result> results_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGE_UNPACKER_H_

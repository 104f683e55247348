// berth-image REQUEST: makes an image of an OCI layout ready for a task (image_cache.h). Started by
// berth-agent for each, so that neither a long unpacking nor what a layout says can hurt the agent.
// REQUEST is a berth.agent.v1.ImageRequest as JSON. Exit code 0: it is there; else standard output
// says why not: 3 for what is wrong with the image itself, 1 and 2 for the node. Outlives its
// agent: the next one finds what it did.
#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "clients/images/image_cache.h"

namespace {

constexpr int kNice = 10;  // behind the tasks
constexpr size_t kMaxMessageBytes = 2000;

// The agent reads what this process writes, and is there as long as it does.
bool AgentListens() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) < 0 || (out.revents & (POLLERR | POLLHUP)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  berth::agent::v1::ImageRequest request;
  if (argc != 2 || !google::protobuf::util::JsonStringToMessage(argv[1], &request).ok()) {
    std::fprintf(stderr, "berth-image is started by berth-agent\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  setpriority(PRIO_PROCESS, 0, kNice);
  berth::ImageCache cache(request, AgentListens);
  const absl::Status status = request.layout().empty() ? cache.CleanUp() : cache.Provide();
  if (status.ok()) return 0;
  const std::string message(status.message().substr(0, kMaxMessageBytes));
  if (write(STDOUT_FILENO, message.data(), message.size()) < 0) return 2;
  return berth::IsImagesFault(status) ? 3 : berth::IsTooLarge(status) ? 4 : 1;
}

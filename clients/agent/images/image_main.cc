// berth-image REQUEST: prepares an image of an OCI layout for a task (image_cache.h). berth-agent
// starts one process per request, so that neither long unpacking nor a hostile layout can harm the
// agent. REQUEST is a berth.agent.v1.ImageRequest as JSON. Exit code 0: the image is ready.
// Otherwise standard output has the reason: 3 for an error in the image itself, 4 for an image that
// is too large for this node or whose registry does not answer, 1 and 2 for the node. Before it,
// lines "@BYTES OF" tell how much is pulled, and "@sha256:HEX" what the image's name means. It
// outlives its agent: the next agent finds its result.
#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "clients/agent/images/image_cache.h"

namespace {

constexpr int kNice = 10;  // lower priority than tasks
// A task may come to wait for the locks of a pull in advance, so it gets little of busy CPUs, but
// not nothing.
constexpr int kBackgroundNice = 15;
constexpr size_t kMaxMessageBytes = 2000;

// The agent holds the other end of standard output for as long as it waits for this process.
bool AgentIsAlive() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) < 0 || (out.revents & (POLLERR | POLLHUP)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  berth::agent::v1::ImageRequest request;
  if (argc != 2 || !google::protobuf::util::JsonStringToMessage(argv[1], &request).ok()) {
    std::fprintf(stderr, "berth-image: started by berth-agent only; not for direct use\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  setpriority(PRIO_PROCESS, 0, request.background() ? kBackgroundNice : kNice);
  berth::ImageCache cache(request, AgentIsAlive, [](int64_t bytes, int64_t of) {
    dprintf(STDOUT_FILENO, "@%lld %lld\n", static_cast<long long>(bytes),
            static_cast<long long>(of));
  });
  const bool provide = !request.layout().empty() || request.has_pull();
  const absl::Status status = provide ? cache.Provide() : cache.CleanUp();
  if (status.ok() && !cache.digest().empty())
    dprintf(STDOUT_FILENO, "@%s\n", cache.digest().c_str());
  if (status.ok()) return 0;
  const std::string message(status.message().substr(0, kMaxMessageBytes));
  if (write(STDOUT_FILENO, message.data(), message.size()) < 0) return 2;
  return berth::IsImageError(status) ? 3 : berth::IsNobodysFault(status) ? 4 : 1;
}

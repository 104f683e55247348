// Images on this node: which ones it holds, and pulls of images for jobs that will probably start
// here. Pulls come one at a time, with low priority, and keep no image: a task that comes does.
#ifndef BERTH_CLIENTS_AGENT_PREFETCHER_H_
#define BERTH_CLIENTS_AGENT_PREFETCHER_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/image_unpacker.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/isolation.h"

namespace berth {

// Not thread-safe. The destructor leaves a pull running.
class Prefetcher final : public NodeImageSource {
 public:
  // `directory`: for credentials that jobs bring; created if needed. `image_program`: the path of
  // berth-image.
  static absl::StatusOr<std::unique_ptr<Prefetcher>> Create(
      std::shared_ptr<const Isolation> isolation, const std::string& image_program,
      std::string directory);

  v1::NodeImages Images() override;
  void Prefetch(const v1::Prefetch& request) override;

  // Readable when Poll has something to do.
  int fd() const { return pulls_->fd(); }
  void Poll();

 private:
  Prefetcher(std::shared_ptr<const Isolation> isolation, std::string directory)
      : isolation_(std::move(isolation)), directory_(std::move(directory)) {}
  void BeginNext();

  const std::shared_ptr<const Isolation> isolation_;
  const std::string directory_;
  std::unique_ptr<ImageUnpacker> pulls_;
  std::deque<v1::Prefetch> waiting_;  // the first one is being pulled, if `pulling_`
  bool pulling_ = false;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_PREFETCHER_H_

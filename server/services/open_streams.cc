#include "server/services/open_streams.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth {
namespace {

constexpr size_t kAskedTogether = 256;

bool ChangesAccess(const Event& event) {
  const auto* access = std::get_if<AccessChanged>(&event.body);
  return (access != nullptr && access->change.ChangesRights()) ||
         std::holds_alternative<QueueDeleted>(event.body);  // its grants end
}

}  // namespace

std::unique_ptr<OpenStreams::Entry> OpenStreams::Add(May may, End end) {
  absl::MutexLock lock(&mutex_);
  const uint64_t id = next_id_++;
  streams_.emplace(id, Stream{id, std::move(may), std::move(end)});
  return std::make_unique<Entry>(this, id);
}

void OpenStreams::Remove(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(id);
}

void OpenStreams::OnTurnDurable(uint64_t, std::shared_ptr<const std::vector<Event>> events,
                                std::shared_ptr<const std::string>) {
  if (std::any_of(events->begin(), events->end(), ChangesAccess)) Recheck();
}

void OpenStreams::Recheck() {
  executor_->Run([this] { Ask(); });
}

std::vector<OpenStreams::Stream> OpenStreams::Some(uint64_t from) const {
  std::vector<Stream> some;
  absl::MutexLock lock(&mutex_);
  for (auto next = streams_.lower_bound(from);
       next != streams_.end() && some.size() < kAskedTogether; ++next) {
    some.push_back(next->second);
  }
  return some;
}

void OpenStreams::Ask() const {
  std::vector<Stream> some = Some(0);
  while (!some.empty()) {
    std::vector<absl::Status> answers;
    loop_->Read([&](const ClusterState& state, uint64_t) {
      for (const Stream& stream : some) answers.push_back(stream.may(state));
      return 0;
    });
    for (size_t i = 0; i < some.size(); ++i) {
      if (!answers[i].ok()) some[i].end(answers[i]);
    }
    some = Some(some.back().id + 1);
  }
}

}  // namespace berth

#include "clients/web/shared_reads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/web/methods.h"

namespace berth::web {
namespace {

std::string KeyOf(const Upstream::Call& call) {
  return absl::StrCat(call.method, " ", call.request);
}

}  // namespace

void SharedReads::Ask(const google::protobuf::MethodDescriptor& method, Upstream::Call call,
                      Done done) {
  {
    absl::MutexLock lock(&mutex_);
    const auto [found, first] = reads_.try_emplace(KeyOf(call));
    if (!first) return found->second.next.push_back(std::move(done));
    found->second.now.push_back(std::move(done));
  }
  Begin(method, call);
}

void SharedReads::Begin(const google::protobuf::MethodDescriptor& method,
                        const Upstream::Call& call) {
  upstream_->Unary(
      call, [self = shared_from_this(), &method, call](const absl::StatusOr<std::string>& answer) {
        self->End(method, call, answer);
      });
}

void SharedReads::End(const google::protobuf::MethodDescriptor& method, const Upstream::Call& call,
                      const absl::StatusOr<std::string>& answer) {
  std::vector<Done> asked;
  bool again = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = reads_.find(KeyOf(call));
    asked = std::move(found->second.now);
    found->second.now = std::exchange(found->second.next, {});
    again = !found->second.now.empty();
    if (!again) reads_.erase(found);
  }
  if (again) Begin(method, call);
  const absl::StatusOr<std::string> json =
      answer.ok() ? AnswerToJson(method, *answer) : answer.status();
  for (const Done& done : asked) done(json);
}

}  // namespace berth::web

#include "clients/web/terminal.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/web/bounds.h"
#include "clients/web/connect_error.h"
#include "clients/web/sessions.h"
#include "support/proto_json.h"

namespace berth::web {
namespace {

constexpr char kExecMethod[] = "/berth.v1.JobService/Exec";

}  // namespace

// Between the page's stream and berthd's. At most one output is on its way to the page.
class Terminal : public std::enable_shared_from_this<Terminal> {
 public:
  explicit Terminal(std::function<void()> ended)
      : page_(std::make_shared<EventStream>()), ended_(std::move(ended)) {}

  std::shared_ptr<EventStream> Begin(Upstream& upstream, const std::string& id,
                                     const berth::v1::ExecRequest::Open& open) {
    const auto self = shared_from_this();
    // The page's stream must not own itself.
    const std::weak_ptr<Terminal> weak = self;
    page_->OnDrained([weak] {
      if (const auto terminal = weak.lock()) terminal->Drained();
    });
    page_->OnGone([weak, ended = std::exchange(ended_, nullptr)] {
      if (const auto terminal = weak.lock()) terminal->Gone();
      ended();
    });
    v1::TerminalOpened opened;
    opened.set_id(id);
    page_->Write(EventText("opened", WriteJson(opened)));
    berth::v1::ExecRequest request;
    *request.mutable_open() = open;
    auto dialog = upstream.OpenDialog(
        {.method = kExecMethod, .request = request.SerializeAsString(), .request_id = ""},
        [self](const std::string& bytes) { self->OnMessage(bytes); },
        [self](const absl::Status& status) { self->OnEnd(status); });
    {
      absl::MutexLock lock(&mutex_);
      dialog_ = dialog;
    }
    dialog->Next();
    return page_;
  }

  void End() { Gone(); }

  absl::Status Send(const berth::v1::ExecRequest& request) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<UpstreamDialog> dialog;
    {
      absl::MutexLock lock(&mutex_);
      dialog = dialog_;
    }
    if (dialog == nullptr) return absl::NotFoundError("the command has ended");
    if (dialog->Send(request.SerializeAsString())) return absl::OkStatus();
    return absl::ResourceExhaustedError("the command does not read its input");
  }

 private:
  void OnMessage(const std::string& bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    berth::v1::ExecResponse response;
    if (!response.ParseFromString(bytes)) return Gone();
    std::shared_ptr<UpstreamDialog> next;
    {
      absl::MutexLock lock(&mutex_);
      if (response.has_exit_code()) exit_code_ = response.exit_code();
      if (response.output().empty()) {
        next = dialog_;
      } else {
        waiting_ = true;
      }
    }
    if (next != nullptr) return next->Next();
    v1::TerminalOutput output;
    output.set_data(response.output());
    if (!page_->Write(EventText("output", WriteJson(output)))) Gone();
  }
  void OnEnd(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    v1::StreamEnd end;
    if (!status.ok()) end.set_code(std::string(ConnectCode(status.code())));
    end.set_message(std::string(status.message()));
    {
      absl::MutexLock lock(&mutex_);
      dialog_ = nullptr;
      if (exit_code_.has_value()) end.set_exit_code(*exit_code_);
    }
    page_->Write(EventText("end", WriteJson(end)));
    page_->Close();
  }
  void Drained() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<UpstreamDialog> dialog;
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(waiting_, false)) dialog = dialog_;
    }
    if (dialog != nullptr) dialog->Next();
  }
  void Gone() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<UpstreamDialog> dialog;
    {
      absl::MutexLock lock(&mutex_);
      dialog = std::exchange(dialog_, nullptr);
    }
    if (dialog != nullptr) dialog->Cancel();
  }

  const std::shared_ptr<EventStream> page_;
  std::function<void()> ended_;
  absl::Mutex mutex_;
  std::shared_ptr<UpstreamDialog> dialog_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;  // an output is on its way to the page
  std::optional<int32_t> exit_code_ ABSL_GUARDED_BY(mutex_);
};

std::shared_ptr<EventStream> Terminals::Open(const void* session,
                                             const std::shared_ptr<Upstream>& upstream,
                                             const berth::v1::ExecRequest::Open& open,
                                             std::function<void()> ended) {
  const auto terminal = std::make_shared<Terminal>(std::move(ended));
  const std::string id = NewSecret();
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(open_, [](const auto& entry) { return entry.second.terminal.expired(); });
    open_[id] = {.session = session, .terminal = terminal};
  }
  return terminal->Begin(*upstream, id, open);
}

void Terminals::EndOf(const void* session) {
  std::vector<std::shared_ptr<Terminal>> over;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, entry] : open_) {
      if (entry.session != session) continue;
      if (auto terminal = entry.terminal.lock()) over.push_back(std::move(terminal));
    }
  }
  for (const auto& terminal : over) terminal->End();
}

absl::Status Terminals::Input(const void* session, const v1::TerminalInput& input) {
  if (input.input().size() > kTerminalInputBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("input: at most ", kTerminalInputBytes, " bytes in a call"));
  }
  std::shared_ptr<Terminal> terminal;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(input.id());
    if (found != open_.end() && found->second.session == session) {
      terminal = found->second.terminal.lock();
    }
  }
  if (terminal == nullptr) return absl::NotFoundError("there is no such terminal");
  berth::v1::ExecRequest request;
  if (input.has_resize()) {
    *request.mutable_resize() = input.resize();
    if (absl::Status status = terminal->Send(request); !status.ok()) return status;
  }
  if (input.input().empty()) return absl::OkStatus();
  request.set_input(input.input());
  return terminal->Send(request);
}

}  // namespace berth::web

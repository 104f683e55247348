#include "clients/web/live.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/web/bounds.h"
#include "clients/web/connect_error.h"
#include "support/clock.h"
#include "support/proto_json.h"

namespace berth::web {
namespace {

constexpr char kWatchMethod[] = "/berth.v1.WatchService/Watch";

// What a change is about: later changes of the same kind and thing replace it.
std::string SubjectOf(const berth::v1::ChangeEvent& event) {
  return absl::StrCat(event.type(), "/", event.job_uid(), "/", event.task(), "/", event.node(), "/",
                      event.queue(), "/", event.hyper_node());
}

std::string EndText(const absl::Status& status) {
  v1::StreamEnd end;
  if (!status.ok()) end.set_code(std::string(ConnectCode(status.code())));
  end.set_message(std::string(status.message()));
  return EventText("end", WriteJson(end));
}

// The certificate is refused or has expired: another watch would not help.
bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

void Live::Add(const std::shared_ptr<EventStream>& page, const std::string& last_id,
               absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (ended_) {
    page->Write(EndText(absl::UnauthenticatedError("signed out")));
    return page->Close();
  }
  used_ = now;
  page->Write(StateText());
  if (!last_id.empty()) Repeat(*page, last_id);
  pages_.push_back(page);
}

// Messages are kept only while the watch goes on without a gap.
void Live::Repeat(EventStream& page, const std::string& last_id) {
  const std::vector<std::string> parts = absl::StrSplit(last_id, '-');
  uint64_t incarnation = 0, revision = 0;
  const bool known =
      parts.size() == 2 && absl::SimpleAtoi(parts[0], &incarnation) &&
      absl::SimpleAtoi(parts[1], &revision) && live_ && incarnation == incarnation_ &&
      revision <= sent_revision_ &&
      (revision == sent_revision_ || (!kept_.empty() && kept_.front().after <= revision));
  if (!known) {
    page.Write(EventText("reset", "{}"));
    return;
  }
  for (const Kept& kept : kept_) {
    if (kept.revision > revision) page.Write(kept.text);
  }
}

void Live::Tick(absl::Duration now) {
  bool open = false;
  std::shared_ptr<UpstreamStream> unused;  // its callbacks may run in Cancel
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(pages_, [](const auto& page) { return page->ended(); });
    if (!pages_.empty()) used_ = now;
    if (ended_) return;
    if (now - sent_ >= kChangesEvery) SendChanges(now);
    if (now - alive_ >= kAliveEvery) {
      alive_ = now;
      // A comment would be invisible to the page.
      if (live_) SendAll(EventText("alive", "{}"));
      if (!live_) SendAll(StateText());
    }
    if (pages_.empty() && stream_ != nullptr && now - used_ > kWatchAfterLastPage) {
      ++watch_;
      unused = std::exchange(stream_, nullptr);
      live_ = false;
      why_ = "connecting";
      Forget();
    }
    open = stream_ == nullptr && !pages_.empty() && now >= open_at_;
  }
  if (unused != nullptr) unused->Cancel();
  if (open) OpenWatch();
}

void Live::OpenWatch() {
  berth::v1::WatchRequest request;
  uint64_t watch = 0;
  {
    absl::MutexLock lock(&mutex_);
    request.set_from_revision(revision_);
    request.set_incarnation(revision_ == 0 ? 0 : incarnation_);
    watch = ++watch_;
  }
  request.set_nodes(true);
  request.set_queues(true);
  request.set_hyper_nodes(true);
  const auto self = shared_from_this();
  std::shared_ptr<UpstreamStream> stream = upstream_->Open(
      {.method = kWatchMethod, .request = request.SerializeAsString(), .request_id = ""},
      [self, watch](const std::string& bytes) { self->OnMessage(watch, bytes); },
      [self, watch](const absl::Status& status) { self->OnEnd(watch, status); });
  bool current = false;
  {
    absl::MutexLock lock(&mutex_);
    current = watch == watch_;  // it may be over already
    if (current) stream_ = stream;
  }
  if (current) {
    stream->Next();
  } else {
    stream->Cancel();
  }
}

void Live::OnMessage(uint64_t watch, const std::string& bytes) {
  berth::v1::WatchResponse response;
  if (!response.ParseFromString(bytes)) return;
  std::shared_ptr<UpstreamStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (watch != watch_ || ended_) return;
    if (response.incarnation() != incarnation_) Forget();
    incarnation_ = response.incarnation();
    revision_ = response.revision();
    if (!live_) {
      if (next_.empty()) sent_revision_ = revision_;
      SetState(true, "");
    }
    for (const berth::v1::ChangeEvent& event : response.events()) Note(event);
    const absl::Duration now = SystemClock().Steady();
    if (now - sent_ >= kChangesEvery) SendChanges(now);
    stream = stream_;
  }
  if (stream != nullptr) stream->Next();
}

void Live::Note(const berth::v1::ChangeEvent& event) {
  const std::string subject = SubjectOf(event);
  const auto found = next_.find(subject);
  if (found != next_.end()) {
    found->second = event;
  } else if (next_.size() < kMaxChangesOfMessage) {
    next_.emplace(subject, event);
  } else {
    ++more_;
  }
}

void Live::SendChanges(absl::Duration now) {
  if (next_.empty() || !live_) return;
  v1::Changes changes;
  changes.set_revision(revision_);
  for (auto& [subject, event] : next_) changes.add_events()->Swap(&event);
  changes.set_more(more_);
  next_.clear();
  more_ = 0;
  const std::string text = EventText("changes", WriteJson(changes), IdOf(revision_));
  SendAll(text);
  Keep(sent_revision_, text);
  sent_revision_ = revision_;
  sent_ = now;
}

void Live::Keep(uint64_t after, const std::string& text) {
  kept_.push_back({.after = after, .revision = revision_, .text = text});
  kept_bytes_ += text.size();
  while (kept_.size() > kKeptMessages || kept_bytes_ > kKeptBytes) {
    kept_bytes_ -= kept_.front().text.size();
    kept_.pop_front();
  }
}

void Live::Forget() {
  kept_.clear();
  kept_bytes_ = 0;
  next_.clear();
  more_ = 0;
  revision_ = 0;
}

void Live::OnEnd(uint64_t watch, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (watch != watch_ || ended_) return;
  ++watch_;
  stream_ = nullptr;
  open_at_ = SystemClock().Steady() + kWatchAgainAfter;
  if (absl::IsOutOfRange(status)) {
    Forget();
    SendAll(EventText("reset", "{}"));
  }
  if (IsRefusal(status)) {
    SendAll(EndText(status));
    for (const auto& page : pages_) page->Close();
  }
  SetState(false, status.ok() ? "the server has ended the stream" : std::string(status.message()));
}

void Live::SetState(bool live, const std::string& why) {
  live_ = live;
  why_ = why;
  SendAll(StateText());
}

void Live::SendAll(const std::string& text) {
  for (const auto& page : pages_) {
    if (!page->Write(text)) page->Close();  // it does not read; it will connect again
  }
}

void Live::End(const absl::Status& why) {
  std::shared_ptr<UpstreamStream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    ++watch_;
    stream = std::exchange(stream_, nullptr);
    SendAll(EndText(why));
    for (const auto& page : pages_) page->Close();
    pages_.clear();
  }
  if (stream != nullptr) stream->Cancel();
}

size_t Live::pages() const {
  absl::MutexLock lock(&mutex_);
  return pages_.size();
}

std::string Live::IdOf(uint64_t revision) const {
  return absl::StrCat(incarnation_, "-", revision);
}

std::string Live::StateText() const {
  v1::LiveState state;
  state.set_live(live_);
  state.set_why(why_);
  state.set_revision(revision_);
  return EventText("state", WriteJson(state, {.indented = false, .zeros = true}),
                   live_ ? IdOf(sent_revision_) : "");
}

}  // namespace berth::web

#include "tests/simulation/network.h"

#include <algorithm>
#include <utility>

namespace berth::simulation {
namespace {

constexpr absl::Duration kResend = absl::Milliseconds(200);  // first resend of a lost message
constexpr int kMostResends = 8;                              // 200 ms doubled: 51 s
constexpr absl::Duration kClogRecheck = absl::Seconds(5);    // whether a clog has ended
constexpr absl::Duration kLongestReplay = absl::Minutes(3);
constexpr absl::Duration kNoticeBreak = absl::Seconds(2);          // mean
constexpr absl::Duration kLongestNoticeBreak = absl::Seconds(30);  // by keepalive

// The task that a message is about, for the trace.
int64_t Subject(const v1::TaskKey& key) {
  return static_cast<int64_t>(key.job_uid()) * 1'000'000 + key.task() * 1000 + key.attempt();
}
int64_t Subject(const v1::AgentMessage& message) {
  return message.has_report() ? Subject(message.report().key()) * 10 + message.report().state() : 0;
}
int64_t Subject(const v1::ServerMessage& message) {
  return message.has_prepare() ? Subject(message.prepare().key())
         : message.has_start() ? Subject(message.start().key())
         : message.has_kill()  ? Subject(message.kill().key())
                               : 0;
}

}  // namespace

// One stream and the messages in flight on it.
struct Stream {
  struct Item {
    absl::Duration at;
    Network::Packet packet;
  };
  struct Lane {
    std::deque<Item> items;
    absl::Duration last;  // when the last item arrives
    bool armed = false;
  };
  Lane& lane(Network::Direction direction) {
    return direction == Network::Direction::kUp ? up : down;
  }

  uint64_t id = 0;
  size_t node = 0;
  ActorPtr agent;
  LinkEvents* events = nullptr;  // while the agent uses this stream
  Lane up, down;
  bool established = false;  // the server knows the stream
  bool broken = false;       // nothing more arrives
  uint64_t process = 0;      // of berthd that owns the session
  SessionId session = 0;
  bool server_closed = false;
};

// Never calls the gateway synchronously.
class Network::ServerEnd final : public AgentLink {
 public:
  ServerEnd(Network* network, StreamPtr stream) : network_(network), stream_(std::move(stream)) {}
  void Send(v1::ServerMessage message) override {
    if (!stream_->server_closed) network_->Push(stream_, Direction::kDown, std::move(message));
  }
  void Close(absl::Status status) override {
    if (std::exchange(stream_->server_closed, true)) return;
    network_->Push(stream_, Direction::kDown, Network::Close{status.ToString()});
    network_->scheduler_->After(
        absl::Microseconds(1), network_->server_->actor(),
        [network = network_, stream = stream_] { network->CloseAtServer(stream); });
  }

 private:
  Network* const network_;
  const StreamPtr stream_;
};

Network::Network(Scheduler* scheduler, Trace* trace, uint64_t seed, size_t nodes)
    : scheduler_(scheduler), trace_(trace), dice_(seed, 0x6e6574), present_(nodes) {
  weather.up_clogged.assign(nodes, -absl::InfiniteDuration());
  weather.down_clogged.assign(nodes, -absl::InfiniteDuration());
}

// ---- Agent side

void Network::Link::Connect() {
  stream_ = std::make_shared<Stream>();
  stream_->id = ++network_->streams_;
  stream_->node = node_;
  stream_->agent = agent_;
  stream_->events = events_;
  network_->Push(stream_, Direction::kUp, Open{});
}

void Network::Link::Send(const v1::AgentMessage& message) {
  if (stream_ != nullptr) network_->Push(stream_, Direction::kUp, message);
}

// A connection that was never established delivers nothing; others deliver what was sent.
void Network::Link::Disconnect() {
  if (stream_ == nullptr) return;
  stream_->events = nullptr;
  if (stream_->established) {
    network_->Push(stream_, Direction::kUp, Close{"the agent is gone"});
  } else {
    stream_->broken = true;
  }
  stream_ = nullptr;
}

void Network::Link::Die(bool powered) {
  if (stream_ != nullptr && !powered) {
    stream_->events = nullptr;
    network_->Break(stream_);
    stream_ = nullptr;
  }
  Disconnect();
}

uint64_t Network::Link::connection() const { return stream_ == nullptr ? 0 : stream_->id; }

// ---- In flight

absl::Duration Network::Latency() { return dice_.Around(weather.latency); }

void Network::Push(const StreamPtr& stream, Direction direction, Packet packet) {
  if (stream->broken) return;
  absl::Duration latency = Latency();
  if (weather.loss > 0 && dice_.Chance(weather.loss)) {
    ++lost;
    if (dice_.Chance(0.5)) return Break(stream);
    latency += kResend * static_cast<double>(uint64_t{1} << dice_.Below(kMostResends + 1));
  }
  Stream::Lane& lane = stream->lane(direction);
  lane.last = std::max(lane.last, scheduler_->now() + latency);
  lane.items.push_back({lane.last, std::move(packet)});
  Arm(stream, direction);
}

// Each end notices at a separate time; until then it believes that it is connected.
void Network::Break(const StreamPtr& stream) {
  if (std::exchange(stream->broken, true)) return;
  trace_->Add(scheduler_->now(), "broken", static_cast<int64_t>(stream->node),
              static_cast<int64_t>(stream->id));
  stream->up.items.clear();
  stream->down.items.clear();
  const auto notice = [&] { return std::min(dice_.Around(kNoticeBreak), kLongestNoticeBreak); };
  scheduler_->After(notice(), stream->agent, [this, stream] {
    if (stream->events == nullptr) return;
    trace_->Add(scheduler_->now(), "agent sees break", static_cast<int64_t>(stream->node));
    std::exchange(stream->events, nullptr)->OnDisconnected(stream->id, "connection reset");
  });
  if (stream->session == 0 || stream->process != server_->process()) return;
  scheduler_->After(notice(), server_->actor(), [this, stream] { CloseAtServer(stream); });
}

void Network::Arm(const StreamPtr& stream, Direction direction) {
  Stream::Lane& lane = stream->lane(direction);
  if (lane.armed || lane.items.empty()) return;
  lane.armed = true;
  const auto& clogged = direction == Direction::kUp ? weather.up_clogged : weather.down_clogged;
  const Actor& receiver = direction == Direction::kUp ? *server_->actor() : *stream->agent;
  absl::Duration at =
      std::max({lane.items.front().at, clogged[stream->node], receiver.paused_until});
  at = std::min(at, std::max(lane.items.front().at, scheduler_->now() + kClogRecheck));
  scheduler_->At(at, wire_, [this, stream, direction] { Arrive(stream, direction); });
}

void Network::Arrive(const StreamPtr& stream, Direction direction) {
  Stream::Lane& lane = stream->lane(direction);
  lane.armed = false;
  if (lane.items.empty()) return;
  const auto& clogged = direction == Direction::kUp ? weather.up_clogged : weather.down_clogged;
  const Actor& receiver = direction == Direction::kUp ? *server_->actor() : *stream->agent;
  if (std::max(clogged[stream->node], receiver.paused_until) > scheduler_->now()) {
    return Arm(stream, direction);
  }
  Packet packet = std::move(lane.items.front().packet);
  lane.items.pop_front();
  ++delivered;
  if (direction == Direction::kUp) {
    DeliverUp(stream, std::move(packet));
  } else {
    DeliverDown(stream, std::move(packet));
  }
  Arm(stream, direction);
}

// ---- Server side

void Network::DeliverUp(const StreamPtr& stream, Packet packet) {
  AgentGateway* gateway = server_->gateway();
  const bool open = std::holds_alternative<Open>(packet);
  const bool known = stream->session != 0 && stream->process == server_->process();
  if (gateway == nullptr || (!open && !known)) {
    if (stream->events != nullptr && !stream->server_closed) {
      stream->server_closed = true;
      Push(stream, Direction::kDown, Close{"connection refused"});
    }
    return;
  }
  if (open) {
    stream->established = true;
    stream->process = server_->process();
    stream->session = gateway->OnConnect(std::make_shared<ServerEnd>(this, stream));
    at_server_.push_back(stream);
    if (at_server_.size() > 4 * present_.size() + 64) {
      std::erase_if(at_server_, [](const auto& known) { return known.expired(); });
    }
    present_[stream->node] = stream;
  } else if (std::holds_alternative<Close>(packet)) {
    CloseAtServer(stream);
  } else if (!stream->server_closed) {
    ToServer(stream, std::get<v1::AgentMessage>(std::move(packet)));
  }
}

void Network::ToServer(const StreamPtr& stream, v1::AgentMessage message) {
  trace_->Add(scheduler_->now(), "to server", static_cast<int64_t>(stream->node),
              message.message_case(), Subject(message));
  if (weather.replay > 0 && !message.has_hello() && dice_.Chance(weather.replay)) {
    ReplayUp(stream->node, message);
  }
  server_->gateway()->OnMessage(stream->session, std::move(message));
}

void Network::CloseAtServer(const StreamPtr& stream) {
  if (stream->session == 0 || stream->process != server_->process()) return;
  trace_->Add(scheduler_->now(), "closed at server", static_cast<int64_t>(stream->node),
              static_cast<int64_t>(stream->id));
  stream->server_closed = true;
  server_->gateway()->OnClosed(std::exchange(stream->session, 0));
  if (present_[stream->node] == stream) present_[stream->node] = nullptr;
}

void Network::ServerDied(bool powered) {
  for (StreamPtr& stream : present_) stream = nullptr;
  for (const std::weak_ptr<Stream>& known : std::exchange(at_server_, {})) {
    const StreamPtr stream = known.lock();
    if (stream == nullptr || stream->session == 0) continue;
    stream->session = 0;
    stream->server_closed = true;
    if (powered) {
      Push(stream, Direction::kDown, Close{"the server is gone"});
    } else {
      Break(stream);
    }
  }
}

// ---- Agent side: delivery

void Network::DeliverDown(const StreamPtr& stream, Packet packet) {
  if (stream->agent->dead || stream->events == nullptr) return;
  if (std::holds_alternative<v1::ServerMessage>(packet)) {
    return ToAgent(stream, std::get<v1::ServerMessage>(packet));
  }
  trace_->Add(scheduler_->now(), "closed at agent", static_cast<int64_t>(stream->node),
              static_cast<int64_t>(stream->id));
  std::exchange(stream->events, nullptr)->OnDisconnected(stream->id, std::get<Close>(packet).why);
}

void Network::ToAgent(const StreamPtr& stream, const v1::ServerMessage& message) {
  trace_->Add(scheduler_->now(), "to agent", static_cast<int64_t>(stream->node),
              message.message_case(), Subject(message));
  if (weather.replay > 0 && dice_.Chance(weather.replay)) ReplayDown(stream, message);
  stream->events->OnMessage(stream->id, message);
}

// ---- Replays

void Network::Forge(size_t node, v1::AgentMessage message) {
  const StreamPtr stream = present_[node];
  if (stream == nullptr || stream->session == 0 || server_->gateway() == nullptr) return;
  if (server_->actor()->paused_until > scheduler_->now()) return;
  trace_->Add(scheduler_->now(), "forged", static_cast<int64_t>(node), message.message_case(),
              Subject(message));
  server_->gateway()->OnMessage(stream->session, std::move(message));
}

// The message keeps the epoch of its registration, and counts only for that one.
void Network::ReplayUp(size_t node, const v1::AgentMessage& message) {
  ++replayed;
  scheduler_->After(dice_.Between(absl::ZeroDuration(), kLongestReplay), wire_,
                    [this, node, message] { Forge(node, message); });
}

// Only messages that attempt numbers and report ids guard. Welcome, Refused and HeartbeatAck belong
// to the stream on which they arrive, and nothing can move them to another one.
void Network::ReplayDown(const StreamPtr& stream, const v1::ServerMessage& message) {
  if (!message.has_prepare() && !message.has_start() && !message.has_kill() &&
      !message.has_report_ack()) {
    return;
  }
  ++replayed;
  LinkEvents* events = stream->events;
  scheduler_->After(dice_.Between(absl::ZeroDuration(), kLongestReplay), stream->agent,
                    [this, node = stream->node, events, message] {
                      trace_->Add(scheduler_->now(), "replayed", static_cast<int64_t>(node),
                                  message.message_case(), Subject(message));
                      events->OnMessage(0, message);
                    });
}

}  // namespace berth::simulation

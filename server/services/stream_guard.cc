#include "server/services/stream_guard.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

// A connection counts if it has at least this part of all resets.
constexpr int64_t kPartOfResets = 20;

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// gRPC's JSON, which it allocates; an empty object if there is none.
Struct ParseChannelz(char* json) {
  Struct parsed;
  if (json == nullptr) return parsed;
  if (!google::protobuf::util::JsonStringToMessage(json, &parsed).ok()) parsed.Clear();
  gpr_free(json);
  return parsed;
}

const Value& FieldOf(const Struct& object, const char* name) {
  static const auto* none = new Value();
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? *none : found->second;
}

// Numbers of 64 bits are strings in JSON.
int64_t NumberOf(const Struct& object, const char* name) {
  const Value& value = FieldOf(object, name);
  if (value.has_number_value()) return static_cast<int64_t>(value.number_value());
  int64_t number = 0;
  return absl::SimpleAtoi(value.string_value(), &number) ? number : 0;
}

std::vector<int64_t> ServerIds() {
  std::vector<int64_t> ids;
  const Struct servers = ParseChannelz(grpc_channelz_get_servers(0));
  for (const Value& server : FieldOf(servers, "server").list_value().values()) {
    ids.push_back(NumberOf(FieldOf(server.struct_value(), "ref").struct_value(), "serverId"));
  }
  return ids;
}

void AddSocketIds(int64_t server, std::vector<int64_t>* ids) {
  int64_t next = 0;
  for (;;) {
    const Struct page = ParseChannelz(grpc_channelz_get_server_sockets(server, next, 0));
    const ListValue& refs = FieldOf(page, "socketRef").list_value();
    for (const Value& ref : refs.values()) {
      ids->push_back(NumberOf(ref.struct_value(), "socketId"));
      next = ids->back() + 1;
    }
    if (FieldOf(page, "end").bool_value() || refs.values().empty()) return;
  }
}

SocketStreams ReadSocket(int64_t id) {
  const Struct found = ParseChannelz(grpc_channelz_get_socket(id));
  const Struct& socket = FieldOf(found, "socket").struct_value();
  const Struct& data = FieldOf(socket, "data").struct_value();
  const Struct& remote =
      FieldOf(FieldOf(socket, "remote").struct_value(), "tcpip_address").struct_value();
  SocketStreams streams{.id = id,
                        .address = {},
                        .port = static_cast<int>(NumberOf(remote, "port")),
                        .started = NumberOf(data, "streamsStarted"),
                        .succeeded = NumberOf(data, "streamsSucceeded"),
                        .failed = NumberOf(data, "streamsFailed")};
  absl::Base64Unescape(FieldOf(remote, "ip_address").string_value(), &streams.address);
  return streams;
}

}  // namespace

std::vector<SocketStreams> ReadSocketStreams() {
  std::vector<int64_t> ids;
  for (const int64_t server : ServerIds()) AddSocketIds(server, &ids);
  std::vector<SocketStreams> sockets;
  sockets.reserve(ids.size());
  for (const int64_t id : ids) sockets.push_back(ReadSocket(id));
  return sockets;
}

void StreamJudge::Forget() {
  before_.clear();
  newest_ = -1;
}

std::vector<SocketStreams> StreamJudge::Look(const std::vector<SocketStreams>& sockets,
                                             absl::Duration now) {
  const bool first = newest_ < 0;
  std::vector<std::pair<SocketStreams, SocketStreams>> changes;  // how much, and the socket
  int64_t resets = 0;
  for (const SocketStreams& socket : sockets) {
    const auto known = before_.find(socket.id);
    const SocketStreams since = known != before_.end() ? known->second : SocketStreams{};
    changes.push_back(
        {{.started = socket.started - since.started, .failed = socket.failed - since.failed},
         socket});
    resets += changes.back().first.failed;
  }
  const double seconds = absl::ToDoubleSeconds(now - looked_);
  const bool many =
      !first && static_cast<double>(resets) > limits_.resets_per_second * std::max(seconds, 0.01);
  std::vector<SocketStreams> cut;
  for (const auto& [change, socket] : changes) {
    const int64_t open = socket.started - socket.succeeded - socket.failed;
    const bool resetting =
        many && change.failed * kPartOfResets >= resets && 2 * change.failed >= change.started;
    if (resetting || open > limits_.open) cut.push_back(socket);
  }
  before_.clear();
  for (const SocketStreams& socket : sockets) {
    before_.emplace(socket.id, socket);
    newest_ = std::max(newest_, socket.id);
  }
  newest_ = std::max<int64_t>(newest_, 0);
  looked_ = now;
  return cut;
}

StreamGuard::StreamGuard(const StreamLimits& limits, Cut cut)
    : judge_(limits),
      cut_(std::move(cut)),
      low_bytes_(ResidentBytes()),
      alert_until_(-absl::InfiniteDuration()),
      thread_([this] { Run(); }) {}

StreamGuard::~StreamGuard() {
  stop_.Notify();
  thread_.join();
}

void StreamGuard::Run() {
  while (!stop_.WaitForNotificationWithTimeout(kTick)) Tick();
}

void StreamGuard::Tick() {
  const absl::Duration now = SystemClock().Steady();
  const int64_t bytes = ResidentBytes();
  low_bytes_ = std::min(low_bytes_, bytes);
  if (bytes - low_bytes_ > kGrowthBytes) {
    alert_until_ = now + kCalm;
    low_bytes_ = bytes;
  }
  if (now > alert_until_) return judge_.Forget();
  for (const SocketStreams& socket : judge_.Look(ReadSocketStreams(), now)) cut_(socket);
}

}  // namespace berth

#include "storage/turn_actors.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/functional/function_ref.h"
#include "storage/codec.h"
#include "storage/codec_common.h"

namespace berth {
namespace {

using codec::pb::LogEvent;
using codec::pb::LogTurn;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kFirstBody = LogEvent::kQueueCreatedFieldNumber;

// Each field of a message: bytes of a text or message, or the number of a varint.
absl::Status WalkFields(
    absl::string_view message,
    absl::FunctionRef<bool(int field, absl::string_view bytes, uint64_t number)> visit) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  const absl::Status damaged = absl::DataLossError("a log entry does not parse");
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    bool good = true;
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t size = 0;
      good = in.ReadVarint32(&size);
      const auto begin = static_cast<size_t>(in.CurrentPosition());
      good =
          good && in.Skip(static_cast<int>(size)) && visit(field, message.substr(begin, size), 0);
    } else if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_VARINT) {
      uint64_t number = 0;
      good = in.ReadVarint64(&number) && visit(field, {}, number);
    } else {
      good = WireFormatLite::SkipField(&in, tag);
    }
    if (!good) return damaged;
  }
  return in.ConsumedEntireMessage() ? absl::OkStatus() : damaged;
}

template <class Message>
bool ParseView(absl::string_view bytes, Message* out) {
  return out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

absl::StatusOr<TurnActors> ReadTurnActors(absl::string_view turn) {
  TurnActors found;
  codec::Reader reader;
  const absl::Status walked =
      WalkFields(turn, [&](int field, absl::string_view bytes, uint64_t) -> bool {
        if (field == LogTurn::kEventsFieldNumber) found.events.push_back(bytes);
        if (field == LogTurn::kTimeFieldNumber) {
          google::protobuf::Timestamp time;
          if (!ParseView(bytes, &time)) return false;
          found.time = reader.GetTime(true, time, absl::InfinitePast(), "time");
        }
        if (field == LogTurn::kActorsFieldNumber) {
          codec::pb::TurnActor m;
          if (!ParseView(bytes, &m)) return false;
          found.actors.push_back({codec::GetActor(m.actor(), reader), m.first(), m.end()});
        }
        return true;
      });
  if (!walked.ok()) return walked;
  if (found.actors.empty()) found.events.clear();
  for (const ActorRange& range : found.actors) {
    if (range.first > range.end || range.end > found.events.size()) {
      reader.Refuse("an actor of events that are not");
    }
  }
  if (absl::Status status = codec::Verdict(reader, RecordKind::kLog, ""); !status.ok()) {
    return status;
  }
  return found;
}

absl::StatusOr<EventSubject> ReadEventSubject(absl::string_view event) {
  EventSubject found;
  const absl::Status walked =
      WalkFields(event, [&](int field, absl::string_view bytes, uint64_t number) {
        if (field == LogEvent::kJobNameFieldNumber) found.job = bytes;
        if (field == LogEvent::kNodeNameFieldNumber) found.node = bytes;
        if (field == LogEvent::kQueueNameFieldNumber) found.queue = bytes;
        if (field == LogEvent::kHyperNodeNameFieldNumber) found.hyper_node = bytes;
        if (field == LogEvent::kQueueOpenFieldNumber) found.queue_open = number != 0;
        if (field >= kFirstBody) {
          found.kind = field;
          found.body = bytes;
        }
        return true;
      });
  if (!walked.ok()) return walked;
  return found;
}

}  // namespace berth

#include "server/audit/entries.h"

#include <string>
#include <utility>

#include "berth/store/v1/store.pb.h"
#include "storage/turn_actors.h"
#include "support/proto_time.h"
#include "support/utf8.h"

namespace berth {
namespace {

using store::v1::LogEvent;

struct AuditWords {
  const char* object = "";  // "": found from the names of the event
  const char* action = "changed";
};

const char* SuspensionWord(absl::string_view body) {
  store::v1::JobSuspended suspended;
  const bool parsed = suspended.ParseFromArray(body.data(), static_cast<int>(body.size()));
  if (!parsed) return "changed";
  if (suspended.freeze()) return "paused";
  return suspended.suspended() ? "suspended" : "resumed";
}

AuditWords JobWords(const EventSubject& subject) {
  switch (subject.kind) {
    case LogEvent::kJobSubmitted:
      return {"job", "submitted"};
    case LogEvent::kJobUpdated:
      return {"job", "updated"};
    case LogEvent::kJobCancelled:
      return {"job", "cancelled"};
    case LogEvent::kJobSuspended:
      return {"job", SuspensionWord(subject.body)};
    case LogEvent::kJobDeleted:
      return {"job", "deleted"};
    default:
      return {};
  }
}

// The class that the event is about: each call changes one.
std::string ClassNameOf(const EventSubject& subject, bool* removed) {
  store::v1::PriorityClassChange change;
  if (!change.ParseFromArray(subject.body.data(), static_cast<int>(subject.body.size()))) return "";
  *removed = change.remove_size() > 0;
  if (*removed) return change.remove(0);
  return change.set_size() > 0 ? change.set(0).name() : "";
}

AuditWords ClassWords(const EventSubject& subject) {
  bool removed = false;
  ClassNameOf(subject, &removed);
  return {"priority class", removed ? "deleted" : "changed"};
}

AuditWords WordsOf(const EventSubject& subject) {
  switch (subject.kind) {
    case LogEvent::kQueueCreated:
      return {"queue", "created"};
    case LogEvent::kQueueUpdated:
      return {"queue", "updated"};
    case LogEvent::kQueueOpened:
      return {"queue", subject.queue_open ? "opened" : "closed"};
    case LogEvent::kQueueDeleted:
      return {"queue", "deleted"};
    case LogEvent::kNodeDeleted:
      return {"node", "deleted"};
    case LogEvent::kHyperNodeDeleted:
      return {"hypernode", "deleted"};
    case LogEvent::kNodesJoined:
      return {"hypernode", "given nodes"};
    case LogEvent::kNodesLeft:
      return {"hypernode", "parted from nodes"};
    case LogEvent::kAccessChanged:
      return {"access rules", "changed"};
    case LogEvent::kPriorityClassesChanged:
      return ClassWords(subject);
    default:
      return JobWords(subject);
  }
}

// The object that the event is about, and its name.
std::pair<absl::string_view, absl::string_view> ObjectOf(const EventSubject& subject) {
  if (!subject.job.empty()) return {"job", subject.job};
  if (!subject.node.empty()) return {"node", subject.node};
  if (!subject.hyper_node.empty()) return {"hypernode", subject.hyper_node};
  if (!subject.queue.empty()) return {"queue", subject.queue};
  return {};
}

// The change that the name belongs to: the last one, or a new one.
v1::AuditChange* ChangeOf(absl::string_view object, const char* action, v1::AuditEntry* entry) {
  if (entry->changes_size() > 0) {
    v1::AuditChange* last = entry->mutable_changes(entry->changes_size() - 1);
    if (last->object() == object && last->action() == action) return last;
  }
  v1::AuditChange* change = entry->add_changes();
  change->set_object(std::string(object));
  change->set_action(action);
  return change;
}

// False if the event added no name: it concerns no object, or the same as the event before.
bool AddEvent(const EventSubject& subject, v1::AuditEntry* entry) {
  const AuditWords words = WordsOf(subject);
  auto [kind, name] = ObjectOf(subject);
  std::string of_class;
  if (subject.kind == LogEvent::kPriorityClassesChanged) {
    bool removed = false;
    name = of_class = ClassNameOf(subject, &removed);
  }
  const absl::string_view object = words.object[0] != '\0' ? words.object : kind;
  if (object.empty()) return false;
  v1::AuditChange* change = ChangeOf(object, words.action, entry);
  if (name.empty()) return false;
  if (change->names_size() > 0 && *change->names().rbegin() == name) return false;
  change->add_names(SanitizedUtf8(name, name.size()));
  return true;
}

v1::AuditEntry EntryBy(const Actor& actor, uint64_t revision, Time time, size_t part) {
  v1::AuditEntry entry;
  ToProto(time, entry.mutable_time());
  ToApi(actor, &entry);
  entry.set_revision(revision);
  entry.set_part(static_cast<uint32_t>(part));
  return entry;
}

}  // namespace

void ToApi(const Actor& actor, v1::AuditEntry* entry) {
  const auto text = [](const std::string& bytes) { return SanitizedUtf8(bytes, bytes.size()); };
  v1::AuditActor* out = entry->mutable_actor();
  const bool node = actor.kind == Principal::Kind::kNode;
  out->set_kind(actor.door == Door::kServer ? v1::AuditActor::SERVER
                : node                      ? v1::AuditActor::NODE
                                            : v1::AuditActor::USER);
  out->set_name(text(actor.name));
  out->set_door(static_cast<v1::AuditActor::Door>(actor.door));
  out->set_serial(text(actor.serial));
  out->set_address(text(actor.address));
  out->set_request_id(text(actor.request_id));
  entry->set_method(text(actor.method));
  entry->set_target(text(actor.target));
}

absl::StatusOr<std::vector<v1::AuditEntry>> AuditEntriesOf(uint64_t revision,
                                                           absl::string_view turn) {
  const absl::StatusOr<TurnActors> read = ReadTurnActors(turn);
  if (!read.ok()) return read.status();
  std::vector<v1::AuditEntry> entries;
  for (const ActorRange& range : read->actors) {
    entries.push_back(EntryBy(range.actor, revision, read->time, entries.size()));
    size_t names = 0;
    for (uint32_t i = range.first; i < range.end; ++i) {
      const absl::StatusOr<EventSubject> subject = ReadEventSubject(read->events[i]);
      if (!subject.ok()) return subject.status();
      if (names == kMaxAuditNames) {
        entries.push_back(EntryBy(range.actor, revision, read->time, entries.size()));
        names = 0;
      }
      names += AddEvent(*subject, &entries.back()) ? 1 : 0;
    }
  }
  return entries;
}

}  // namespace berth

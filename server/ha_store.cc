#include "server/ha_store.h"

#include <grpcpp/grpcpp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "berth/v1/cluster.grpc.pb.h"
#include "server/config/config.h"
#include "server/convert/values.h"
#include "server/ha/high_availability.h"
#include "server/ha/joining.h"
#include "storage/chain_files.h"
#include "storage/etcd/etcd_client.h"
#include "storage/files.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/errors.h"
#include "support/log.h"
#include "support/tls.h"
#include "support/version.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
namespace pb = store::v1;

constexpr absl::Duration kCopyDeadline = absl::Hours(2);
constexpr int kCopyTries = 3;
constexpr char kMarkWord[] = "etcd ";
constexpr int kMaxCopyMessage = 4 << 20;

// ---- The mark: "etcd CLUSTER revision N terms T"

struct Mark {
  uint64_t cluster = 0;
  int64_t revision = 0;
  uint64_t earlier_terms = 0;  // GenerationRecord
};

// What etcd may have counted since the last mark was written.
constexpr uint64_t kUnmarkedTerms = uint64_t{1} << 32;

std::string MarkPath(const std::string& directory) { return directory + "/" + kHaMark; }

bool HasMark(const std::string& directory) {
  std::error_code error;
  return fs::exists(MarkPath(directory), error);
}

Mark ReadMark(const std::string& directory) {
  std::ifstream file(MarkPath(directory));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  Mark mark;
  if (words.size() != 6 || !absl::SimpleHexAtoi(words[1], &mark.cluster) ||
      !absl::SimpleAtoi(words[3], &mark.revision) ||
      !absl::SimpleAtoi(words[5], &mark.earlier_terms)) {
    return {};
  }
  return mark;
}

// Not synced: an older revision refuses less.
void WriteMark(const std::string& directory, const Mark& mark) {
  const std::string aside = MarkPath(directory) + ".new";
  {
    std::ofstream file(aside);
    file << kMarkWord << absl::StrCat(absl::Hex(mark.cluster)) << " revision " << mark.revision
         << " terms " << mark.earlier_terms << "\n";
  }
  std::error_code error;
  fs::rename(aside, MarkPath(directory), error);
  if (error) LogWarn("cannot note etcd's revision", {{"error", error.message()}});
}

// The term that this server keeps after the cluster left etcd; 0: there is none.
uint64_t ReadTerm(const std::string& directory) {
  std::ifstream file(directory + "/" + kTermFile);
  uint64_t term = 0;
  file >> term;
  return term;
}

absl::Status WriteTerm(const std::string& directory, uint64_t term) {
  const std::string path = directory + "/" + kTermFile;
  {
    std::ofstream file(path);
    file << term << "\n";
    if (!file) return absl::InternalError(absl::StrCat("cannot write ", path));
  }
  absl::Status synced = SyncPath(path);
  return synced.ok() ? SyncPath(directory) : synced;
}

// No agent has heard of a higher term of this store.
uint64_t HighestTerm(const std::string& directory) {
  const Mark mark = ReadMark(directory);
  const uint64_t marked =
      mark.cluster == 0
          ? 0
          : mark.earlier_terms + static_cast<uint64_t>(mark.revision) + kUnmarkedTerms;
  return std::max(marked, ReadTerm(directory));
}

bool HasStore(const std::string& directory) {
  std::error_code error;
  return fs::exists(fs::path(directory) / "CURRENT", error);
}

// `any`: also to another etcd than that of before.
absl::StatusOr<std::unique_ptr<EtcdClient>> ConnectEtcd(const config::v1::Server& config,
                                                        bool any = false) {
  if (!config.has_ha()) {
    return absl::InvalidArgumentError("the configuration has no `ha`: where is etcd?");
  }
  EtcdOptions options;
  options.endpoints.assign(config.ha().etcd().begin(), config.ha().etcd().end());
  options.tls = TlsFilesOf(config.ha().tls());
  if (!any && HasStore(config.data_directory())) {
    const Mark mark = ReadMark(config.data_directory());
    options.cluster = mark.cluster;
    options.least_revision = mark.revision;
  }
  return EtcdClient::Create(std::move(options));
}

// ---- Copying another server's store

// A name below the store's directory, and nothing else.
bool IsPlainPath(const std::string& path) {
  if (path.empty() || path.size() > 256 || path.front() == '/') return false;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return path.find('\0') == std::string::npos;
}

absl::Status Receive(grpc::ClientReader<v1::CopyStoreResponse>& reader, const fs::path& directory) {
  v1::CopyStoreResponse part;
  std::string open;
  std::ofstream file;
  bool complete = false;
  std::error_code error;
  while (reader.Read(&part)) {
    if (part.path().empty()) {
      complete = true;
      continue;
    }
    if (!IsPlainPath(part.path())) {
      return absl::InvalidArgumentError(
          absl::StrCat("a copied file has the name ", absl::CEscape(part.path())));
    }
    if (part.path() != open) {
      if (file.is_open()) file.close();
      if (!open.empty()) {
        if (absl::Status synced = SyncPath(directory / open); !synced.ok()) return synced;
      }
      open = part.path();
      const fs::path path = directory / open;
      fs::create_directories(path.parent_path(), error);
      file.open(path, std::ios::binary | std::ios::trunc);
    }
    file << part.data();
    if (!file) return absl::InternalError(absl::StrCat("cannot write ", open));
  }
  if (file.is_open()) file.close();
  const grpc::Status done = reader.Finish();
  if (!done.ok()) return absl::UnavailableError(done.error_message());
  if (!file || !complete) return absl::DataLossError("the copy is not complete");
  return open.empty() ? absl::OkStatus() : SyncPath(directory / open);
}

absl::Status CopyFrom(const config::v1::Server& config, const pb::MemberRecord& member,
                      const fs::path& aside) {
  const auto credentials = MakeChannelCredentials(TlsFilesOf(config.tls()));
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxCopyMessage);
  const auto channel = grpc::CreateCustomChannel(member.address(), *credentials, arguments);
  const auto stub = v1::ClusterService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCopyDeadline));
  v1::CopyStoreRequest request;
  request.set_token(member.copy_token());
  const auto reader = stub->CopyStore(&context, request);
  std::error_code error;
  fs::remove_all(aside, error);
  fs::create_directories(aside, error);
  if (error) return FileStatus(error, aside);
  absl::Status received = Receive(*reader, aside);
  if (!received.ok()) context.TryCancel();
  fs::remove(aside / kBackupMark, error);
  return received;
}

// ---- Putting a copy into place. All inside of the store's directory: berthd may write nowhere
// else.

constexpr char kCopying[] = ".copying", kBehind[] = "behind-";

// Entries of the directory that do not belong to the store itself.
bool StaysInPlace(const std::string& name) {
  return name == kCopying || name == "copies" || absl::StartsWith(name, kHistoryName) ||
         absl::StartsWith(name, kBehind);
}

absl::StatusOr<std::vector<fs::path>> EntriesOf(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) return FileStatus(error, directory);
  return entries;
}

// What is there of a store, to DIR/behind-TIME, for an operator to look at or delete; what an
// earlier call moved there is deleted. The calls that this server refused stay.
absl::Status MoveAway(const fs::path& directory) {
  const absl::StatusOr<std::vector<fs::path>> entries = EntriesOf(directory);
  if (!entries.ok()) return entries.status();
  const fs::path away =
      directory /
      absl::StrCat(kBehind, absl::FormatTime("%Y%m%dT%H%M%E3S", absl::Now(), absl::UTCTimeZone()));
  std::error_code error;
  bool any = false;
  for (const fs::path& entry : *entries) {
    const std::string name = entry.filename().string();
    if (absl::StartsWith(name, kBehind)) fs::remove_all(entry, error);
    if (StaysInPlace(name)) continue;
    fs::path from = entry, to = away / name;
    if (name == kAuditName) from /= "commands", to /= "commands";
    if (!fs::exists(from, error)) continue;
    fs::create_directories(to.parent_path(), error);
    if (!error) fs::rename(from, to, error);
    if (error) return FileStatus(error, from);
    any = true;
  }
  if (any) LogWarn("an unusable store was moved away", {{"to", away.string()}});
  return absl::OkStatus();
}

// CURRENT is last: without it there is no store, and the next start copies again.
absl::Status MoveIn(const fs::path& aside, const fs::path& directory) {
  const absl::StatusOr<std::vector<fs::path>> entries = EntriesOf(aside);
  if (!entries.ok()) return entries.status();
  std::error_code error;
  for (const bool last : {false, true}) {
    for (const fs::path& entry : *entries) {
      if ((entry.filename() == "CURRENT") != last) continue;
      fs::path from = entry, to = directory / entry.filename();
      if (entry.filename() == kAuditName) {
        fs::create_directories(to, error);
        from /= "commands", to /= "commands";
        if (!fs::exists(from, error)) continue;
      }
      fs::rename(from, to, error);
      if (error) return FileStatus(error, to);
    }
    if (absl::Status synced = SyncPath(directory); !synced.ok()) return synced;
  }
  fs::remove_all(aside, error);
  return absl::OkStatus();
}

// The first of the other servers that sends its store.
absl::Status CopyStore(const config::v1::Server& config, ReplicatedLog& log) {
  const fs::path place = config.data_directory(), aside = place / kCopying;
  std::error_code error;
  fs::create_directories(place, error);
  if (error) return FileStatus(error, place);
  absl::Status last = absl::UnavailableError("no other server of the cluster is known");
  for (int i = 0; i < kCopyTries; ++i) {
    const auto members = log.ReadMembers();
    if (!members.ok()) return members.status();
    for (const auto& [name, record] : *members) {
      if (name == config.ha().name()) continue;
      LogInfo("copying the store of another server", {{"server", name}});
      last = CopyFrom(config, record, aside);
      if (last.ok()) last = MoveAway(place);
      if (last.ok()) return MoveIn(aside, place);
      LogWarn("the store was not copied", {{"server", name}, {"error", last}});
    }
    absl::SleepFor(absl::Seconds(1));
  }
  fs::remove_all(aside, error);
  return {last.code(),
          absl::StrCat("this server needs another's store, and none was copied: ", last.message())};
}

// ---- Opening

// A damaged store is no loss here: the other servers have what it had.
absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenLocal(const config::v1::Server& config,
                                                        std::shared_ptr<StoreHealth> health) {
  auto store =
      RocksDbStore::Open({.directory = config.data_directory(), .health = std::move(health)});
  if (!absl::IsDataLoss(store.status())) return store;
  return absl::FailedPreconditionError(absl::StrCat(
      store.status().message(), ". If another server of the cluster is whole: move ",
      config.data_directory(), " away, and it is copied from there at the next start"));
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number));
  return number;
}

std::string RandomToken() {
  std::string bytes(24, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return absl::BytesToHexString(bytes);
}

MemberOptions MemberOptionsFrom(const config::v1::Server& config) {
  return {.name = config.ha().name(),
          .address = config.ha().advertise(),
          .version = kBerthVersion,
          .lease = DurationFrom(config.ha().lease()),
          .seed = RandomNumber() | 1,
          .copy_token = RandomToken()};
}

// The store is there, and etcd's log continues it.
absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenUpToDate(const config::v1::Server& config,
                                                           const FoundGeneration& generation,
                                                           ReplicatedLog& log,
                                                           std::shared_ptr<StoreHealth> health) {
  bool usable = HasStore(config.data_directory());
  for (int i = 0; i < kCopyTries; ++i) {
    if (!usable) {
      if (absl::Status copied = CopyStore(config, log); !copied.ok()) return copied;
    }
    auto local = OpenLocal(config, health);
    if (!local.ok()) return local;
    const FoundGeneration ours{(*local)->ClusterId(), (*local)->Incarnation()};
    if (ours != generation) return absl::DataLossError("the copied store is of another cluster");
    const absl::StatusOr<ClusterView> view = log.Read((*local)->LastSequence(), /*stale=*/false);
    if (!view.ok()) return view.status();
    if (view->base.through() <= (*local)->LastSequence()) return local;
    LogWarn("this server's store is too far behind",
            {{"batch", (*local)->LastSequence()}, {"log begins after", view->base.through()}});
    usable = false;
  }
  return absl::UnavailableError("the store was copied, but the cluster was faster each time");
}

}  // namespace

absl::StatusOr<OpenedStore> OpenReplicatedStore(const config::v1::Server& config,
                                                std::shared_ptr<StoreHealth> health) {
  auto etcd = ConnectEtcd(config);
  if (!etcd.ok()) return etcd.status();
  const auto found = ListGenerations(**etcd);
  if (!found.ok()) return found.status();
  absl::StatusOr<FoundGeneration> generation;
  if (HasStore(config.data_directory())) {
    const auto local = OpenLocal(config, health);
    if (!local.ok()) return local.status();
    generation = FoundGeneration{(*local)->ClusterId(), (*local)->Incarnation()};
    if (absl::Status fits = CheckGeneration(*found, *generation); !fits.ok()) return fits;
  } else {
    generation = OnlyGeneration(*found);
  }
  if (!generation.ok()) return generation.status();
  ReplicationLayout layout(generation->cluster_id, generation->incarnation);
  ReplicatedLog log(etcd->get(), layout);
  auto local = OpenUpToDate(config, *generation, log, health);
  if (!local.ok()) return local.status();
  EtcdClient* client = etcd->get();
  auto ha = std::make_shared<HighAvailability>(*std::move(etcd), client, layout, *std::move(local),
                                               MemberOptionsFrom(config));
  ha->SetNote([client, member = &ha->member(), directory = config.data_directory()] {
    WriteMark(directory, {.cluster = client->cluster(),
                          .revision = client->revision(),
                          .earlier_terms = member->earlier_terms()});
  });
  std::shared_ptr<Store> store(ha, &ha->store());
  return OpenedStore(std::move(store), std::move(ha));
}

absl::StatusOr<OpenedStore> OpenSingleStore(const config::v1::Server& config,
                                            std::shared_ptr<StoreHealth> health) {
  if (HasMark(config.data_directory())) {
    return absl::FailedPreconditionError(absl::StrCat(
        config.data_directory(),
        " belongs to a cluster in etcd, but the configuration has no "
        "`ha`. To go on with this server alone: `berthd --ha-leave`, with the configuration of "
        "before"));
  }
  auto store = RocksDbStore::Open({.directory = config.data_directory(), .health = health});
  if (!store.ok()) return store.status();
  OpenedStore opened(*std::move(store));
  opened.term = ReadTerm(config.data_directory());
  return opened;
}

absl::Status BeginHa(const config::v1::Server& config, std::ostream& report) {
  auto etcd = ConnectEtcd(config, /*any=*/true);
  if (!etcd.ok()) return etcd.status();
  const auto local = OpenLocal(config, nullptr);
  if (!local.ok()) return local.status();
  if (absl::Status synced = (*local)->Sync(); !synced.ok()) return synced;
  const uint64_t earlier_terms = HighestTerm(config.data_directory());
  if (absl::Status begun = BeginGeneration(**etcd, **local, earlier_terms); !begun.ok()) {
    return begun;
  }
  WriteMark(config.data_directory(), {.cluster = (*etcd)->cluster(),
                                      .revision = (*etcd)->revision(),
                                      .earlier_terms = earlier_terms});
  report << "etcd has the cluster " << (*local)->ClusterId()
         << " now, with this server's store up to "
         << "batch " << (*local)->LastSequence()
         << "; start berthd here, then on the other servers\n";
  return absl::OkStatus();
}

absl::Status LeaveHa(const config::v1::Server& config, std::ostream& report) {
  auto etcd = ConnectEtcd(config);
  if (!etcd.ok()) return etcd.status();
  const auto local = OpenLocal(config, nullptr);
  if (!local.ok()) return local.status();
  const auto term = EndGeneration(**etcd, **local, config.ha().name());
  if (!term.ok()) return term.status();
  if (absl::Status kept = WriteTerm(config.data_directory(), *term); !kept.ok()) return kept;
  std::error_code error;
  fs::remove(MarkPath(config.data_directory()), error);
  if (error) return FileStatus(error, MarkPath(config.data_directory()));
  report << "the cluster has left etcd; start berthd without `ha`\n";
  return absl::OkStatus();
}

}  // namespace berth

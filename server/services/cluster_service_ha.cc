// ClusterService: the servers of a cluster with high availability.
#include <openssl/crypto.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/services/cluster_service.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kFarewell = absl::Milliseconds(50);  // for the answer to get out
constexpr size_t kCopyChunk = size_t{256} << 10;

v1::ClusterMember MemberFrom(const MemberInfo& info) {
  v1::ClusterMember member;
  member.set_name(info.name);
  member.set_address(info.record.address());
  member.set_version(info.record.version());
  member.set_alive(info.alive);
  member.set_leads(info.alive && info.record.leads());
  member.set_applied_revision(info.record.applied());
  member.set_synced_revision(info.record.synced());
  member.set_not_eligible(info.record.not_eligible());
  member.set_newest_store_format(info.record.newest_format());
  return member;
}

bool SameToken(const std::string& a, const std::string& b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

using CopyReactor = grpc::ServerWriteReactor<v1::CopyStoreResponse>;

class RefusedCopy final : public CopyReactor {
 public:
  explicit RefusedCopy(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// Copies the store beside itself and sends the copy. Owned by gRPC; deletes itself, the copy and
// the mark that a copy is under way.
class CopyStream final : public CopyReactor {
 public:
  CopyStream(Store* store, std::string directory, std::atomic<bool>* copying)
      : store_(store), directory_(std::move(directory)), copying_(copying) {}

  // On a thread that may wait for the disk.
  void Begin() {
    std::error_code error;
    fs::remove_all(directory_, error);
    fs::create_directories(fs::path(directory_).parent_path(), error);
    revision_ = store_->LastSequence();
    if (absl::Status made = store_->Backup(directory_); !made.ok()) return End(made);
    for (fs::recursive_directory_iterator entry(directory_, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->is_regular_file()) files_.push_back(entry->path());
    }
    if (error) return End(absl::InternalError(absl::StrCat("copying: ", error.message())));
    Next();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("the other server is gone"));
    Next();
  }
  void OnDone() override {
    std::error_code error;
    fs::remove_all(directory_, error);
    *copying_ = false;
    delete this;
  }

 private:
  void End(const absl::Status& status) { Finish(ToGrpcStatus(status)); }

  void Next() {
    response_.Clear();
    while (!in_.is_open() && index_ < files_.size()) {
      in_.open(files_[index_], std::ios::binary);
      if (!in_)
        return End(absl::InternalError(absl::StrCat("cannot read ", files_[index_].string())));
    }
    if (!in_.is_open()) {
      if (std::exchange(complete_, true)) return End(absl::OkStatus());
      response_.set_revision(revision_);
      return StartWrite(&response_);
    }
    response_.set_path(fs::relative(files_[index_], directory_).string());
    std::string* data = response_.mutable_data();
    data->resize(kCopyChunk);
    in_.read(data->data(), static_cast<std::streamsize>(data->size()));
    data->resize(static_cast<size_t>(in_.gcount()));
    if (in_.bad()) return End(absl::InternalError("cannot read the copy"));
    if (in_.eof()) {
      in_.close();
      in_.clear();
      ++index_;
    }
    StartWrite(&response_);
  }

  Store* const store_;
  const std::string directory_;
  std::atomic<bool>* const copying_;
  uint64_t revision_ = 0;
  std::vector<fs::path> files_;
  size_t index_ = 0;
  std::ifstream in_;
  bool complete_ = false;
  v1::CopyStoreResponse response_;
};

}  // namespace

grpc::ServerUnaryReactor* ClusterService::ListMembers(grpc::CallbackServerContext* context,
                                                      const v1::ListMembersRequest*,
                                                      v1::ListMembersResponse* response) {
  Reply<v1::ListMembersResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceListMembers, *context);
  if (!Enter(context_, call, reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  if (members_.ha != nullptr) {
    const MemberStatus status = members_.ha->member().status();
    response->set_term(status.term);
    response->set_leader(status.leader);
    response->set_answered_by(members_.ha->member().options().name);
    response->set_log_bytes(static_cast<int64_t>(status.log_bytes));
    response->set_log_parts(static_cast<int64_t>(status.log_parts));
    if (!status.etcd.ok()) {
      response->set_etcd_problem(absl::StrCat("no answer for ",
                                              absl::FormatDuration(status.etcd_silence), ": ",
                                              status.etcd.message()));
    }
    for (const MemberInfo& info : members_.ha->member().members()) {
      *response->add_members() = MemberFrom(info);
    }
  }
  reply.Finish(absl::OkStatus());
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::HandOver(grpc::CallbackServerContext* context,
                                                   const v1::HandOverRequest* request,
                                                   v1::HandOverResponse* response) {
  Reply<v1::HandOverResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceHandOver, *context);
  if (!Enter(context_, call, reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  LogCall(context_, call);
  // It waits for what is under way.
  backups_.executor->Run([this, to = request->to(), reply = std::move(reply)]() mutable {
    const uint64_t term = members_.ha != nullptr ? members_.ha->member().term() : 0;
    reply.response().set_term(term);
    const absl::Status done = members_.hand_over(to);
    reply.Finish(done);
    if (term == 0 || members_.ha->member().term() != 0) return;  // it still leads
    absl::SleepFor(kFarewell);
    members_.leave();
  });
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::RepairEtcd(grpc::CallbackServerContext* context,
                                                     const v1::RepairEtcdRequest*,
                                                     v1::RepairEtcdResponse* response) {
  Reply<v1::RepairEtcdResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceRepairEtcd, *context);
  if (!Enter(context_, call, reply)) return reactor;
  absl::Status status = AdmitNow(context_, call);
  if (status.ok() && members_.ha == nullptr) {
    status = absl::FailedPreconditionError("this cluster has one server, and no etcd");
  }
  if (!status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  LogCall(context_, call);
  backups_.executor->Run([ha = members_.ha, reply = std::move(reply)]() mutable {
    const auto repaired = ha->RepairEtcd();
    if (repaired.ok()) {
      for (size_t i = 0; i < repaired->after.size(); ++i) {
        const EtcdMemberStatus& member = repaired->after[i];
        v1::EtcdMember& out = *reply.response().add_members();
        out.set_endpoint(member.endpoint);
        out.set_version(member.version);
        out.set_leads(member.leads);
        out.set_bytes_before(repaired->before[i].bytes);
        out.set_bytes(member.bytes);
        out.set_bytes_in_use(member.bytes_in_use);
        for (const std::string& error : member.errors) out.add_problems(error);
        if (!member.status.ok()) out.add_problems(std::string(member.status.message()));
      }
    }
    reply.Finish(repaired.status());
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::CopyStoreResponse>* ClusterService::CopyStore(
    grpc::CallbackServerContext* context, const v1::CopyStoreRequest* request) {
  const Call call = context_.CallOf(Rpc::kClusterServiceCopyStore, *context);
  if (members_.ha == nullptr ||
      !SameToken(request->token(), members_.ha->member().options().copy_token)) {
    const absl::Status refused = absl::PermissionDeniedError(
        "only servers of the cluster may copy its store, with this server's token in etcd");
    context_.NoteIfRefused(call, refused);
    return new RefusedCopy(refused);
  }
  if (copying_.exchange(true)) {
    return new RefusedCopy(RetryLaterError(absl::StatusCode::kResourceExhausted,
                                           "another copy is under way", absl::Seconds(5)));
  }
  LogInfo("another server copies the store", {{"by", TextOf(call)}});
  auto* stream = new CopyStream(backups_.store, members_.copies + "/sending", &copying_);
  backups_.executor->Run([stream] { stream->Begin(); });
  return stream;
}

absl::Status ClusterService::CheckFormats() const {
  if (members_.ha == nullptr) return absl::OkStatus();
  for (const MemberInfo& info : members_.ha->member().members()) {
    if (!info.alive || info.record.newest_format() >= kStoreFormat) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the server ", info.name, " is of version ", info.record.version(),
                     ", which cannot read the newest format: upgrade it first"));
  }
  return absl::OkStatus();
}

}  // namespace berth

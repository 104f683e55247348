// What an answer shows to a caller who may not see everything. Answers are rendered in full first.
// A job that the caller may list but not read is then built anew from what everybody may see, so
// that a new field stays hidden until somebody decides otherwise. Elsewhere names of jobs, queues
// and nodes that the caller may not see are taken out, with the texts that may contain them. Reader
// lock or loop thread.
#ifndef BERTH_SERVER_ACCESS_SHOWN_H_
#define BERTH_SERVER_ACCESS_SHOWN_H_

#include <google/protobuf/repeated_field.h>

#include "berth/v1/explain.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/watch.pb.h"
#include "core/model/cluster_state.h"
#include "server/access/permit.h"

namespace berth::store::v1 {
class LogEvent;
}  // namespace berth::store::v1

namespace berth {

// Both require that the caller may list the job.
void Show(const ClusterState& state, Rights& rights, const Job& job, v1::Job* rendered);
void Show(const ClusterState& state, Rights& rights, const Job& job, v1::Task* rendered);

void Show(const ClusterState& state, Rights& rights, const Job& job,
          v1::ExplainJobResponse* rendered);
// Of a job in `queue` that the caller may submit.
void Show(const ClusterState& state, Rights& rights, QueueId queue, v1::PlanJobResponse* rendered);

// False: the caller may not see the event at all. `from`: the event of the log. Events of a job
// that no longer exists are only for those who may list all jobs, but that of its deletion.
bool Show(const ClusterState& state, Rights& rights, const store::v1::LogEvent& from,
          v1::ChangeEvent* rendered);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_SHOWN_H_

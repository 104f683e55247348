#include "core/model/event.h"

#include <utility>

namespace berth {

EventBody::EventBody() = default;
EventBody::EventBody(const EventBody& other) = default;
EventBody::EventBody(EventBody&& other) noexcept = default;
EventBody& EventBody::operator=(const EventBody& other) = default;
EventBody& EventBody::operator=(EventBody&& other) noexcept = default;
EventBody::~EventBody() = default;

template <typename Fact>
requires(!std::is_base_of_v<AnyFact, Fact> &&
         std::is_constructible_v<AnyFact, Fact>) EventBody::EventBody(Fact fact)
    : AnyFact(std::in_place_type<Fact>, std::move(fact)) {}

template EventBody::EventBody(QueueCreated);
template EventBody::EventBody(QueueUpdated);
template EventBody::EventBody(QueueOpened);
template EventBody::EventBody(QueueDeleted);
template EventBody::EventBody(NodeRegistered);
template EventBody::EventBody(NodeSilenced);
template EventBody::EventBody(NodeFenced);
template EventBody::EventBody(NodeSteered);
template EventBody::EventBody(NodeRefused);
template EventBody::EventBody(NodeDeleted);
template EventBody::EventBody(JobSubmitted);
template EventBody::EventBody(JobUpdated);
template EventBody::EventBody(JobCancelled);
template EventBody::EventBody(JobSuspended);
template EventBody::EventBody(JobDeleted);
template EventBody::EventBody(TaskReported);
template EventBody::EventBody(TasksBound);
template EventBody::EventBody(TasksStarted);
template EventBody::EventBody(TasksReleased);
template EventBody::EventBody(TasksRequeued);
template EventBody::EventBody(JobStatusChanged);
template EventBody::EventBody(TasksNominated);
template EventBody::EventBody(TasksUnnominated);
template EventBody::EventBody(JobReserved);
template EventBody::EventBody(UsageCharged);
template EventBody::EventBody(HyperNodeChanged);
template EventBody::EventBody(HyperNodeDeleted);
template EventBody::EventBody(NodesJoined);
template EventBody::EventBody(NodesLeft);
template EventBody::EventBody(RequestMixChanged);
template EventBody::EventBody(JobRunRecorded);
template EventBody::EventBody(TaskReady);
template EventBody::EventBody(CheckpointRecorded);
template EventBody::EventBody(TaskHung);
template EventBody::EventBody(AccessChanged);
template EventBody::EventBody(PriorityClassesChanged);
template EventBody::EventBody(NodeImagesChanged);
template EventBody::EventBody(TasksPaused);
template EventBody::EventBody(TasksResumed);

}  // namespace berth

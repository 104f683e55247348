// Valid requests that tests modify.
#ifndef BERTH_TESTS_UNIT_SERVER_VALIDATION_SAMPLES_H_
#define BERTH_TESTS_UNIT_SERVER_VALIDATION_SAMPLES_H_

#include <string>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/config/config.h"

namespace berth::testing {

inline config::v1::Limits DefaultLimits() {
  config::v1::Server config;
  if (!CompleteConfig(config).ok()) abort();
  return config.limits();
}

inline v1::Job SmallJob(const std::string& name, const std::string& queue = "q") {
  v1::Job job;
  job.set_name(name);
  job.mutable_spec()->set_queue(queue);
  v1::TaskGroup* group = job.mutable_spec()->add_groups();
  group->set_name("w");
  group->set_replicas(1);
  group->mutable_resources()->set_cpu_millis(1000);
  group->add_command("true");
  return job;
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_VALIDATION_SAMPLES_H_

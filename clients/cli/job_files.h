// What the tasks of a job see as files: images and volumes.
#ifndef BERTH_CLIENTS_CLI_JOB_FILES_H_
#define BERTH_CLIENTS_CLI_JOB_FILES_H_

#include <string>

#include "berth/v1/job.pb.h"

namespace berth {

// Lines for people; empty: only the files of their nodes.
std::string FilesText(const v1::JobSpec& spec);

// Containers and their kinds, likewise; empty: there are none.
std::string ContainersText(const v1::JobSpec& spec);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_FILES_H_

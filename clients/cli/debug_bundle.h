// What berth debug bundle collects, without what users wrote into their jobs.
#ifndef BERTH_CLIENTS_CLI_DEBUG_BUNDLE_H_
#define BERTH_CLIENTS_CLI_DEBUG_BUNDLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"

namespace berth {

// Empties all texts of the job's specification (commands, environments, labels, images, paths, ...)
// but those that are listed in debug_bundle.cc, so that a new field stays out until somebody lists
// it. Of the status only the reason that somebody gave for cancelling it: other texts are Berth's.
void HideUserTexts(v1::Job* job);

// Lines of "key: value" without the values of keys that sound like secrets ("token", "password",
// "secret"), unless they are paths. Berth's own files have none: this is for mistakes.
std::string WithoutSecrets(absl::string_view yaml);

// Writes `directory`, with all that is in it, as `file`: a tar archive compressed by gzip whose
// entries are below `name`. ALREADY_EXISTS: nothing is overwritten.
absl::Status WriteBundle(const std::string& directory, const std::string& name,
                         const std::string& file);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_DEBUG_BUNDLE_H_

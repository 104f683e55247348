// Configuration files. Errors found after parsing also name file, line and column.
#ifndef BERTH_SUPPORT_CONFIG_FILE_H_
#define BERTH_SUPPORT_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "support/yaml_proto.h"

namespace berth {

// The positions of a file's keys. Empty: nothing was read.
struct ConfigPlaces {
  std::string file;
  YamlPositions positions;

  // "FILE:LINE:COLUMN: " of the field, or of the closest enclosing one that the file contains; ""
  // if there is none. Accepts names of fields ("http_listen") and keys ("httpListen").
  std::string Of(absl::string_view path) const;
};

// INVALID_ARGUMENT for every error, also for a missing or unreadable file: restarting the program
// does not fix it.
absl::Status ReadConfigFile(const std::string& path, google::protobuf::Message* message,
                            ConfigPlaces* places);

// The problems of a configuration that was read, one a line, with positions. They come from the
// violations of the status or from the lines of its message ("key: problem").
absl::Status Located(const absl::Status& status, const ConfigPlaces& places);

// INVALID_ARGUMENT with an example of a valid path; OK for an absolute path and for "".
absl::Status CheckAbsolutePath(absl::string_view path);
// The same for "host:port", port 1..65535, and "unix:PATH".
absl::Status CheckServerAddress(absl::string_view address);

}  // namespace berth

#endif  // BERTH_SUPPORT_CONFIG_FILE_H_

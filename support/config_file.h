// Configuration files whose later refusals name file, line and column, too.
#ifndef BERTH_SUPPORT_CONFIG_FILE_H_
#define BERTH_SUPPORT_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "support/yaml_proto.h"

namespace berth {

// Where the keys of a file stand. Empty: nothing was read.
struct ConfigPlaces {
  std::string file;
  YamlPositions positions;

  // "FILE:LINE:COLUMN: " of the field, or of the closest one around it that stands in the file; ""
  // if there is none. Takes names of fields ("http_listen") and keys ("httpListen").
  std::string Of(absl::string_view path) const;
};

// INVALID_ARGUMENT for whatever is wrong: a file that is missing or cannot be read will not come by
// itself, and a program that is started again and again says so again and again.
absl::Status ReadConfigFile(const std::string& path, google::protobuf::Message* message,
                            ConfigPlaces* places);

// What is wrong with a configuration that could be read, one finding a line: the violations of the
// status, or the lines of its message ("key: what is wrong").
absl::Status Located(const absl::Status& status, const ConfigPlaces& places);

// INVALID_ARGUMENT with what to write instead; OK for an absolute path, and for "".
absl::Status CheckAbsolutePath(absl::string_view path);
// The same for "host:port", port 1..65535, and "unix:PATH".
absl::Status CheckServerAddress(absl::string_view address);

}  // namespace berth

#endif  // BERTH_SUPPORT_CONFIG_FILE_H_

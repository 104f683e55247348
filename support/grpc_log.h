// Sends gRPC's own log messages to our log.
#ifndef BERTH_SUPPORT_GRPC_LOG_H_
#define BERTH_SUPPORT_GRPC_LOG_H_

#include <string>

#include "support/log.h"

namespace berth {

// gRPC's errors are logged at level `errors`, everything else at debug. A server wants to see
// errors, such as failed handshakes; a client already gets them in the status of each call. Call
// this before any use of gRPC.
void LogForGrpc(LogLevel errors);

// Supplies the field "peer" of lines about failed handshakes, as gRPC does not name the peer. null:
// no field.
void SetHandshakePeers(std::string (*peers)());

// For programs that print to the user on standard error.
void SilenceGrpc();

}  // namespace berth

#endif  // BERTH_SUPPORT_GRPC_LOG_H_

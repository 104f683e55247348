// What gRPC has to say of itself goes where our own log lines go.
#ifndef BERTH_SUPPORT_GRPC_LOG_H_
#define BERTH_SUPPORT_GRPC_LOG_H_

#include <string>

#include "support/log.h"

namespace berth {

// Its errors become lines of level `errors`, the rest of level debug. A server that is open to many
// wants to see them (handshakes that fail, for instance); a client has them in the status of its
// call, over and over again. Before gRPC is used.
void LogForGrpc(LogLevel errors);

// What a line about a failed handshake says besides, as "peer": gRPC names nobody. null: nothing.
void SetHandshakePeers(std::string (*peers)());

// For programs whose standard error belongs to the user.
void SilenceGrpc();

}  // namespace berth

#endif  // BERTH_SUPPORT_GRPC_LOG_H_

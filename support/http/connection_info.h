// What libmicrohttpd knows of a connection.
#ifndef BERTH_SUPPORT_HTTP_CONNECTION_INFO_H_
#define BERTH_SUPPORT_HTTP_CONNECTION_INFO_H_

#include <microhttpd.h>

#include <string>

namespace berth {

int FdOf(MHD_Connection* connection);

// The address and port of the client: "127.0.0.1:1234", "[::1]:1234".
std::string PeerOf(MHD_Connection* connection);

}  // namespace berth

#endif  // BERTH_SUPPORT_HTTP_CONNECTION_INFO_H_

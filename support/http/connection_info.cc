#include "support/http/connection_info.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"

namespace berth {

int FdOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

std::string PeerOf(MHD_Connection* connection) {
  const sockaddr* address =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
    return absl::StrCat(text, ":", ntohs(four->sin_port));
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
  inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
  return absl::StrCat("[", text, "]:", ntohs(six->sin6_port));
}

}  // namespace berth

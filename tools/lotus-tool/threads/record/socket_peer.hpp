// Finds the other end of a connected socket.
#ifndef LOTUS_TOOL_THREADS_RECORD_SOCKET_PEER_HPP
#define LOTUS_TOOL_THREADS_RECORD_SOCKET_PEER_HPP

#include <cstdint>
#include <optional>
#include <string>

namespace lotus::tool {

/// The other end of a connection.
struct socket_peer {
  std::string what;  ///< such as "socket:[4711]"; "" if it is not on this machine
  std::string name;  ///< its address and port, or path; "" if it has none
};

/// Returns the other end of a connected TCP or Unix socket; nullopt if it is unknown, as for a
/// socket that waits for connections.
/// @param pid  a process that has opened the socket, and in whose network it is.
/// @param what  such as "socket:[4711]".
std::optional<socket_peer> peer_of_socket(std::uint32_t pid, const std::string& what);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_RECORD_SOCKET_PEER_HPP

#include "threads/record/socket_peer.hpp"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace lotus::tool {
namespace {

std::string socket_named(std::uint64_t inode) {
  return "socket:[" + std::to_string(inode) + ']';
}

/// A line of /proc/PID/net/tcp. Addresses look like "0100007F:1F90".
struct tcp_line {
  std::string local;
  std::string remote;
  std::uint64_t inode = 0;
};

/// Converts an IPv6 address that represents an IPv4 address to that IPv4 address.
std::string as_ipv4(const std::string& address) {
  constexpr const char* mapped = "0000000000000000FFFF0000";
  return address.rfind(mapped, 0) == 0 ? address.substr(std::strlen(mapped)) : address;
}

std::vector<tcp_line> tcp_sockets(std::uint32_t pid) {
  std::vector<tcp_line> all;
  for (const char* const file : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines("/proc/" + std::to_string(pid) + file);
    std::string line;
    std::getline(lines, line);  // the names of the columns
    while (std::getline(lines, line)) {
      std::istringstream of(line);
      std::string skipped;
      tcp_line one;
      of >> skipped >> one.local >> one.remote;
      for (int i = 0; i < 6; ++i) of >> skipped;
      if (!(of >> one.inode)) continue;
      one.local = as_ipv4(one.local);
      one.remote = as_ipv4(one.remote);
      all.push_back(one);
    }
  }
  return all;
}

/// Returns "127.0.0.1:8080" for "0100007F:1F90". Each 32 bits are in the order of this machine.
std::string shown_address(const std::string& hexadecimal) {
  const std::size_t colon = hexadecimal.find(':');
  if (colon == std::string::npos || colon % 8 != 0 || colon > 32) return {};
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / 8; ++i) {
    words[i] =
        static_cast<std::uint32_t>(std::strtoul(hexadecimal.substr(8 * i, 8).c_str(), nullptr, 16));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_ipv4 = colon == 8;
  if (::inet_ntop(is_ipv4 ? AF_INET : AF_INET6, words.data(), text.data(), text.size()) ==
      nullptr) {
    return {};
  }
  const std::string address(text.data());
  const std::string port = std::to_string(std::strtoul(&hexadecimal[colon + 1], nullptr, 16));
  return is_ipv4 ? address + ':' + port : '[' + address + "]:" + port;
}

std::optional<socket_peer> peer_of_tcp(std::uint32_t pid, std::uint64_t inode) {
  const std::vector<tcp_line> all = tcp_sockets(pid);
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const tcp_line& one) { return one.inode == inode; });
  // A socket without a remote port waits for connections.
  if (own == all.end() || own->remote.substr(own->remote.find(':')) == ":0000") return std::nullopt;
  const auto other = std::find_if(all.begin(), all.end(), [&](const tcp_line& one) {
    return one.local == own->remote && one.remote == own->local;
  });
  socket_peer peer;
  peer.name = shown_address(own->remote);
  // The kernel shows no inode of a socket that its process has closed.
  if (other != all.end() && other->inode != 0) peer.what = socket_named(other->inode);
  return peer;
}

struct unix_socket {
  std::uint32_t peer = 0;  ///< inode of the other end; 0: none
  std::string path;        ///< "" if the socket has none
};

/// Asks the kernel about a Unix socket (sock_diag(7)). Returns nullopt if it knows no such socket.
std::optional<unix_socket> ask_about_unix(std::uint32_t inode) {
  struct {
    nlmsghdr head{};
    unix_diag_req of{};
  } request;
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.of.sdiag_family = AF_UNIX;
  request.of.udiag_states = ~0U;
  request.of.udiag_ino = inode;
  request.of.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER;
  std::memset(request.of.udiag_cookie, 0xff, sizeof request.of.udiag_cookie);  // any socket
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  ssize_t got = -1;
  if (::send(fd, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request)) {
    got = ::recv(fd, answer.data(), answer.size(), 0);
  }
  ::close(fd);
  nlmsghdr head{};
  constexpr std::size_t begin = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(unix_diag_msg));
  if (got < static_cast<ssize_t>(begin)) return std::nullopt;
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  unix_socket found;
  const std::size_t end = std::min<std::size_t>(head.nlmsg_len, static_cast<std::size_t>(got));
  for (std::size_t at = begin; at + sizeof(rtattr) <= end;) {
    rtattr part{};
    std::memcpy(&part, &answer[at], sizeof part);
    if (part.rta_len < sizeof part || at + part.rta_len > end) break;
    const char* const value = &answer[at] + sizeof part;
    const std::size_t bytes = part.rta_len - sizeof part;
    if (part.rta_type == UNIX_DIAG_PEER && bytes == sizeof found.peer) {
      std::memcpy(&found.peer, value, bytes);
    }
    // The name of a socket without a file begins with a zero byte.
    if (part.rta_type == UNIX_DIAG_NAME) found.path.assign(value, ::strnlen(value, bytes));
    at += RTA_ALIGN(part.rta_len);
  }
  return found;
}

}  // namespace

std::optional<socket_peer> peer_of_socket(std::uint32_t pid, const std::string& what) {
  constexpr const char* start = "socket:[";
  if (what.rfind(start, 0) != 0) return std::nullopt;
  const std::uint64_t inode = std::strtoull(&what[std::strlen(start)], nullptr, 10);
  if (auto tcp = peer_of_tcp(pid, inode)) return tcp;
  const auto own = ask_about_unix(static_cast<std::uint32_t>(inode));
  if (!own || own->peer == 0) return std::nullopt;
  const auto other = ask_about_unix(own->peer);
  return socket_peer{socket_named(own->peer), other ? other->path : std::string()};
}

}  // namespace lotus::tool

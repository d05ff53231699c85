#include "sim/exec/preload/shared_descriptors.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace sim {
namespace {

struct Name {
  sockaddr_un address = {};
  socklen_t bytes = sizeof address;
};

/// Its name, or none with no bytes.
Name name_of(int socket) {
  Name name;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name.address), &name.bytes) != 0) {
    name.bytes = 0;
  }
  return name;
}

/// As IpcChannel of CUDASymmetricMemoryUtils.cpp names its own.
bool is_channel(int socket) {
  char end[64];
  std::snprintf(end, sizeof end, "/symm_mem-%d", getpid());
  const Name name = name_of(socket);
  const bool is_named = name.bytes > sizeof(sa_family_t) && name.address.sun_family == AF_UNIX;
  const size_t most = std::min(sizeof name.address.sun_path, size_t{name.bytes});
  return is_named && std::string_view(name.address.sun_path, strnlen(name.address.sun_path, most))
                         .ends_with(end);
}

}  // namespace

bool waits_for_absent_rank(int socket) {
  char byte;
  return is_channel(socket) && recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) < 0;
}

bool send_descriptor_to(int socket, int descriptor) {
  char text[] = "fd";
  iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  Name name = name_of(socket);
  msghdr message = {};
  message.msg_name = &name.address;
  message.msg_namelen = name.bytes;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message, 0) > 0;
}

}  // namespace sim

// Loads plugins that record. Usage: plugin_host CASE PREFIX FIRST_PLUGIN SECOND_PLUGIN. If
// HOST_RECORDS is defined, the program also includes the library; otherwise only the plugins do.
// The exit status is 0 on success.

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#if defined(HOST_RECORDS)
  #include "lotus/lotus.hpp"
static void record_in_host(int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE("Host");
}
#endif

namespace {

/// Blocks the means by which the shared objects of a process find their common session: some
/// addresses, /proc or memfd_create(), as listed in `denied`. Some containers block these too.
/// Exits with 77 if the process has no permission to block them.
void deny(const char* denied) {
  if (denied == nullptr) return;
  const char* says_to = getenv("PLUGIN_HOST_SAYS_TO");
  if (says_to != nullptr && std::freopen(says_to, "w", stderr) == nullptr) exit(1);
  if (std::strstr(denied, "addresses") != nullptr) {
    for (const unsigned long at : {0x21'4c4f'0000UL, 0x7a4f'0000UL, 0x2a4f'4c4f'0000UL}) {
      void* wanted = reinterpret_cast<void*>(at);
      const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
      if (mmap(wanted, 4096, PROT_NONE, flags, -1, 0) == MAP_FAILED && errno != EEXIST) exit(77);
    }
  }
  if (std::strstr(denied, "proc") != nullptr) {
    if (unshare(CLONE_NEWNS) != 0) exit(77);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) exit(77);
    if (umount2("/proc", MNT_DETACH) != 0) exit(77);
  }
  if (std::strstr(denied, "memfd") != nullptr) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(77);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) exit(77);
  }
}

class plugin {
 public:
  explicit plugin(const char* path) : path_{path}, handle_{dlopen(path, RTLD_NOW | RTLD_LOCAL)} {
    if (handle_ == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  }
  void record(int times) const {
    reinterpret_cast<void (*)(int)>(dlsym(handle_, "record_some"))(times);
  }
  bool start(const char* log_file) const {
    return reinterpret_cast<bool (*)(const char*)>(dlsym(handle_, "start_recording"))(log_file);
  }
  void resume_collector() const {
    reinterpret_cast<void (*)()>(dlsym(handle_, "resume_collector"))();
  }
  void close() const { dlclose(handle_); }

  /// Returns whether any part of the plugin's code is still mapped into memory.
  bool mapped() const {
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);) {
      if (line.find(path_) != std::string::npos) return true;
    }
    return false;
  }

 private:
  std::string path_;
  void* handle_;
};

}  // namespace

int main(int, char** argv) {
  deny(getenv("PLUGIN_HOST_IS_DENIED"));
  const std::string what = argv[1];
  const char* const log_file = argv[2];
  alarm(250);
#if defined(HOST_RECORDS)
  if (what == "first_scope_meets_dlopen") {
    setenv("LOTUS_LOG_FILE", log_file, 1);
    setenv("PLUGIN_LOADS_FOR_MS", "400", 1);
    std::thread first_scope{[] {
      usleep(100'000);
      record_in_host(1);
    }};
    const plugin loaded_meanwhile{argv[3]};
    first_scope.join();
    loaded_meanwhile.record(1);
    return 0;
  }
#endif
  const plugin first{argv[3]};
  const plugin second{argv[4]};
#if defined(HOST_RECORDS)
  if (what == "host_is_told") {
    // The plugin has recorded nothing yet, so it has not yet looked for the session of the program.
    setenv("LOTUS_COLLECTOR", "no such", 1);
    static std::string reported;
    lotus::options chosen;
    chosen.log_file = log_file;
    chosen.on_message = [](const char* message) { reported += std::string(message) + '\n'; };
    if (!lotus::start(chosen)) return 1;
    first.resume_collector();
    return reported.rfind("LOTUS_COLLECTOR=no such is not known; ", 0) == 0 &&
                   reported.find('\n') == reported.size() - 1
               ? 0
               : 2;
  }
  if (what == "host_starts") {
    if (!lotus::start(log_file)) return 1;
    first.record(10);
    second.record(20);
    record_in_host(30);
    first.close();  // the ring still contains records with names of this plugin
    if (first.mapped()) return 2;
    second.record(20);
    record_in_host(30);
    return 0;
  }
#endif
  if (what == "plugin_starts") {
    // The second plugin looks for a session and finds none. Then the first plugin starts a session.
    second.record(5);
    if (!first.start(log_file)) return 1;
    first.record(10);
    second.record(20);
    first.close();  // this plugin has started the session, and its code drains the rings
    second.record(20);
#if defined(HOST_RECORDS)
    record_in_host(60);
#endif
    const plugin again{argv[3]};
    again.record(10);
    second.close();
    return 0;
  }
  return 3;
}

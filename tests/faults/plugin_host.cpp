// Loads plugins that record: plugin_host CASE PREFIX FIRST_PLUGIN SECOND_PLUGIN. With HOST_RECORDS
// it includes the library itself; without, only the plugins do. Ends with 0 when all went well.

#include <dlfcn.h>
#include <unistd.h>

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
  void close() const { dlclose(handle_); }

  /// Whether any of its code is still in memory.
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
  const std::string what = argv[1];
  const char* const log_file = argv[2];
  alarm(60);
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
  if (what == "host_starts") {
    if (!lotus::start(log_file)) return 1;
    first.record(10);
    second.record(20);
    record_in_host(30);
    first.close();  // with its names still in the ring
    if (first.mapped()) return 2;
    second.record(20);
    record_in_host(30);
    return 0;
  }
#endif
  if (what == "plugin_starts") {
    // The second one has asked, and was told no, before the first one starts.
    second.record(5);
    if (!first.start(log_file)) return 1;
    first.record(10);
    second.record(20);
    first.close();  // the one that started the session and whose code drains
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

// Plays Intel's collector library: takes the program's table in __itt_api_init, fills it in, and
// writes down what it is told, in the file that STAND_IN_LOG names.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lotus/collectors/itt.hpp>
#include <lotus/lock.hpp>
#include <set>
#include <string>

namespace {

using namespace lotus::detail;

// Signals are blocked: a handler's scopes come here too.
void note(const std::string& text) {
  const signals_blocked quiet;
  const char* path = std::getenv("STAND_IN_LOG");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", text.c_str());
    std::fclose(file);
  }
}

void resume() {
  note("resume");
}
void pause_now() {
  note("pause");
}
void detach() {
  note("detach");
}
itt_domain* domain_create(const char* name) {
  note(std::string("domain ") + name);
  static itt_domain domain{1, nullptr, nullptr, 0, nullptr, nullptr};
  domain.name = name;
  return &domain;
}
itt_string_handle* string_handle_create(const char* name) {
  const signals_blocked quiet;
  static std::set<std::string> handles;
  return reinterpret_cast<itt_string_handle*>(
      const_cast<std::string*>(&*handles.insert(name).first));
}
void task_begin(const itt_domain*, itt_id, itt_id, itt_string_handle* name) {
  const signals_blocked quiet;
  note(std::string("begin ") + *reinterpret_cast<std::string*>(name));
}
void task_end(const itt_domain*) {
  const signals_blocked quiet;
  note("end");
}

}  // namespace

extern "C" void __itt_api_init(itt_global* global, int groups) {
  const unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
  const bool known = std::memcmp(global->magic, magic, sizeof magic) == 0 &&
                     global->version_major == 3 && groups == -1;
  note(known ? "init" : "init with a table that is not known");
  const struct {
    const char* name;
    void* function;
  } functions[] = {
      {"__itt_resume", reinterpret_cast<void*>(resume)},
      {"__itt_pause", reinterpret_cast<void*>(pause_now)},
      {"__itt_detach", reinterpret_cast<void*>(detach)},
      {"__itt_domain_create", reinterpret_cast<void*>(domain_create)},
      {"__itt_string_handle_create", reinterpret_cast<void*>(string_handle_create)},
      {"__itt_task_begin", reinterpret_cast<void*>(task_begin)},
      {"__itt_task_end", reinterpret_cast<void*>(task_end)},
  };
  for (itt_function* f = global->functions; known && f->name != nullptr; ++f) {
    for (const auto& ours : functions) {
      if (std::strcmp(f->name, ours.name) == 0) *f->function = ours.function;
    }
  }
}

// What a program that has not given its table would find by name: it must not be used.
extern "C" void __itt_resume() {
  note("resume before init");
}

// A stand-in for Intel's collector library. __itt_api_init receives the program's function table
// and fills it in. Received calls are written to the file STAND_IN_LOG; the names for which the
// program requests handles are written to the file STAND_IN_HANDLES.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lotus/base/lock.hpp>
#include <lotus/collectors/itt.hpp>

#include "stand_in_note.hpp"

namespace {

using namespace lotus::detail;
using stand_in::note;

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
  note("domain ", name);
  static itt_domain domain{1, nullptr, nullptr, 0, nullptr, nullptr};
  domain.name = name;
  return &domain;
}
itt_string_handle* string_handle_create(const char* name) {
  note(name, "", "STAND_IN_HANDLES");
  static char handles[16][256];
  const signals_blocked quiet;
  for (auto& handle : handles) {
    if (handle[0] == '\0') std::snprintf(handle, sizeof handle, "%s", name);
    if (std::strcmp(handle, name) == 0) return reinterpret_cast<itt_string_handle*>(handle);
  }
  std::abort();
}
void task_begin(const itt_domain*, itt_id, itt_id, itt_string_handle* name) {
  note("begin ", reinterpret_cast<const char*>(name));
}
void task_end(const itt_domain*) {
  note("end");
}

void task_begin_overlapped(const itt_domain*, itt_id id, itt_id, itt_string_handle* name) {
  note("begin overlapped ", reinterpret_cast<const char*>(name));
  if (id.d1 == 0 || id.d2 == 0) std::abort();
}
void task_end_overlapped(const itt_domain*, itt_id id) {
  note("end overlapped");
  if (id.d1 == 0 || id.d2 == 0) std::abort();
}
void metadata_add(const itt_domain*, itt_id id, itt_string_handle* key, int type, std::size_t count,
                  void* data) {
  if (type != 1 || count != 1) std::abort();
  char text[64];
  std::snprintf(text, sizeof text, "%s%s %llu", id.d1 == 0 ? "" : "overlapped ",
                reinterpret_cast<const char*>(key), *static_cast<unsigned long long*>(data));
  note(text, "", "STAND_IN_NUMBERS");
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
      {"__itt_task_begin_overlapped", reinterpret_cast<void*>(task_begin_overlapped)},
      {"__itt_task_end_overlapped", reinterpret_cast<void*>(task_end_overlapped)},
      {"__itt_metadata_add", reinterpret_cast<void*>(metadata_add)},
  };
  for (itt_function* f = global->functions; known && f->name != nullptr; ++f) {
    for (const auto& ours : functions) {
      if (std::strcmp(f->name, ours.name) == 0) *f->function = ours.function;
    }
  }
}

// A program that does not pass its function table would find this function by its name. The
// function must not be called.
extern "C" void __itt_resume() {
  note("resume before init");
}

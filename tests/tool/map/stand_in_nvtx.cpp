// A stand-in for the library that NVIDIA's tools inject, according to NVTX's public header (the
// numbers are from nvtx3/nvtxDetail/nvtxTypes.h). It asks the program for its function tables and
// fills in all functions. It writes the calls that it receives to the file STAND_IN_LOG.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "stand_in_note.hpp"

namespace {

using stand_in::note;

using function = void (*)();
using get_table = const void* (*)(std::uint32_t);

struct callbacks {
  std::size_t size;
  int (*functions_of)(int module, function*** table, unsigned* functions);
};
struct version_info {
  std::size_t size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_version)(std::uint32_t);
};

/// Has the layout of nvtxEventAttributes_t.
struct attributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t colour_type;
  std::uint32_t colour;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const char* message;
};

int a_domain;

void* domain_create(const char* name) {
  note("domain ", name);
  return &a_domain;
}
void note_number(const attributes* event) {
  if (event->payload_type == 0) return;
  char text[64];
  std::snprintf(text, sizeof text, "%d %llu", event->payload_type,
                static_cast<unsigned long long>(event->payload));
  note(text, "", "STAND_IN_NUMBERS");
}
std::uint64_t ranges = 100;

std::uint64_t range_start(void* domain, const attributes* event) {
  note(domain == &a_domain ? "start " : "start in an unknown domain ", event->message);
  note_number(event);
  return ++ranges;
}
void range_end(void* domain, std::uint64_t range) {
  char text[64];
  std::snprintf(text, sizeof text, "finish %llu", static_cast<unsigned long long>(range));
  note(domain == &a_domain ? text : "finish in an unknown domain");
}
int range_push(void* domain, const attributes* event) {
  const bool known = domain == &a_domain && event->version == 3 &&
                     event->size == sizeof(attributes) && event->message_type == 1;
  note(known ? "push " : "push of something unknown ", event->message);
  note_number(event);
  return 0;
}
int range_pop(void* domain) {
  note(domain == &a_domain ? "pop" : "pop of an unknown domain");
  return 0;
}
void not_asked_for() {
  note("a function that should not be called");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(get_table table) {
  const auto* of = static_cast<const callbacks*>(table(1));
  const auto* version = static_cast<const version_info*>(table(3));
  if (of == nullptr || of->size < sizeof(callbacks) || table(77) != nullptr) return 0;
  version->set_version(3);
  char number[16];
  std::snprintf(number, sizeof number, "%u", version->version);
  note("init ", number);
  for (int module = 1; module <= 6; ++module) {
    function** functions = nullptr;
    unsigned count = 0;
    if (of->functions_of(module, &functions, &count) == 0) return 0;
    for (unsigned i = 1; i < count; ++i) *functions[i] = not_asked_for;
    if (module != 5) continue;
    *functions[2] = reinterpret_cast<function>(range_start);
    *functions[3] = reinterpret_cast<function>(range_end);
    *functions[4] = reinterpret_cast<function>(range_push);
    *functions[5] = reinterpret_cast<function>(range_pop);
    *functions[12] = reinterpret_cast<function>(domain_create);
  }
  return 1;
}

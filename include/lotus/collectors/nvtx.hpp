// Shows ranges in NVIDIA's Nsight tools through the binary interface (NVTX 3) of a library that
// these tools name in the environment. NVTX's headers are not needed: the types below have its
// binary layout.
#ifndef LOTUS_COLLECTORS_NVTX_HPP
#define LOTUS_COLLECTORS_NVTX_HPP

#include <dlfcn.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>

#include "lotus/base/lock.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The Nsight tool sets this variable to the path of its library.
inline constexpr char nvtx_library_variable[] = "NVTX_INJECTION64_PATH";

struct nvtx_domain;

/// Has the layout of NVTX's struct nvtxEventAttributes_v2.
struct nvtx_event {
  std::uint16_t version = 3;
  std::uint16_t size = sizeof(nvtx_event);
  std::uint32_t category = 0;
  std::int32_t color_type = 0;
  std::uint32_t color = 0;
  std::int32_t payload_type = 0;
  std::int32_t reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t message_type = 1;  ///< 1: the message is a char*
  const char* message = nullptr;

  static constexpr std::int32_t payload_u64 = 1;
};
static_assert(sizeof(nvtx_event) == 48, "as the tool reads it");

/// The functions of the Nsight tool; null for functions that the tool lacks. The object is never
/// destroyed, because the tool keeps pointers to it.
class nvtx_library {
 public:
  nvtx_domain* (*domain_create)(const char*) = nullptr;
  int (*range_push)(nvtx_domain*, const nvtx_event*) = nullptr;
  int (*range_pop)(nvtx_domain*) = nullptr;
  /// range_start and range_end begin and end a range that may end on another thread.
  std::uint64_t (*range_start)(nvtx_domain*, const nvtx_event*) = nullptr;
  void (*range_end)(nvtx_domain*, std::uint64_t) = nullptr;
  nvtx_domain* domain = nullptr;  ///< the domain "lotus"

  /// Returns the library whose path the Nsight tool has set in the environment; the first call
  /// loads and initializes it. Returns null, after reporting the reason, if it cannot be loaded.
  /// Thread safety: any thread.
  static const nvtx_library* get() noexcept {
    static lazy_lookup<const nvtx_library*> loaded;
    return loaded.get(load, nullptr);
  }

 private:
  using function = void (*)();
  using function_table = function**;
  /// Has the layout of NVTX's struct NvtxExportTableCallbacks.
  struct callbacks {
    std::size_t size;
    int (*function_table_of)(int module, function_table* table, unsigned* functions);
  };
  /// Has the layout of NVTX's struct NvtxExportTableVersionInfo.
  struct version_info {
    std::size_t size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_version)(std::uint32_t);
  };

  // Numbers by which NVTX's binary interface identifies modules (groups of functions), functions
  // and tables.
  static constexpr int first_module = 1;
  static constexpr int domain_module = 5;  // NVTX_CB_MODULE_CORE2
  static constexpr int last_module = 6;
  static constexpr unsigned module_functions = 16;
  static constexpr unsigned range_start_function = 2;
  static constexpr unsigned range_end_function = 3;
  static constexpr unsigned range_push_function = 4;
  static constexpr unsigned range_pop_function = 5;
  static constexpr unsigned domain_create_function = 12;
  static constexpr std::uint32_t callbacks_table = 1;
  static constexpr std::uint32_t version_table = 3;

  LOTUS_DETAIL_COLD static const nvtx_library* load() noexcept {
    const char* path = secure_getenv(nvtx_library_variable);
    if (path == nullptr || *path == '\0') {
      say("LOTUS_ANNOTATE=nvtx needs %s; run the program with nsys", nvtx_library_variable);
      return nullptr;
    }
    void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      say("cannot load NVIDIA's collector: %s", dlerror());
      return nullptr;
    }
    using get_table = const void* (*)(std::uint32_t);
    const auto begin =
        reinterpret_cast<int (*)(get_table)>(dlsym(library, "InitializeInjectionNvtx2"));
    if (begin == nullptr || begin(exported_table) == 0) {
      say("%s is not an NVIDIA collector: its InitializeInjectionNvtx2 %s", path,
          begin == nullptr ? "is missing" : "fails");
      return nullptr;
    }
    nvtx_library& self = instance();
    if (self.domain_create == nullptr || self.range_push == nullptr || self.range_pop == nullptr) {
      say("%s shows no ranges of domains", path);
      return nullptr;
    }
    self.domain = self.domain_create("lotus");
    return &self;
  }

  static nvtx_library& instance() noexcept {
    static nvtx_library self;
    return self;
  }

  static const void* exported_table(std::uint32_t id) noexcept {
    static const callbacks functions{sizeof(callbacks), function_table_of};
    static const version_info version{sizeof(version_info), 3, 0, [](std::uint32_t) {}};
    if (id == callbacks_table) return &functions;
    return id == version_table ? &version : nullptr;
  }

  /// The Nsight tool calls this function to find out where to store the addresses of its functions:
  /// five of them in members of this object, all others in one variable that nothing reads.
  static int function_table_of(int module, function_table* table, unsigned* functions) noexcept {
    static function unused = nullptr;
    static function* to[last_module + 1][module_functions + 1];
    if (module < first_module || module > last_module) return 0;
    for (unsigned i = 1; i < module_functions; ++i) to[module][i] = &unused;
    if (module == domain_module) {
      nvtx_library& self = instance();
      to[module][range_start_function] = place(self.range_start);
      to[module][range_end_function] = place(self.range_end);
      to[module][range_push_function] = place(self.range_push);
      to[module][range_pop_function] = place(self.range_pop);
      to[module][domain_create_function] = place(self.domain_create);
    }
    if (table != nullptr) *table = to[module];
    if (functions != nullptr) *functions = module_functions;
    return 1;
  }

  template <class Function>
  static function* place(Function*& f) noexcept {
    return reinterpret_cast<function*>(&f);
  }
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_COLLECTORS_NVTX_HPP

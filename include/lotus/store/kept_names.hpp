// Tracks which names are in the ring file, from which recovery reads them after a kill.
#ifndef LOTUS_STORE_KEPT_NAMES_HPP
#define LOTUS_STORE_KEPT_NAMES_HPP

#include <atomic>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/names.hpp"
#include "lotus/store/ring_file.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Thread safety: has() on any thread; callers of the others hold the ring file's lock.
class kept_names {
 public:
  /// Whether the name with this id is in the ring file. Also true if there is no ring file.
  bool has(std::uint32_t id) const noexcept { return id <= stored_.load(); }

  void store(ring_file& file, const name_table& names) noexcept {
    // Names that other threads have already added to the table are stored by store_names(). A
    // thread that adds a name from now on finds has() false, and waits for the lock.
    if (file.exists()) stored_.store(file.names_stored());
    file.store_names(names);
    stored_.store(file.exists() ? file.names_stored() : all);
  }

  void no_file() noexcept { stored_.store(all, std::memory_order_release); }

 private:
  static constexpr std::uint32_t all = ~std::uint32_t{0};

  std::atomic<std::uint32_t> stored_{all};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_KEPT_NAMES_HPP

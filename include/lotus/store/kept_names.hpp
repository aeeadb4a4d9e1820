// Tracks which names of operations are in the ring file, from which recovery reads them after a
// kill.
#ifndef LOTUS_STORE_KEPT_NAMES_HPP
#define LOTUS_STORE_KEPT_NAMES_HPP

#include <atomic>
#include <cstdint>

#include "lotus/config.hpp"
#include "lotus/record/names.hpp"
#include "lotus/store/ring_file.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// The ids of the names in the ring file. has() is thread-safe; callers of the other functions hold
/// the lock of the ring file.
class kept_names {
 public:
  /// Whether the name with this id is in the ring file. Also true if there is no ring file.
  bool has(std::uint32_t id) const noexcept { return id <= stored_.load(); }

  void store(ring_file& file, const name_table& names) noexcept {
    // store_names() stores all names that are in the table now. For a name that another thread adds
    // from here on, has() returns false; that thread then waits for the lock and stores the name.
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

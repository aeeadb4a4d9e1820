// Provides loader_scope, which lets several loaders in a process number batches independently.
#ifndef LOTUS_LOADER_HPP
#define LOTUS_LOADER_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Assigns this thread's later records to the loader whose name has the id `loader`. Returns the id
/// of the previous loader's name.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  if (!LOTUS_SUPPORTED || name.empty()) return 0;
  return static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Assigns the batches, stages and operations of this thread to a loader until the end of the
/// block. lotus-tool treats each loader as a pipeline of its own, whose logs are in a subfolder
/// with the loader's name. Processes that this thread forks meanwhile belong to the loader too, but
/// threads that this thread starts do not. A loader_scope may be nested in another. Cost: a few
/// system calls, so use one for the lifetime of a worker or for an epoch, not for each batch.
/// Errors: none thrown.
class loader_scope {
 public:
  /// @param name  name of the loader; empty: the default loader, as if there were no loader_scope.
  [[nodiscard]] explicit loader_scope(std::string_view name) noexcept
      : before_{detail::enter_loader(detail::loader_of(name))} {}
  loader_scope(const loader_scope&) = delete;
  loader_scope& operator=(const loader_scope&) = delete;
  ~loader_scope() { detail::enter_loader(before_); }

 private:
  std::uint32_t before_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOADER_HPP

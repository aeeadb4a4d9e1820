// Loaders: lets several loaders in one process number their batches independently.
#ifndef LOTUS_LOADER_HPP
#define LOTUS_LOADER_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns the loader to which this thread's records belonged so far.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  return name.empty() ? 0 : static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Until the end of the block, the batches, stages and operations of this thread belong to the
/// named loader, which lotus-tool treats as a pipeline of its own, with logs in a subfolder of that
/// name. Children that this thread forks belong to the loader too, but threads that it starts do
/// not. Scopes may be nested. Cost: a few system calls; meant for a worker's whole lifetime, or an
/// epoch. Errors: none thrown.
class loader_scope {
 public:
  /// @param name  if empty, the default loader, which is also used without a loader_scope.
  explicit loader_scope(std::string_view name) noexcept
      : before_{detail::enter_loader(detail::loader_of(name))} {}
  loader_scope(const loader_scope&) = delete;
  loader_scope& operator=(const loader_scope&) = delete;
  ~loader_scope() { detail::enter_loader(before_); }

 private:
  std::uint32_t before_;
};

LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_LOADER_HPP

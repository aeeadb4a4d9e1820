// Several loaders in one process, each of which numbers its batches by itself.
#ifndef LOTUS_LOADER_HPP
#define LOTUS_LOADER_HPP

#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/scope.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Returns whose the records of this thread were so far.
LOTUS_DETAIL_PER_MODULE inline std::uint32_t enter_loader(std::uint32_t loader) noexcept {
  return join_session(true).enter_loader(loader);
}

LOTUS_DETAIL_PER_MODULE inline std::uint32_t loader_of(std::string_view name) noexcept {
  return name.empty() ? 0 : static_cast<std::uint32_t>(operation_tag(name).value());
}

}  // namespace detail

/// Batches, stages and operations of this thread that end in the block belong to the loader of this
/// name: to lotus-tool a pipeline of its own, with logs in a folder of its name beside the others.
/// Threads that this one starts are not in it, children that it forks are. Scopes may be nested.
/// Cost: some system calls; meant for a worker's whole life, or an epoch. Errors: none thrown.
class loader_scope {
 public:
  /// @param name  empty: the default loader, as without a scope.
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

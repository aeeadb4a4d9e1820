// Shows scopes in the traces of PyTorch's own profiler if LOTUS_ANNOTATE contains "torch".
#ifndef LOTUS_TORCH_ANNOTATION_HPP
#define LOTUS_TORCH_ANNOTATION_HPP

#include <ATen/record_function.h>

#include <cstdint>
#include <new>

#include "lotus/base/environment.hpp"
#include "lotus/config.hpp"
#include "lotus/record/hub.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace torch::detail {

/// A scope of this thread that has not ended and that PyTorch's profiler records.
struct seen_scope {
  at::RecordFunction function{at::RecordScope::USER_SCOPE};
  /// Number of scopes inside this one that have not ended, and that began while no profiler was
  /// recording: the profiler must not see their ends either.
  std::uint32_t unseen_within = 0;
  seen_scope* around = nullptr;
};

// These variables have no destructor, so that they remain usable in the destructors of a thread's
// other objects, which may contain scopes.
LOTUS_DETAIL_PER_MODULE inline thread_local seen_scope* innermost_seen = nullptr;
LOTUS_DETAIL_PER_MODULE inline thread_local std::uint32_t unseen_outside = 0;

LOTUS_DETAIL_PER_MODULE inline void begin_seen(const char* name) noexcept {
  seen_scope* const around = innermost_seen;
  auto* const scope = new (std::nothrow) seen_scope;
  if (scope == nullptr || !scope->function.isActive()) {
    delete scope;
    ++(around == nullptr ? unseen_outside : around->unseen_within);
    return;
  }
  scope->around = around;
  scope->function.before(name);
  innermost_seen = scope;
}

LOTUS_DETAIL_PER_MODULE inline void end_seen() noexcept {
  seen_scope* const innermost = innermost_seen;
  std::uint32_t& unseen = innermost == nullptr ? unseen_outside : innermost->unseen_within;
  if (unseen > 0) {
    --unseen;
  } else if (innermost != nullptr) {
    innermost_seen = innermost->around;
    delete innermost;
  }
}

LOTUS_DETAIL_PER_MODULE inline const lotus::detail::annotation_calls annotation{begin_seen,
                                                                                end_seen};

/// If the environment variable LOTUS_ANNOTATE is set, registers the functions in `annotation` with
/// the session before main(). The session calls them at the start and end of each scope.
LOTUS_DETAIL_PER_MODULE inline const bool annotation_reported = [] {
  if (lotus::detail::environment_text(lotus::detail::variable::annotate) == nullptr) return false;
  lotus::detail::join_session(false).annotate_torch(annotation);
  return true;
}();

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_ANNOTATION_HPP

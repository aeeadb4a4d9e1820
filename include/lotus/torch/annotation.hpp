// LOTUS_ANNOTATE=torch: scopes in the traces of PyTorch's own profiler.
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

/// A scope of this thread that PyTorch's profiler sees.
struct seen_scope {
  at::RecordFunction function{at::RecordScope::USER_SCOPE};
  std::uint32_t unseen_within = 0;  ///< scopes that began since, while no profiler was on
  seen_scope* around = nullptr;
};

// Nothing to destroy: destructors of other objects of a thread may have scopes.
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

/// Tells the session before main(), where the environment asks for annotations at all.
LOTUS_DETAIL_PER_MODULE inline const bool annotation_told = [] {
  if (lotus::detail::environment_text(lotus::detail::variable::annotate) == nullptr) return false;
  lotus::detail::join_session(false).annotate_torch(annotation);
  return true;
}();

}  // namespace torch::detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_TORCH_ANNOTATION_HPP

// Lotus: shows where a C++ data-preprocessing pipeline spends its time.
//
// Header-only by default. If every file defines LOTUS_COMPILED, the engine is compiled only in the
// file that also defines LOTUS_IMPLEMENTATION; the library target lotus::lotus is built that way.
// One program may mix files built either way.
#ifndef LOTUS_LOTUS_HPP
#define LOTUS_LOTUS_HPP

#include "lotus/async_scope.hpp"
#include "lotus/batch.hpp"
#include "lotus/collector.hpp"
#include "lotus/compose.hpp"
#include "lotus/config.hpp"
#include "lotus/consume.hpp"
#include "lotus/counter.hpp"
#include "lotus/loader.hpp"
#include "lotus/macros.hpp"
#include "lotus/map.hpp"
#include "lotus/options.hpp"
#include "lotus/record_span.hpp"
#include "lotus/scope.hpp"
#include "lotus/scope_arguments.hpp"
#include "lotus/session.hpp"
#include "lotus/stage.hpp"
#include "lotus/version.hpp"

#endif  // LOTUS_LOTUS_HPP

// Outside the include guard: another header may have included this one before LOTUS_IMPLEMENTATION
// was defined.
#if !defined(LOTUS_COMPILED) || defined(LOTUS_IMPLEMENTATION)
#include "lotus/engine/engine.hpp"
#endif

// Lotus: tells a C++ data-preprocessing pipeline where its time goes.
//
// Header-only, as it is. Where LOTUS_COMPILED is defined in every file, the engine is compiled in
// that one alone which defines LOTUS_IMPLEMENTATION too; the library target lotus::lotus is that.
// Files built either way may be mixed.
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

// Beyond the guard: another header may have included this one before LOTUS_IMPLEMENTATION was
// defined.
#if !defined(LOTUS_COMPILED) || defined(LOTUS_IMPLEMENTATION)
#include "lotus/engine/engine.hpp"
#endif

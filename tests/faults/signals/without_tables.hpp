// Declares a function that is compiled without unwind tables, so that the stack cannot be walked
// beyond it.
#ifndef LOTUS_TESTS_SIGNALS_WITHOUT_TABLES_HPP
#define LOTUS_TESTS_SIGNALS_WITHOUT_TABLES_HPP

/// Records a scope: "Shallow" if `depth` is 0, otherwise "Deep", which is `depth` times 3000 bytes
/// deeper on the stack.
void record_without_tables(int depth);

#endif  // LOTUS_TESTS_SIGNALS_WITHOUT_TABLES_HPP

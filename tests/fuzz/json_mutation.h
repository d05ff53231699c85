// Changes to an input that is JSON, at the places where its reader looks.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/base/fields.h"
#include "tests/fuzz/random.h"

namespace fuzz {

/// One change somewhere in the tree, in deep places as often as in shallow ones: a key or an
/// element deleted, added, exchanged or nested in itself, a number negated, scaled or made extreme,
/// a value of another type.
void mutate_tree(estimator::Json& tree, Random& random);

/// The text with one to three changes of its tree; of JSON Lines, in the tree of a line each. Text
/// that is no JSON stays as it is.
std::string mutate_json(std::string text, Random& random);

/// Writes the text in the place of an input, if it has `most_bytes` or fewer.
bool write_input(uint8_t* data, size_t most_bytes, const std::string& text);

/// JSON as the mutations write it: also of strings that are no UTF-8.
std::string write_json(const estimator::Json& tree);

/// LLVMFuzzerCustomMutator of a target whose inputs are JSON: mutate_json(), and now and then
/// libFuzzer's own mutations.
size_t mutate_json_input(uint8_t* data, size_t size, size_t most_bytes, unsigned seed);

}  // namespace fuzz

/// libFuzzer's own mutation of some bytes, in place: the size after it. driver.cpp has one too.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most_bytes);

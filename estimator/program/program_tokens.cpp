#include "estimator/program/program_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "estimator/base/units.h"
#include "estimator/replay/trace_replay.h"
#include "estimator/replay/work_bytes.h"

namespace estimator {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

/// No rank reads more in a step, and all ranks of a world together still fit into a number.
constexpr int64_t kMostTokens = int64_t{1} << 38;

int64_t at_most_all(double count) {
  return static_cast<int64_t>(std::min(count, static_cast<double>(kMostTokens)));
}

int64_t elements_of(const std::vector<int64_t>& shape) {
  double product = 1;
  for (const int64_t size : shape) product *= static_cast<double>(size);
  return at_most_all(product);
}

/// What one module or operator read in an iteration.
struct TokensRead {
  int64_t tokens = 0;
  int64_t tokens_of_call = 0;                                   ///< fewest
  int64_t most_elements = std::numeric_limits<int64_t>::max();  ///< of a call's activations
};

void add_calls(int64_t tokens, int64_t calls, TokensRead& read) {
  read.tokens_of_call = read.tokens == 0 ? tokens : std::min(tokens, read.tokens_of_call);
  read.tokens = at_most_all(static_cast<double>(read.tokens) +
                            static_cast<double>(calls) * static_cast<double>(tokens));
}

/// The most of what was read. Others are of other embeddings or modules, such as those of
/// positions, which have fewer inputs.
template <class Key>
std::optional<TokensRead> most_of(const std::map<Key, TokensRead>& found) {
  const auto most = std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second.tokens < b.second.tokens;
  });
  const bool is_sound =
      most != found.end() && most->second.tokens > 0 && most->second.tokens < kMostTokens;
  if (!is_sound) return std::nullopt;
  return most->second;
}

/// Whether the model sums the rows of many ids to one, as recommenders do: then its integers are
/// features and where they begin.
bool looks_up_bags(const Trace& trace) {
  return std::any_of(trace.works.begin(), trace.works.end(), [](const TraceWork& work) {
    return work.operator_name.starts_with("aten::_embedding_bag");
  });
}

std::optional<TokensRead> given_to_model(const Trace& trace) {
  if (looks_up_bags(trace)) return std::nullopt;
  std::map<int64_t, TokensRead> found;
  for (const TraceInput& input : trace.inputs) {
    add_calls(input.integers, input.calls, found[input.model]);
  }
  return most_of(found);
}

/// By an operator whose second tensor holds an integer for each token. It launches several kernels,
/// each of them once or more often in a call. Where the module is not known, the shapes tell its
/// calls apart. `has_width`: its first tensor has the activations.
std::optional<TokensRead> read_by(const char* operator_name, bool has_width, const Trace& trace) {
  using Call = std::tuple<int64_t, Shapes>;             // module, shapes
  std::map<Call, std::map<int64_t, int64_t>> launches;  // by work
  for (const TraceLaunch& launch : trace.launches()) {
    const TraceWork& work = trace.work_of(launch);
    if (work.operator_name != operator_name || work.shapes.size() < 2) continue;
    ++launches[{launch.module, work.shapes}][launch.item];
  }
  std::map<Call, TokensRead> found;
  for (const auto& [call, works] : launches) {
    const auto& [module, shapes] = call;
    const bool is_known = !trace.modules[static_cast<std::size_t>(module)].empty();
    TokensRead& read = found[{module, is_known ? Shapes() : shapes}];
    const auto least = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int64_t calls = std::min_element(works.begin(), works.end(), least)->second;
    add_calls(elements_of(shapes[1]), calls, read);
    if (has_width) read.most_elements = elements_of(shapes[0]);
  }
  return most_of(found);
}

std::optional<TokensRead> given_to_embedding(const Trace& trace) {
  return read_by("aten::embedding_dense_backward", true, trace);
}

std::optional<TokensRead> given_to_loss(const Trace& trace) {
  return read_by("aten::nll_loss_forward", false, trace);
}

/// Whether the words' embedding is frozen and another is trained, such as that of the virtual
/// tokens of a prompt, which the labels may count too: labels and model have more than twice as
/// many tokens.
bool is_of_other_tokens(const TokensRead& embedding, const Trace& trace) {
  const auto labels = given_to_loss(trace);
  const auto inputs = given_to_model(trace);
  return labels && inputs && std::min(labels->tokens, inputs->tokens) / 2 > embedding.tokens;
}

std::optional<TokensRead> given_to_words(const Trace& trace) {
  const auto embedding = given_to_embedding(trace);
  return embedding && !is_of_other_tokens(*embedding, trace) ? embedding : std::nullopt;
}

std::optional<TokensRead> given_to_model_of_a_prompt(const Trace& trace) {
  const auto embedding = given_to_embedding(trace);
  if (!embedding || !is_of_other_tokens(*embedding, trace)) return std::nullopt;
  const auto inputs = given_to_model(trace);
  return inputs->tokens <= given_to_loss(trace)->tokens ? inputs : std::nullopt;
}

struct TokenReader {
  const char* described;
  std::optional<TokensRead> (*tokens_read)(const Trace&);
};
constexpr const char* kOfModel = "the integer inputs of its model";
/// The surest first.
constexpr TokenReader kTokenReaders[] = {
    {"the integer inputs of its embedding", given_to_words},
    {kOfModel, given_to_model_of_a_prompt},
    {"the labels of its loss", given_to_loss},
    {kOfModel, given_to_model},
};

/// Ranks that have the same tokens, and what shows that.
struct Sharing {
  int64_t ranks = 1;
  const char* shown = "";
};

const char* shown_by(const TraceLaunch& launch,
                     const TraceWork& work,
                     const TokensRead& read,
                     bool is_of_all_ranks) {
  const int64_t elements = work.bytes / bytes_of_element(work.dtype);
  const bool sums = launch.direction == static_cast<int64_t>(Direction::kForward) &&
                    (work.name == "all_reduce" || work.name == "reduce_scatter");
  if (sums && elements >= read.tokens_of_call && elements <= read.most_elements) {
    return "which sum activations";
  }
  // To all ranks go buffers of modules, one of which may be as large.
  const bool hands_on =
      work.name == "broadcast" && !is_of_all_ranks && (work.dtype == "Long" || work.dtype == "Int");
  return hands_on && elements == read.tokens_of_call ? "of which one broadcasts them" : nullptr;
}

Sharing tensor_ranks(const RankProfile& rank, const TokensRead& read) {
  const Trace& trace = *rank.trace;
  Sharing sharing;
  for (const TraceLaunch& launch : trace.launches()) {
    const TraceWork& work = trace.work_of(launch);
    if (work.kind != WorkKind::kCollective) continue;
    const int64_t size =
        rank.program->communicators[static_cast<std::size_t>(work.communicator)].size;
    const char* const shown = shown_by(launch, work, read, size == rank.world_size);
    if (shown != nullptr && size > sharing.ranks) sharing = {.ranks = size, .shown = shown};
  }
  return sharing;
}

/// The ranks that hand messages on to each other, beginning with `rank`.
int64_t pipeline_ranks(const std::vector<const RankProfile*>& ranks, int64_t rank) {
  std::map<int64_t, std::set<int64_t>> neighbours;
  for (const RankProfile* profile : ranks) {
    for (const auto& [communicator, peers] : ranks_of_messages(*profile)) {
      for (const int64_t peer : peers) {
        neighbours[profile->rank].insert(peer);
        neighbours[peer].insert(profile->rank);
      }
    }
  }
  std::set<int64_t> reached = {rank};
  for (std::vector<int64_t> open = {rank}; !open.empty();) {
    const int64_t next = open.back();
    open.pop_back();
    for (const int64_t neighbour : neighbours[next]) {
      if (reached.insert(neighbour).second) open.push_back(neighbour);
    }
  }
  return static_cast<int64_t>(reached.size());
}

FoundTokens of_one_alone(const RankProfile& rank,
                         const TokensRead& read,
                         const TokenReader& reader) {
  return {.per_rank = read.tokens,
          .rank = rank.rank,
          .how = fmt::format("{} of rank {} alone, by {}: it joined no process group",
                             with_commas(read.tokens),
                             rank.rank,
                             reader.described)};
}

std::string explanation(const FoundTokens& found,
                        const TokenReader& reader,
                        const Sharing& tensor,
                        int64_t pipeline) {
  std::string text = fmt::format("{} of rank {}, by {}, x {} with tokens of their own",
                                 with_commas(found.per_rank),
                                 found.rank,
                                 reader.described,
                                 with_commas(found.replicas));
  if (tensor.ranks > 1) {
    text += fmt::format("; {} ranks share them, {}", tensor.ranks, tensor.shown);
  }
  if (pipeline > 1) text += fmt::format("; {} ranks share them as stages", pipeline);
  return text;
}

}  // namespace

bool trains_alone(const RankProfile& rank) {
  return rank.world_size > 1 && !rank.program->joins_world;
}

int64_t ranks_together(const RankProfile& rank) { return trains_alone(rank) ? 1 : rank.world_size; }

std::optional<FoundTokens> found_tokens(const std::vector<const RankProfile*>& ranks) {
  for (const TokenReader& reader : kTokenReaders) {
    for (const RankProfile* rank : ranks) {
      const auto read = reader.tokens_read(*rank->trace);
      if (!read) continue;
      if (trains_alone(*rank)) return of_one_alone(*rank, *read, reader);
      const Sharing tensor = tensor_ranks(*rank, *read);
      const int64_t pipeline = pipeline_ranks(ranks, rank->rank);
      if (rank->world_size % (tensor.ranks * pipeline) != 0) return std::nullopt;
      FoundTokens found{.per_rank = read->tokens,
                        .rank = rank->rank,
                        .replicas = rank->world_size / (tensor.ranks * pipeline)};
      found.how = explanation(found, reader, tensor, pipeline);
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace estimator

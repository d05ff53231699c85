#include "estimator/communication/nccl_tables.h"

#include <bit>
#include <string_view>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view nccl_json;
}

namespace estimator {

double NcclLatencies::at(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  const auto column = static_cast<std::size_t>(protocol);
  switch (algorithm) {
    case NcclAlgorithm::kTree:
      return tree.at(column);
    case NcclAlgorithm::kRing:
      return ring.at(column);
    case NcclAlgorithm::kCollNetDirect:
      return collnet_direct.at(column);
    case NcclAlgorithm::kCollNetChain:
      return collnet_chain.at(column);
    case NcclAlgorithm::kNvls:
      return nvls.at(column);
    case NcclAlgorithm::kNvlsTree:
      return nvls_tree.at(column);
    case NcclAlgorithm::kPat:
      return pat.at(column);
  }
  throw std::logic_error("unknown algorithm");
}

double NcclTreeCorrection::at(NcclAlgorithm algorithm, NcclProtocol protocol, int64_t bytes) const {
  if (bytes < 64) return 1;
  const auto row = static_cast<std::size_t>(std::bit_width(static_cast<uint64_t>(bytes) >> 6) - 1);
  const std::vector<double>& column = protocol == NcclProtocol::kLl      ? ll
                                      : protocol == NcclProtocol::kLl128 ? ll128
                                                                         : simple;
  const std::size_t rows = column.size() - (algorithm == NcclAlgorithm::kTree ? 1 : 0);
  return row < rows ? column[row] : 1;
}

const NcclGeneration& NcclTables::generation(int64_t compute_capability) const {
  const NcclGeneration* found = &generations.front();
  for (const NcclGeneration& row : generations) {
    if (compute_capability >= row.from_compute_capability) found = &row;
  }
  return *found;
}

const NcclTables& nccl_tables() {
  static const auto tables = read_document<NcclTables>(onerank_data::nccl_json, "nccl.json");
  return tables;
}

}  // namespace estimator

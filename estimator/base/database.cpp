#include "estimator/base/database.h"

#include <algorithm>
#include <cctype>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {

void read_document(std::string_view text,
                   const std::string& name,
                   void* value,
                   const FieldType& type) {
  FieldReader reader(name);
  reader.read(parse_json(text, name), value, type, "", {});
  reader.throw_if_any();
}

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](unsigned char letter) {
    return letter == ' ' || letter == '_' ? '-' : static_cast<char>(std::tolower(letter));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](unsigned char x, unsigned char y) {
    return plain(x) == plain(y);
  });
}

bool is_called(std::string_view wanted,
               std::string_view name,
               const std::vector<std::string>& aliases) {
  return same_name(wanted, name) ||
         std::any_of(aliases.begin(), aliases.end(), [&](const std::string& alias) {
           return same_name(wanted, alias);
         });
}

}  // namespace estimator

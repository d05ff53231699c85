#include "sim/cli/import/python/python_syntax.h"

#include <algorithm>
#include <string_view>

#include "estimator/base/contains.h"
#include "sim/cli/import/python/python_expressions.h"

namespace sim {
namespace {

using StatementKind = PythonStatement::Kind;
using TokenKind = PythonToken::Kind;
using PythonStatements = std::vector<PythonStatement>;

constexpr int kDeepestPythonBlock = 100;

class StatementReader {
 public:
  explicit StatementReader(PythonCursor& cursor) : cursor_(cursor) {}

  PythonStatements file() {
    PythonStatements statements;
    while (!cursor_.is_at(TokenKind::kEnd)) read_line(statements);
    return statements;
  }

 private:
  PythonStatement make(StatementKind kind) const {
    return {.kind = kind, .line = cursor_.now().line};
  }

  /// Statements that ";" divides, or one with blocks.
  void read_line(PythonStatements& into) {
    if (cursor_.is_at(TokenKind::kNewLine)) return void(cursor_.take());
    if (cursor_.now().is("@")) return skip_line();
    if (reads_block(into)) return;
    do {
      if (cursor_.is_at(TokenKind::kNewLine)) break;
      into.push_back(simple());
    } while (cursor_.accept(";"));
    end_line();
  }

  void end_line() {
    if (cursor_.is_at(TokenKind::kEnd)) return;
    if (!cursor_.is_at(TokenKind::kNewLine))
      cursor_.refuse("\"" + cursor_.now().text + "\" ends no statement");
    cursor_.take();
  }

  void skip_line() {
    while (!cursor_.is_at(TokenKind::kNewLine) && !cursor_.is_at(TokenKind::kEnd)) cursor_.take();
    cursor_.take();
  }

  bool reads_block(PythonStatements& into) {
    cursor_.accept("async");
    if (cursor_.accept("def")) return into.push_back(function()), true;
    if (cursor_.accept("class")) return into.push_back(class_of()), true;
    if (cursor_.accept("if")) return into.push_back(condition()), true;
    if (cursor_.accept("for")) return into.push_back(loop()), true;
    if (cursor_.accept("try")) return into.push_back(attempt()), true;
    if (!cursor_.now().is("while") && !cursor_.now().is("with")) return false;
    into.push_back(unread_block());
    return true;
  }

  PythonStatements block() {
    cursor_.expect(":");
    PythonStatements statements;
    if (!cursor_.is_at(TokenKind::kNewLine)) {
      read_line(statements);
      return statements;
    }
    if (++depth_ > kDeepestPythonBlock) cursor_.refuse("blocks are nested too deeply");
    cursor_.take();
    if (!cursor_.is_at(TokenKind::kIndent)) cursor_.refuse("a block is needed here");
    cursor_.take();
    while (!cursor_.is_at(TokenKind::kDedent) && !cursor_.is_at(TokenKind::kEnd))
      read_line(statements);
    cursor_.take();
    --depth_;
    return statements;
  }

  PythonStatement function() {
    PythonStatement whole = make(StatementKind::kFunction);
    whole.text = cursor_.take().text;
    cursor_.expect("(");
    while (!cursor_.accept(")")) {
      read_parameter(whole.parameters);
      if (!cursor_.now().is(")")) cursor_.expect(",");
    }
    if (cursor_.accept("->")) read_python_expression(cursor_);
    whole.body = block();
    return whole;
  }

  /// A sign alone divides those that are given by name.
  void read_parameter(std::vector<PythonParameter>& into) {
    if (cursor_.accept("/")) return;
    const bool takes_all = cursor_.accept("**") || cursor_.accept("*");
    if (!cursor_.is_at(TokenKind::kName)) return;
    PythonParameter parameter = {.name = cursor_.take().text, .takes_all = takes_all};
    if (cursor_.accept(":")) read_python_expression(cursor_);
    if (cursor_.accept("=")) parameter.otherwise.push_back(read_python_expression(cursor_));
    into.push_back(std::move(parameter));
  }

  PythonStatement class_of() {
    PythonStatement whole = make(StatementKind::kClass);
    whole.text = cursor_.take().text;
    if (cursor_.accept("(")) read_bases(whole.expressions);
    whole.body = block();
    return whole;
  }

  void read_bases(std::vector<PythonExpression>& into) {
    while (!cursor_.accept(")")) {
      const bool is_named = cursor_.next().is("=");
      if (is_named) cursor_.take(), cursor_.take();
      PythonExpression base = read_python_expression(cursor_);
      if (!is_named) into.push_back(std::move(base));
      if (!cursor_.now().is(")")) cursor_.expect(",");
    }
  }

  PythonStatement condition() {
    PythonStatement whole = make(StatementKind::kIf);
    whole.expressions.push_back(read_python_expression(cursor_));
    whole.body = block();
    if (cursor_.accept("elif")) {
      if (++depth_ > kDeepestPythonBlock) cursor_.refuse("blocks are nested too deeply");
      whole.otherwise.push_back(condition());
      --depth_;
    } else if (cursor_.accept("else")) {
      whole.otherwise = block();
    }
    return whole;
  }

  PythonStatement loop() {
    PythonStatement whole = make(StatementKind::kFor);
    whole.text = cursor_.now().text;
    const bool is_name = cursor_.is_at(TokenKind::kName) && cursor_.next().is("in");
    while (!cursor_.now().is("in") && !cursor_.is_at(TokenKind::kEnd)) cursor_.take();
    cursor_.expect("in");
    whole.expressions.push_back(read_python_expression(cursor_, true));
    whole.body = block();
    if (cursor_.accept("else")) whole.otherwise = block();
    if (!is_name || !whole.otherwise.empty()) whole.kind = StatementKind::kOther;
    return whole;
  }

  PythonStatement attempt() {
    PythonStatement whole = make(StatementKind::kTry);
    whole.body = block();
    while (cursor_.now().is("except") || cursor_.now().is("else") || cursor_.now().is("finally")) {
      const bool handles = cursor_.take().is("except");
      while (!cursor_.now().is(":") && !cursor_.is_at(TokenKind::kEnd)) cursor_.take();
      PythonStatements statements = block();
      if (handles && whole.otherwise.empty()) whole.otherwise = std::move(statements);
    }
    return whole;
  }

  PythonStatement unread_block() {
    PythonStatement whole = make(StatementKind::kOther);
    whole.text = cursor_.take().text;
    while (!cursor_.now().is(":") && !cursor_.is_at(TokenKind::kEnd)) cursor_.take();
    whole.body = block();
    return whole;
  }

  PythonStatement simple() {
    if (cursor_.now().is("import") || cursor_.now().is("from")) return imports();
    if (cursor_.accept("return")) return result();
    if (cursor_.now().is("raise")) return rest_of_line(StatementKind::kRaise);
    constexpr std::string_view kUnread[] = {
        "pass", "assert", "del", "global", "nonlocal", "yield", "break", "continue", "type"};
    const bool is_unread =
        cursor_.is_at(TokenKind::kName) && estimator::contains(kUnread, cursor_.now().text);
    const bool is_word =
        is_unread && !cursor_.next().is("=") && !cursor_.next().is(".") && !cursor_.next().is("(");
    return is_word ? rest_of_line(StatementKind::kOther) : assignment();
  }

  PythonStatement rest_of_line(StatementKind kind) {
    PythonStatement whole = make(kind);
    whole.text = cursor_.now().text;
    while (!cursor_.is_at(TokenKind::kNewLine) && !cursor_.now().is(";") &&
           !cursor_.is_at(TokenKind::kEnd))
      cursor_.take();
    return whole;
  }

  PythonStatement result() {
    PythonStatement whole = make(StatementKind::kReturn);
    const bool has_value = !cursor_.is_at(TokenKind::kNewLine) && !cursor_.is_at(TokenKind::kEnd);
    if (has_value) whole.expressions.push_back(read_python_expression(cursor_, true));
    return whole;
  }

  PythonStatement assignment() {
    PythonStatement whole = make(StatementKind::kExpression);
    whole.expressions.push_back(read_python_expression(cursor_, true));
    if (cursor_.accept(":")) return annotated(std::move(whole));
    const std::string sign = cursor_.now().text;
    if (cursor_.is_at(TokenKind::kSign) && sign.size() > 1 && sign.back() == '=') {
      whole.kind = StatementKind::kAddTo;
      whole.text = sign.substr(0, sign.size() - 1);
      cursor_.take();
      whole.expressions.push_back(read_python_expression(cursor_, true));
    }
    while (cursor_.accept("=")) {
      whole.kind = StatementKind::kAssign;
      whole.expressions.push_back(read_python_expression(cursor_, true));
    }
    return whole;
  }

  /// name: type = value; without a value it says nothing.
  PythonStatement annotated(PythonStatement whole) {
    read_python_expression(cursor_);
    whole.kind = StatementKind::kOther;
    if (!cursor_.accept("=")) return whole;
    whole.kind = StatementKind::kAssign;
    whole.expressions.push_back(read_python_expression(cursor_, true));
    return whole;
  }

  std::string dotted_name() {
    std::string name;
    while (cursor_.now().is(".") || cursor_.now().is("...") ||
           (cursor_.is_at(TokenKind::kName) && !cursor_.now().is("import") &&
            !cursor_.now().is("as"))) {
      name += cursor_.take().text;
    }
    return name;
  }

  PythonStatement imports() {
    PythonStatement whole = make(StatementKind::kImport);
    const bool is_from = cursor_.take().is("from");
    const std::string module = is_from ? dotted_name() : "";
    if (is_from) cursor_.expect("import");
    const bool has_brackets = cursor_.accept("(");
    do {
      if (cursor_.now().is(")") || cursor_.accept("*")) break;
      whole.imports.push_back(is_from ? imported_name(module) : imported_module());
    } while (cursor_.accept(","));
    if (has_brackets) cursor_.expect(")");
    return whole;
  }

  PythonImport imported_name(const std::string& module) {
    PythonImport read = {.module = module, .name = cursor_.take().text};
    read.as_name = cursor_.accept("as") ? cursor_.take().text : read.name;
    return read;
  }

  /// `import a.b` gives the name a, `import a.b as c` the name c.
  PythonImport imported_module() {
    PythonImport read = {.module = dotted_name()};
    const bool is_renamed = cursor_.accept("as");
    if (!is_renamed) read.module.erase(std::min(read.module.find('.'), read.module.size()));
    read.as_name = is_renamed ? cursor_.take().text : read.module;
    return read;
  }

  PythonCursor& cursor_;
  int depth_ = 0;
};

}  // namespace

std::vector<PythonStatement> read_python(const std::string& text, const std::string& origin) {
  PythonCursor cursor(python_tokens(text, origin), origin);
  return StatementReader(cursor).file();
}

}  // namespace sim

//! The grammar of CEL, read from the left; each rule returns what its part yields.

use super::kinds::{Kind, Names};
use super::tokens::Token;

/// How deep brackets may be nested.
const MAX_DEPTH: usize = 60;

type Outcome = Result<Kind, String>;

/// What an expression yields.
pub fn kind(tokens: &[Token<'_>], names: Names) -> Outcome {
    let mut parser = Parser { tokens, at: 0, names, items: Vec::new(), depth: 0 };
    let kind = parser.expression()?;
    match parser.peek() {
        None => Ok(kind),
        Some(token) => Err(format!("{} does not go on after a complete expression", describe(token))),
    }
}

struct Parser<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    names: Names,
    /// The names of items in the comprehensions around here.
    items: Vec<&'a str>,
    depth: usize,
}

fn describe(token: Token<'_>) -> String {
    match token {
        Token::Name(name) => format!("{name:?}"),
        Token::Sign(sign) => format!("{sign:?}"),
        Token::Number => "a number".into(),
        Token::Text | Token::Bytes => "a text".into(),
    }
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<Token<'a>, String> {
        let token = self.peek().ok_or("it ends too early")?;
        self.at += 1;
        Ok(token)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if next == sign);
        self.at += usize::from(found);
        found
    }

    fn accept_any(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        signs.iter().find(|sign| self.accept(sign)).copied()
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.accept(sign) {
            return Ok(());
        }
        match self.peek() {
            Some(token) => Err(format!("there is {} where {sign:?} should be", describe(token))),
            None => Err(format!("it ends where {sign:?} should be")),
        }
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            token => Err(format!("there is {} where a name should be", describe(token))),
        }
    }

    fn expression(&mut self) -> Outcome {
        if self.depth >= MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let result = self.choice();
        self.depth -= 1;
        result
    }

    fn choice(&mut self) -> Outcome {
        let condition = self.any_of()?;
        if !self.accept("?") {
            return Ok(condition);
        }
        require(condition, Kind::Bool)?;
        let yes = self.any_of()?;
        self.expect(":")?;
        let no = self.expression()?;
        match (yes, no) {
            (yes, no) if yes == no => Ok(yes),
            (Kind::Unknown, other) | (other, Kind::Unknown) => Ok(other),
            (yes, no) if yes.is_simple() || no.is_simple() => {
                Err(format!("a choice yields {yes} or else {no}"))
            }
            _ => Ok(Kind::Unknown),
        }
    }

    fn any_of(&mut self) -> Outcome {
        let mut kind = self.all_of()?;
        while self.accept("||") {
            require(kind, Kind::Bool)?;
            require(self.all_of()?, Kind::Bool)?;
            kind = Kind::Bool;
        }
        Ok(kind)
    }

    fn all_of(&mut self) -> Outcome {
        let mut kind = self.comparison()?;
        while self.accept("&&") {
            require(kind, Kind::Bool)?;
            require(self.comparison()?, Kind::Bool)?;
            kind = Kind::Bool;
        }
        Ok(kind)
    }

    fn comparison(&mut self) -> Outcome {
        let mut kind = self.sum()?;
        loop {
            if self.peek() == Some(Token::Name("in")) {
                self.at += 1;
                let among = self.sum()?;
                if !among.may_be(Kind::List) && !among.may_be(Kind::Map) {
                    return Err(format!("nothing is in {among}"));
                }
            } else if let Some(sign) = self.accept_any(&["==", "!=", "<=", ">=", "<", ">"]) {
                let other = self.sum()?;
                if kind != other && kind.is_simple() && other.is_simple() {
                    return Err(format!("{sign} compares {kind} with {other}"));
                }
            } else {
                return Ok(kind);
            }
            kind = Kind::Bool;
        }
    }

    fn sum(&mut self) -> Outcome {
        let mut kind = self.product()?;
        while let Some(sign) = self.accept_any(&["+", "-"]) {
            let other = self.product()?;
            kind = arithmetic(sign, kind, other)?;
        }
        Ok(kind)
    }

    fn product(&mut self) -> Outcome {
        let mut kind = self.unary()?;
        while let Some(sign) = self.accept_any(&["*", "/", "%"]) {
            let other = self.unary()?;
            kind = arithmetic(sign, kind, other)?;
        }
        Ok(kind)
    }

    fn unary(&mut self) -> Outcome {
        let sign = self.accept_any(&["!", "-"]);
        if let Some(sign) = sign {
            while self.accept(sign) {}
        }
        let kind = self.member()?;
        match sign {
            Some("!") => require(kind, Kind::Bool),
            Some(_) => require(kind, Kind::Number),
            None => Ok(kind),
        }
    }

    fn member(&mut self) -> Outcome {
        let mut kind = self.primary()?;
        loop {
            if self.accept(".") {
                let name = self.name()?;
                kind = if self.accept("(") {
                    self.method(name)?
                } else {
                    kind.field(name).ok_or_else(|| format!("{kind} has no field {name:?}"))?
                };
            } else if self.accept("[") {
                self.expression()?;
                self.expect("]")?;
                kind = Kind::Unknown;
            } else {
                return Ok(kind);
            }
        }
    }

    fn method(&mut self, name: &'a str) -> Outcome {
        if let Some(kind) = self.names.comprehension(name) {
            let item = self.name()?;
            self.expect(",")?;
            self.items.push(item);
            let result = self.arguments();
            self.items.pop();
            result?;
            return Ok(kind);
        }
        let kind =
            self.names.method(name).ok_or_else(|| format!("there is no function {name:?} on values"))?;
        if !self.accept(")") {
            self.arguments()?;
        }
        Ok(kind)
    }

    /// One or more arguments and the bracket after them.
    fn arguments(&mut self) -> Result<(), String> {
        self.expression()?;
        while self.accept(",") {
            self.expression()?;
        }
        self.expect(")")
    }

    fn primary(&mut self) -> Outcome {
        self.accept(".");
        match self.next()? {
            Token::Number => Ok(Kind::Number),
            Token::Text => Ok(Kind::Text),
            Token::Bytes => Ok(Kind::Bytes),
            Token::Name("true" | "false") => Ok(Kind::Bool),
            Token::Name("null") => Ok(Kind::Null),
            Token::Name("in") => Err("\"in\" has nothing before it".into()),
            Token::Name(name) => self.named(name),
            Token::Sign("(") => {
                let kind = self.expression()?;
                self.expect(")")?;
                Ok(kind)
            }
            Token::Sign("[") => {
                self.entries("]", |parser| parser.expression().map(|_| ()))?;
                Ok(Kind::List)
            }
            Token::Sign("{") => {
                self.entries("}", |parser| {
                    parser.expression()?;
                    parser.expect(":")?;
                    parser.expression().map(|_| ())
                })?;
                Ok(Kind::Map)
            }
            token => Err(format!("{} does not start anything", describe(token))),
        }
    }

    /// Entries between commas up to a bracket, perhaps with a comma after the last.
    fn entries(
        &mut self,
        end: &str,
        mut entry: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        while !self.accept(end) {
            entry(self)?;
            if !self.accept(",") {
                return self.expect(end);
            }
        }
        Ok(())
    }

    /// A function, an object or a variable, which all start with a name.
    fn named(&mut self, name: &'a str) -> Outcome {
        if self.accept("(") {
            let kind = self.names.function(name).ok_or_else(|| format!("there is no function {name:?}"))?;
            self.arguments()?;
            return Ok(kind);
        }
        if let Some((type_name, length)) = self.type_name(name) {
            self.at += length;
            return self.object(&type_name);
        }
        if self.items.contains(&name) {
            return Ok(Kind::Unknown);
        }
        self.names.variable(name).ok_or_else(|| format!("there is nothing called {name:?}"))
    }

    /// The name of a type, dots and all, and how many words it has beyond the first, if an object starts here.
    fn type_name(&self, first: &str) -> Option<(String, usize)> {
        let mut name = first.to_owned();
        let mut rest = self.tokens.get(self.at..).unwrap_or_default();
        let mut length = 0;
        while let [Token::Sign("."), Token::Name(step), after @ ..] = rest {
            // The names of types are short; what is longer is a path of fields.
            if length > 8 {
                return None;
            }
            name = format!("{name}.{step}");
            rest = after;
            length += 2;
        }
        matches!(rest.first(), Some(Token::Sign("{"))).then_some((name, length + 1))
    }

    fn object(&mut self, type_name: &str) -> Outcome {
        let kind = self.names.object(type_name).ok_or_else(|| format!("there is no type {type_name:?}"))?;
        self.entries("}", |parser| {
            let field = parser.name()?;
            parser.expect(":")?;
            let value = parser.expression()?;
            let wanted = kind.field(field).ok_or_else(|| format!("{type_name} has no field {field:?}"))?;
            if value.may_be(wanted) || value == Kind::Null || !(value.is_simple() || wanted.is_simple()) {
                return Ok(());
            }
            Err(format!("{field} of {type_name} is {wanted}, not {value}"))
        })?;
        Ok(kind)
    }
}

fn require(kind: Kind, wanted: Kind) -> Outcome {
    if kind.may_be(wanted) { Ok(wanted) } else { Err(format!("there is {kind} where {wanted} should be")) }
}

fn arithmetic(sign: &str, one: Kind, other: Kind) -> Outcome {
    let fits = |kind: Kind| match kind {
        Kind::Number | Kind::Unknown => true,
        Kind::Text | Kind::Bytes | Kind::List => sign == "+",
        _ => false,
    };
    match (one, other) {
        (one, other) if !fits(one) || !fits(other) => {
            Err(format!("{sign} does not go with {one} and {other}"))
        }
        (Kind::Unknown, other) => Ok(other),
        (one, Kind::Unknown) => Ok(one),
        (one, other) if one == other => Ok(one),
        (one, other) => Err(format!("{sign} does not go with {one} and {other}")),
    }
}

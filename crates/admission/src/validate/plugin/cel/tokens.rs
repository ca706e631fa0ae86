//! The words of a CEL expression.

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The name of a variable, field, function or type.
    Name(&'a str),
    /// A whole or decimal number.
    Number,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Longer ones first, so that `<=` is not read as `<` and `=`.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "?", ":", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ",", ".", "=",
];

/// Words that stand for nothing yet.
const RESERVED: [&str; 16] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
];

/// Takes an expression apart.
pub fn read(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = skip_space(rest);
        let Some(first) = rest.bytes().next() else { return Ok(tokens) };
        let (token, length) = if let Some(found) = quoted(rest)? {
            found
        } else if first.is_ascii_alphabetic() || first == b'_' {
            name(rest)?
        } else if first.is_ascii_digit()
            || (first == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit))
        {
            (Token::Number, number_length(rest)?)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(format!("there is no meaning in {:?}", rest.chars().next().unwrap_or_default()));
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default();
    }
}

fn skip_space(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(comment) = text.strip_prefix("//") {
        text = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    text
}

fn name(text: &str) -> Result<(Token<'_>, usize), String> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let name = text.get(..length).unwrap_or_default();
    if RESERVED.contains(&name) || name == "while" {
        return Err(format!("the word {name} is reserved"));
    }
    Ok((Token::Name(name), length))
}

/// The length of a number: hexadecimal, whole or decimal, perhaps with an exponent or the `u` of unsigned ones.
fn number_length(text: &str) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default().to_ascii_lowercase();
    let mut length;
    if at(0) == b'0' && at(1) == b'x' {
        length = 2 + bytes.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
    } else {
        length = digits(0);
        if at(length) == b'.' && digits(length + 1) > 0 {
            length += 1 + digits(length + 1);
        }
        if at(length) == b'e' {
            let sign = usize::from(matches!(at(length + 1), b'+' | b'-'));
            length += 1 + sign + digits(length + 1 + sign);
        }
    }
    if at(length) == b'u' {
        length += 1;
    }
    if at(length).is_ascii_alphanumeric() || at(length) == b'_' {
        return Err("a number runs into a word".into());
    }
    Ok(length)
}

/// A text or bytes, with its length, if one starts here.
fn quoted(text: &str) -> Result<Option<(Token<'_>, usize)>, String> {
    let prefix = text.bytes().take(3).take_while(u8::is_ascii_alphabetic).count();
    let (kinds, body) = text.split_at_checked(prefix).unwrap_or_default();
    let kinds = kinds.to_ascii_lowercase();
    let Some(quote @ ('"' | '\'')) = body.chars().next() else { return Ok(None) };
    if !["", "r", "b", "br", "rb"].contains(&kinds.as_str()) {
        return Ok(None);
    }
    let triple = quote.to_string().repeat(3);
    let mark = if body.starts_with(&triple) { triple } else { quote.to_string() };
    let inside = body.get(mark.len()..).unwrap_or_default();
    let length = inside_length(inside, &mark, kinds.contains('r'))?;
    let token = if kinds.contains('b') { Token::Bytes } else { Token::Text };
    Ok(Some((token, prefix + 2 * mark.len() + length)))
}

/// The length of what stands between two quotation marks.
fn inside_length(inside: &str, mark: &str, raw: bool) -> Result<usize, String> {
    let mut escaped = false;
    for (at, letter) in inside.char_indices() {
        if escaped {
            if !raw && !"abfnrtv\\?\"'`xXuU01234567".contains(letter) {
                return Err(format!("\\{letter} is not an escape"));
            }
            escaped = false;
        } else if letter == '\\' {
            escaped = !raw;
        } else if inside.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
            return Ok(at);
        } else if matches!(letter, '\n' | '\r') && mark.len() == 1 {
            break;
        }
    }
    Err("a text has no end".into())
}

//! Manifests that users give to commands, in a file or on standard input.

use std::io::Read as _;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The one object of a file; `-` is standard input.
pub fn read(path: &str) -> Result<Value> {
    let mut text = String::new();
    if path == "-" {
        std::io::stdin().read_to_string(&mut text).context("error reading from stdin")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("error reading file {path}"))?;
    }
    parse(&text).with_context(|| if path == "-" { "standard input".to_owned() } else { path.to_owned() })
}

/// The one object of a text in YAML or JSON.
pub fn parse(text: &str) -> Result<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).context("error decoding: neither YAML nor JSON")?;
    let mut documents = documents.into_iter().filter(|document| !document.is_null());
    match (documents.next(), documents.count()) {
        (Some(one), 0) if one.is_object() => Ok(one),
        (Some(_), 0) => bail!("error decoding: it is not an object"),
        (Some(_), more) => bail!("one object is expected, and there are {}", more + 1),
        (None, _) => bail!("error decoding: it is empty"),
    }
}

/// Makes sure that an object is of this kind; one that does not say is taken for it.
pub fn expect(object: &Value, kind: &str) -> Result<()> {
    match object["kind"].as_str() {
        None | Some("") => Ok(()),
        Some(found) if found == kind => Ok(()),
        Some(found) => bail!("error decoding {kind}: it is a {found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_is_read() {
        for text in ["a: b", "---\na: b\n---\n", "{\"a\": \"b\"}", "# words\n---\na: b"] {
            assert_eq!(parse(text).unwrap()["a"], "b", "{text}");
        }
        for (text, problem) in [
            ("", "it is empty"),
            ("a: b\n---\nc: d", "one object is expected, and there are 2"),
            ("- a", "not an object"),
            ("{", "neither YAML nor JSON"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(problem), "{error}");
        }
        assert!(expect(&serde_json::json!({ "kind": "Pod" }), "VirtualMachine").is_err());
        assert!(expect(&serde_json::json!({}), "VirtualMachine").is_ok());
    }
}

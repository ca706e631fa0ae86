//! The address to upload to.

use anyhow::{Context as _, Result};
use http::{Method, StatusCode, Uri};

use crate::failure::Failure;
use crate::transfer::Client;
use crate::transfer::upload::authorization;

/// Where the image is taken and stored afterwards.
const ASYNC: &str = "/v1beta1/upload-async";
/// Where the answer comes only after the image is stored; for older importers.
const SYNC: &str = "/v1beta1/upload";

/// An address that says nothing else is a secure one.
pub fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("https://{url}") }
}

/// The address with the path for uploads, which may be in it already.
fn with_path(base: &str, path: &str) -> String {
    if base.contains(path) { base.to_owned() } else { format!("{}{path}", base.trim_end_matches('/')) }
}

/// The newer address if the proxy has it, or else the older one.
pub async fn address(client: &Client, base: &str, token: &str) -> Result<Uri> {
    let parsed = |url: String| url.parse::<Uri>().with_context(|| format!("{url} is not an address"));
    let newer = parsed(with_path(base, ASYNC))?;
    let answer = client.ask(Method::HEAD, &newer, &authorization(token)).await.map_err(|error| {
        let next = "--uploadproxy-url names another address; --insecure accepts a certificate that is not known here.";
        Failure::new(format!("the upload proxy does not answer: {error}"), next)
    });
    match answer?.status() {
        StatusCode::OK => Ok(newer),
        _ => parsed(with_path(base, SYNC)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        assert_eq!(with_scheme("host"), "https://host");
        assert_eq!(with_scheme("http://host:8080"), "http://host:8080");
        assert_eq!(with_path("https://h", ASYNC), "https://h/v1beta1/upload-async");
        assert_eq!(with_path("https://h/sub/", SYNC), "https://h/sub/v1beta1/upload");
        assert_eq!(with_path("https://h/v1beta1/upload-async", ASYNC), "https://h/v1beta1/upload-async");
    }
}

//! Requests that no virtctl makes, made as any program can.

use anyhow::{Result, bail};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use test_kit::Test;

/// What a request comes to: the answer, or the code and the words of a refusal.
pub type Answer = Result<String, (u16, String)>;

/// Asks as whoever the client is.
pub async fn answer(client: &Client, method: &Method, path: &str, body: &Value) -> Result<Answer> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind).body(text)?;
    match client.request_text(request).await {
        Ok(answer) => Ok(Ok(answer)),
        Err(kube::Error::Api(status)) => Ok(Err((status.code, status.message.clone()))),
        Err(error) => Err(error.into()),
    }
}

/// Asks for a subresource in the namespace of the test.
async fn ask(test: &Test, method: &Method, rest: &str, body: &Value) -> Result<Answer> {
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{}/{rest}", test.namespace());
    answer(&test.client(), method, &path, body).await
}

/// Asks for what must be granted.
pub async fn granted(test: &Test, method: Method, rest: &str, body: Value) -> Result<String> {
    match ask(test, &method, rest, &body).await? {
        Ok(answer) => Ok(answer),
        Err((code, words)) => bail!("{rest} {body}: {code} {words}"),
    }
}

/// Asks for what must be refused, with this code and these words among others.
pub async fn refused(
    test: &Test,
    (method, rest, body): (Method, &str, Value),
    code: u16,
    words: &str,
) -> Result<()> {
    match ask(test, &method, rest, &body).await? {
        Err((found, said)) if found == code && said.contains(words) => Ok(()),
        Err((found, said)) => bail!("{rest} {body}: {found} {said:?}, not {code} {words:?}"),
        Ok(answer) => bail!("{rest} {body} should be refused, but the answer is {answer:?}"),
    }
}

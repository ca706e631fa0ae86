//! Requests that no virtctl makes, made as any program can.

use anyhow::{Result, bail};
use http::{Method, Request};
use serde_json::Value;
use test_kit::Test;

/// Asks for a subresource in the namespace of the test; the answer, or the code and the words of a refusal.
async fn ask(test: &Test, method: Method, rest: &str, body: &Value) -> Result<Result<String, (u16, String)>> {
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{}/{rest}", test.namespace());
    let text = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    match test.client().request_text(request.body(text)?).await {
        Ok(answer) => Ok(Ok(answer)),
        Err(kube::Error::Api(status)) => Ok(Err((status.code, status.message.clone()))),
        Err(error) => Err(error.into()),
    }
}

/// Asks for what must be granted.
pub async fn granted(test: &Test, method: Method, rest: &str, body: Value) -> Result<String> {
    match ask(test, method, rest, &body).await? {
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
    match ask(test, method, rest, &body).await? {
        Err((found, said)) if found == code && said.contains(words) => Ok(()),
        Err((found, said)) => bail!("{rest} {body}: {found} {said:?}, not {code} {words:?}"),
        Ok(answer) => bail!("{rest} {body} should be refused, but the answer is {answer:?}"),
    }
}

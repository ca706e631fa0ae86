//! Who may ask: the client's certificate must carry the right name.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kubevirt_api::names::components::certificate_names;
use kubevirt_component::serve::Peer;

use super::answers::Refusal;

/// Whose word counts, beyond that the installation's authority vouches for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The client of handlers, which is virt-api.
    #[default]
    Named,
    /// Everyone: certificates come from elsewhere, with names of their own.
    ExternallyManaged,
}

/// Lets through whom we trust. TLS has verified the certificate by then.
pub(super) async fn check(trust: Trust, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>();
    let name = peer.map(Peer::common_name);
    match judge(trust, name.as_ref().map(Option::as_deref)) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            tracing::warn!(address = ?peer.map(|peer| peer.address), ?name, "refused a client");
            refusal.into_response()
        }
    }
}

/// `name` is that of the certificate, if there is one and it has one.
fn judge(trust: Trust, name: Option<Option<&str>>) -> Result<(), Refusal> {
    let refused = |why: String| Err(Refusal::new(StatusCode::FORBIDDEN, why));
    match (trust, name) {
        (_, None) => refused("no client certificate is known".into()),
        (Trust::ExternallyManaged, Some(_)) => Ok(()),
        (Trust::Named, Some(Some(certificate_names::HANDLER_CLIENT))) => Ok(()),
        (Trust::Named, Some(name)) => {
            refused(format!("common name is invalid, got {}", name.unwrap_or("none")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_name_is_let_through() {
        let good = Some(Some(certificate_names::HANDLER_CLIENT));
        assert!(judge(Trust::Named, good).is_ok());
        for bad in [
            None,
            Some(None),
            Some(Some("")),
            Some(Some(certificate_names::HANDLER_SERVER)),
            Some(Some("kubevirt.io:system:client:migration")),
        ] {
            assert!(judge(Trust::Named, bad).is_err(), "{bad:?}");
        }
        assert!(judge(Trust::ExternallyManaged, Some(Some("anything"))).is_ok());
        assert!(judge(Trust::ExternallyManaged, None).is_err());
    }
}

//! Questions that launchers answer.

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::IntoResponse;

use super::Shared;
use super::answers::{Answer, Refusal, json};
use super::parameters::{Subject, flag};

/// Questions whose answer is JSON.
macro_rules! questions {
    ($($(#[doc = $doc:literal])+ $name:ident;)*) => {
        $($(#[doc = $doc])+
        pub(super) async fn $name(State(desk): State<Shared>, Path(subject): Path<Subject>) -> Answer {
            let (vmi, launcher) = desk.launcher(&subject)?;
            json(launcher.$name(&vmi).await?)
        })*
    };
}

questions! {
    /// What the guest's agent says of its system.
    guest_info;
    /// Who is logged in.
    users;
    /// The guest's file systems.
    filesystems;
    /// Who the host is, for SEV.
    sev_certificates;
    /// What was loaded into the guest, for SEV.
    sev_measurement;
}

/// A picture of the display.
pub(super) async fn screenshot(State(desk): State<Shared>, Path(subject): Path<Subject>, uri: Uri) -> Answer {
    let (vmi, launcher) = desk.launcher(&subject)?;
    let (mime, image) = launcher.screenshot(&vmi, flag(&uri, "moveCursor")?).await?;
    let mime = HeaderValue::try_from(&mime)
        .map_err(|_| Refusal::failed(format!("{mime:?} is no type of an image")))?;
    Ok(([(CONTENT_TYPE, mime)], image).into_response())
}

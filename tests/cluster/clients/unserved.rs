//! Commands for servers that this cluster lacks: it is said what is missing, and what to do.

use std::fs;

use anyhow::{Context, Result, ensure};
use test_kit::KUBEVIRT;

use super::client::Client;
use crate::machines::manifest::{idle, machine};
use crate::machines::storage;

#[tokio::test]
async fn what_the_cluster_lacks_is_told() -> Result<()> {
    KUBEVIRT
        .run("unserved", async |test| {
            let folder = storage::folder(test, "files")?;
            let path = |name: &str| folder.join(name).into_os_string().into_string().ok().context("no text");
            let (image, output) = (path("disk.img")?, path("export.img")?);
            storage::image(image.as_ref(), "an image")?;
            test.apply(&machine("vm", "Halted", idle())).await?;
            storage::claim_folder(test, "claim", "").await?;

            let upload = ["image-upload", "dv", "data", "--size=1Gi", "--image-path", &image];
            let export =
                ["vmexport", "download", "export", "--vm=vm", "--readiness-timeout=3s", "--output", &output];
            let look = ["guestfs", "claim"];
            for (arguments, missing, next) in [
                (&upload[..], "no containerized data importer", "Install it first"),
                (&export, "is not ready", "Nobody in the cluster looks after exports"),
                (&look, "guestfs image", "Name an image"),
            ] {
                let said = Client::Ours.fail(test, arguments)?;
                ensure!(said.contains(missing) && said.contains(next), "{arguments:?}: {said}");
            }
            ensure!(fs::metadata(&output).is_err(), "a file is left of what could not be had");
            storage::release(test, &["claim"])
        })
        .await
}

//! What belongs to whom: references to owners, and names that follow from them.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::context::Context;

/// The reference by which an object says that `owner` controls it.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Asks the API server itself whether an owner is still the one that was seen, and stays. A store that has not heard of
/// its end yet must not take anything over for it.
pub async fn is_there<K>(context: &Context, owner: &K) -> kube::Result<bool>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + Debug,
{
    let api = context.api::<K>(&owner.namespace().unwrap_or_default());
    let fresh = api.get_metadata_opt(&owner.name_any()).await?;
    Ok(fresh.is_some_and(|fresh| {
        fresh.metadata.uid == owner.meta().uid && fresh.metadata.deletion_timestamp.is_none()
    }))
}

/// Five letters that follow from an owner and a number: who makes the same thing twice gets the same name twice.
pub fn suffix(uid: &str, number: u64) -> String {
    // Without vowels, as Kubernetes does it, so that no words come out.
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = ring::digest::digest(&ring::digest::SHA256, format!("{uid}/{number}").as_bytes());
    let letters = digest.as_ref().iter().take(5);
    letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn suffixes_repeat_only_for_the_same() {
        assert_eq!(suffix("a", 1), suffix("a", 1));
        let different: HashSet<_> = (0..1000).map(|number| suffix("a", number)).collect();
        assert!(different.len() > 990);
        assert_ne!(suffix("a", 1), suffix("b", 1));
    }
}

//! Which labels of machines are told, as a ConfigMap in the installation's namespace says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kubevirt_api::vm::VirtualMachine;
use kubevirt_component::metrics::Page;

use super::list;

/// The name of the ConfigMap.
pub const CONFIG_MAP: &str = "kubevirt-vm-labels-config";

/// Which labels are told.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    allowed: Allowed,
    ignored: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Allowed {
    All,
    Named(Vec<String>),
}

impl Shown {
    /// As the ConfigMap says, or all labels if there is none.
    pub fn from_maps(maps: &[Arc<ConfigMap>]) -> Self {
        let data = maps.iter().find(|map| map.metadata.name.as_deref() == Some(CONFIG_MAP));
        let data = data.and_then(|map| map.data.as_ref());
        let names = |key: &str| data.and_then(|data| data.get(key)).map(|text| words(text));
        let allowed = match names("allowlist") {
            Some(names) if names.iter().all(|name| name != "*") => Allowed::Named(names),
            _ => Allowed::All,
        };
        Self { allowed, ignored: names("ignorelist").unwrap_or_default() }
    }

    fn shows(&self, label: &str) -> bool {
        let allowed = match &self.allowed {
            Allowed::All => true,
            Allowed::Named(names) => names.iter().any(|name| name == label),
        };
        allowed && !self.ignored.iter().any(|name| name == label)
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Tells the labels of a machine and of its template, if there are any to tell.
pub fn tell(page: &mut Page, shown: &Shown, name: &str, namespace: &str, vm: &VirtualMachine) {
    let of_template = vm.spec.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let all = [vm.metadata.labels.as_ref(), of_template].into_iter().flatten().flatten();
    let mut told: BTreeMap<String, &str> = BTreeMap::new();
    for (label, value) in all.filter(|(label, _)| shown.shows(label)) {
        told.insert(format!("label_{}", safe(label)), value);
    }
    if !told.is_empty() {
        let told = told.iter().map(|(label, value)| (label.as_str(), *value));
        page.add_with(&list::VM_LABELS, &[name, namespace], told, 1.0);
    }
}

/// A name that Prometheus takes.
fn safe(label: &str) -> Cow<'_, str> {
    let bad = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let name = if label.contains(bad) { label.replace(bad, "_").into() } else { Cow::Borrowed(label) };
    match name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        true => name,
        false => format!("_{name}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(data: Option<&[(&str, &str)]>) -> Shown {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(CONFIG_MAP.into());
        map.data =
            data.map(|data| data.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect());
        Shown::from_maps(&[Arc::default(), Arc::new(map)])
    }

    #[test]
    fn the_config_map_decides() {
        type Map<'a> = Option<&'a [(&'a str, &'a str)]>;
        let cases: [(Map<'_>, [bool; 2]); 7] = [
            (None, [true, true]),
            (Some(&[]), [true, true]),
            (Some(&[("allowlist", "*")]), [true, true]),
            (Some(&[("allowlist", "")]), [false, false]),
            (Some(&[("allowlist", " team , x")]), [true, false]),
            (Some(&[("ignorelist", "team")]), [false, true]),
            (Some(&[("allowlist", "team,env"), ("ignorelist", "env,")]), [true, false]),
        ];
        for (data, expected) in cases {
            let shown = shown(data);
            assert_eq!(["team", "env"].map(|label| shown.shows(label)), expected, "{data:?}");
        }
        assert_eq!(Shown::from_maps(&[]), shown(None));
    }

    #[test]
    fn names_are_made_safe() {
        for (label, name) in
            [("a.b/c-d", "a_b_c_d"), ("plain_1", "plain_1"), ("1x", "_1x"), ("", "_"), ("ä", "_")]
        {
            assert_eq!(safe(label), name);
        }
    }
}

//! Guest memory: its limit, hugepages, and extra that is reserved for the hypervisor.

use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::VirtualMachineInstanceSpec;
use kubevirt_api::vmi::memory::{Hugepages, Memory};

use super::resources::{Asked, check_readable, memory_is_requested};
use crate::{Context, Gate, Path, Problems};

/// Everything that is wrong.
pub(super) fn check(
    cx: &Context<'_>,
    path: &Path<'_>,
    spec: &VirtualMachineInstanceSpec,
    problems: &mut Problems,
) {
    let Some(memory) = &spec.domain.memory else { return };
    let field = path.at("domain.memory");
    let asked = Asked::of(&spec.domain);
    let guest = memory.guest.as_ref().and_then(|guest| guest.amount().ok()).unwrap_or_default();

    check_readable(&field.at("guest"), memory.guest.as_ref(), problems);
    check_readable(&field.at("maxGuest"), memory.max_guest.as_ref(), problems);
    // A limit can be raised along with the memory where changes are applied live.
    let limit = asked.memory_limit.value();
    if !cx.config.live_update() && limit != 0 && limit < guest.value() {
        problems.invalid(&field.at("guest"), "the guest gets more memory than the memory limit allows");
    }
    if let Some(hugepages) = &memory.hugepages {
        check_hugepages(path, &asked, guest, hugepages, problems);
    }
    check_reserved_overhead(cx, &field, memory, problems);
}

fn check_hugepages(
    path: &Path<'_>,
    asked: &Asked,
    guest: Amount,
    hugepages: &Hugepages,
    problems: &mut Problems,
) {
    let size = hugepages.page_size.as_deref().unwrap_or_default();
    let page = match Amount::parse(size) {
        Ok(page) if page > Amount::zero() => page.value(),
        _ => {
            let field = path.at("domain.memory.hugepages.pageSize");
            problems.invalid(&field, format!("{size:?} is not the size of a page; write 2Mi or 1Gi"));
            return;
        }
    };
    let sizes = [asked.memory_request, guest, asked.memory_limit];
    let memory = sizes.map(Amount::value).into_iter().find(|memory| *memory != 0).unwrap_or_default();
    if memory.checked_rem(page) == Some(0) {
        return;
    }
    let field = path.at("domain.resources.requests.memory");
    problems.invalid(&field, format!("the memory of the guest is not a multiple of the page size {size}"));
}

fn check_reserved_overhead(cx: &Context<'_>, field: &Path<'_>, memory: &Memory, problems: &mut Problems) {
    let Some(reserved) = &memory.reserved_overhead else { return };
    let field = field.at("reservedOverhead");
    if !cx.config.enabled(Gate::ReservedOverheadMemlock) {
        problems.invalid(&field, "needs the feature gate ReservedOverheadMemlock, which is off");
    }
    check_readable(&field.at("addedOverhead"), reserved.added_overhead.as_ref(), problems);
}

/// Finds an instance that says nothing of its memory, after defaults have been filled in.
pub fn check_given(path: &Path<'_>, spec: &VirtualMachineInstanceSpec, problems: &mut Problems) {
    let memory = spec.domain.memory.as_ref();
    let sized = memory.is_some_and(|memory| memory.guest.is_some() || memory.hugepages.is_some());
    if !sized && !memory_is_requested(&spec.domain) {
        let message = format!(
            "no memory is asked for; set {path}.domain.memory.guest, {path}.domain.memory.hugepages.pageSize \
             or {path}.domain.resources.requests.memory"
        );
        problems.required(&Path::WHOLE, message);
    }
}

#[cfg(test)]
mod tests {
    use kubevirt_api::vmi::VirtualMachineInstanceSpec;
    use serde_json::{Value, json};

    use super::super::testing::run_domain;
    use crate::testing::{World, assert_fields, patched, read};
    use crate::{Path, Problems};

    fn sized(guest: &str, request: &str, limit: &str, page: Option<&str>) -> Value {
        let quantity = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        json!({
            "memory": { "guest": quantity(guest), "hugepages": page.map(|page| json!({ "pageSize": page })) },
            "resources": { "requests": { "memory": quantity(request) }, "limits": { "memory": quantity(limit) } },
        })
    }

    #[test]
    fn the_guest_fits_its_limit_unless_changes_are_live() {
        let staged = World::default().with_configuration(json!({ "vmRolloutStrategy": "Stage" }));
        let cases = [
            ("below", sized("64Mi", "", "128Mi", None), &[][..]),
            ("equal", sized("64Mi", "", "64Mi", None), &[]),
            ("no limit", sized("64Mi", "", "", None), &[]),
            ("above", sized("128Mi", "", "64Mi", None), &["spec.domain.memory.guest"]),
        ];
        run_domain(&staged, &cases);
        run_domain(&World::default(), &[("live", sized("128Mi", "", "64Mi", None), &[])]);
    }

    #[test]
    fn memory_is_a_multiple_of_the_page_size() {
        let page_size = "spec.domain.memory.hugepages.pageSize";
        let request = "spec.domain.resources.requests.memory";
        run_domain(
            &World::default(),
            &[
                ("2Mi", sized("64Mi", "64Mi", "", Some("2Mi")), &[]),
                ("1Gi", sized("", "2Gi", "", Some("1Gi")), &[]),
                ("only guest", sized("64Mi", "", "", Some("2Mi")), &[]),
                ("only limit", sized("", "", "64Mi", Some("2Mi")), &[]),
                ("only pages", sized("", "", "", Some("2Mi")), &[]),
                ("unreadable page", sized("64Mi", "64Mi", "", Some("2MiB")), &[page_size]),
                ("empty page", sized("64Mi", "64Mi", "", Some("")), &[page_size]),
                ("zero page", sized("64Mi", "64Mi", "", Some("0")), &[page_size]),
                ("negative page", sized("64Mi", "64Mi", "", Some("-2Mi")), &[page_size]),
                ("request below page", sized("", "64Mi", "", Some("1Gi")), &[request]),
                ("request between pages", sized("", "3Mi", "", Some("2Mi")), &[request]),
                ("guest between pages", sized("3Mi", "", "", Some("2Mi")), &[request]),
                ("limit between pages", sized("", "", "3Mi", Some("2Mi")), &[request]),
                ("request counts before guest", sized("3Mi", "4Mi", "", Some("2Mi")), &[]),
            ],
        );
    }

    #[test]
    fn quantities_are_readable_and_the_extra_is_gated() {
        let reserved =
            |overhead: &str| json!({ "memory": { "reservedOverhead": { "addedOverhead": overhead } } });
        let at = "spec.domain.memory.reservedOverhead";
        run_domain(
            &World::default(),
            &[
                ("guest", json!({ "memory": { "guest": "big" } }), &["spec.domain.memory.guest"]),
                ("maxGuest", json!({ "memory": { "maxGuest": "1 Gi" } }), &["spec.domain.memory.maxGuest"]),
                ("gate off", reserved("64Mi"), &[at]),
            ],
        );
        run_domain(
            &World::default().with_gates(&["ReservedOverheadMemlock"]),
            &[
                ("gate on", reserved("64Mi"), &[]),
                ("unreadable", reserved("x"), &["spec.domain.memory.reservedOverhead.addedOverhead"]),
            ],
        );
    }

    #[test]
    fn an_instance_asks_for_memory_somehow() {
        let request = |list: &str, memory: &str| json!({ "resources": { list: { "memory": memory } } });
        for (name, domain, expected) in [
            ("nothing", json!({}), &[""][..]),
            ("empty memory", json!({ "memory": {} }), &[""]),
            ("zero request", request("requests", "0"), &[""]),
            ("only a limit", request("limits", "1Gi"), &[""]),
            ("request", request("requests", "1Gi"), &[]),
            ("unreadable request", request("requests", "x"), &[]),
            ("guest", json!({ "memory": { "guest": "1Gi" } }), &[]),
            ("pages", json!({ "memory": { "hugepages": { "pageSize": "2Mi" } } }), &[]),
        ] {
            let spec: VirtualMachineInstanceSpec =
                read(json!({ "domain": patched(&json!({ "devices": {} }), &domain) }));
            let mut problems = Problems::default();
            super::check_given(&Path::new("spec"), &spec, &mut problems);
            assert_fields(name, &problems, expected);
        }
    }
}

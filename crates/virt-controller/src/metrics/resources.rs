//! CPU and memory that a machine asks for.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::{Amount, QuantityExt};
use kubevirt_api::vmi::domain::DomainSpec;
use kubevirt_component::metrics::Page;

use super::{list, number};

/// Tells what a machine asks for, as its domain is with instance type and preference applied.
pub fn tell(page: &mut Page, name: &str, namespace: &str, domain: &DomainSpec) {
    let mut told = Asked { page, name, namespace };
    told.memory(domain);
    told.cpu(domain);
}

struct Asked<'a> {
    page: &'a mut Page,
    name: &'a str,
    namespace: &'a str,
}

impl Asked<'_> {
    fn request(&mut self, resource: &str, unit: &str, source: &str, value: f64) {
        let labels = [self.name, self.namespace, resource, unit, source];
        self.page.add(&list::VM_REQUESTS, &labels, value);
    }

    fn limit(&mut self, resource: &str, unit: &str, value: f64) {
        self.page.add(&list::VM_LIMITS, &[self.name, self.namespace, resource, unit], value);
    }

    fn memory(&mut self, domain: &DomainSpec) {
        let (request, limit) = (of(domain, "memory", false), of(domain, "memory", true));
        let memory = domain.memory.as_ref();
        let guest = memory.and_then(|memory| amount(memory.guest.as_ref()));
        let pages = memory.and_then(|memory| memory.hugepages.as_ref()?.page_size.as_deref());
        let pages = pages.and_then(|size| Amount::parse(size).ok());
        for (source, size) in [("domain", request), ("guest", guest), ("hugepages", pages)] {
            if let Some(size) = size {
                self.request("memory", "bytes", source, number(size.value()));
            }
        }
        if let Some(limit) = limit {
            self.limit("memory", "bytes", number(limit.value()));
        }
        if let Some(size) = guest.or(request).or(limit) {
            self.request("memory", "bytes", "guest_effective", number(size.value()));
        }
    }

    fn cpu(&mut self, domain: &DomainSpec) {
        let (request, limit) = (of(domain, "cpu", false), of(domain, "cpu", true));
        let topology = domain.cpu.as_ref().map(|cpu| {
            [("cores", cpu.cores), ("threads", cpu.threads), ("sockets", cpu.sockets)]
                .map(|(unit, count)| (unit, count.unwrap_or_default().max(0)))
        });
        for (unit, count) in topology.iter().flatten().filter(|(_, count)| *count > 0) {
            self.request("cpu", unit, "domain", f64::from(*count));
        }
        match request {
            Some(request) => self.request("cpu", "cores", "requests", number(request.milli_value()) / 1000.0),
            None if topology.is_none() => {
                for unit in ["cores", "threads", "sockets"] {
                    self.request("cpu", unit, "default", 1.0);
                }
            }
            None => {}
        }
        if let Some(limit) = limit {
            self.limit("cpu", "cores", number(limit.milli_value()) / 1000.0);
        }
        let counts = topology.map(|topology| topology.map(|(_, count)| f64::from(count)));
        let set = |counts: [f64; 3]| counts.into_iter().filter(|count| *count > 0.0).reduce(|a, b| a * b);
        let effective = counts.map_or(1.0, |counts| set(counts).unwrap_or_default());
        self.request("cpu", "cores", "guest_effective", effective);
    }
}

fn of(domain: &DomainSpec, resource: &str, limit: bool) -> Option<Amount> {
    let resources = domain.resources.as_ref()?;
    let all = if limit { resources.limits.as_ref() } else { resources.requests.as_ref() };
    amount(all?.get(resource))
}

fn amount(quantity: Option<&Quantity>) -> Option<Amount> {
    quantity?.amount().ok().filter(|amount| !amount.is_zero())
}

//! Sums of quantities, in the format that the user chose.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubevirt_api::quantity::{Amount, Format, QuantityExt, format_of};

/// Quantities by the name of their resource.
pub(super) type List = BTreeMap<String, Quantity>;

/// The amount of a resource; none if it is not listed or zero.
pub(super) fn amount(list: &List, name: &str) -> Option<Amount> {
    list.get(name)?.amount().ok().filter(|amount| !amount.is_zero())
}

/// Adds to a resource, in the format that it is in, or else in this one.
pub(super) fn add(list: &mut List, name: &str, more: Amount, format: Format) {
    let before = list.get(name);
    let format =
        before.filter(|it| it.amount().is_ok_and(|it| !it.is_zero())).map_or(format, |it| format_of(&it.0));
    let amount = before.and_then(|it| it.amount().ok()).unwrap_or_default();
    let sum = amount.checked_add(more).unwrap_or(amount);
    list.insert(name.to_owned(), sum.to_quantity(format));
}

/// Sets a resource.
pub(super) fn set(list: &mut List, name: &str, amount: Amount, format: Format) {
    list.insert(name.to_owned(), amount.to_quantity(format));
}

/// A quantity as Kubernetes writes it.
pub(super) fn quantity(text: &str) -> Quantity {
    Quantity(text.to_owned())
}

/// Some MiB.
pub(super) const fn mib(count: i64) -> Amount {
    Amount::from_int(count * (1 << 20))
}

//! The parsed form of a structural schema.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::checks::Checks;
use crate::path::{Path, Trail};

/// The schema of a resource: the `openAPIV3Schema` of one version of a custom resource.
///
/// Made by [`Schema::parse`]. Its root is a resource, so `apiVersion`, `kind` and `metadata` are
/// known there whether the schema names them or not.
#[derive(Debug)]
pub struct Schema {
    pub(crate) root: Node,
}

impl Schema {
    /// The node of the whole resource.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// All `x-kubernetes-validations` with where they apply, for a caller that can evaluate CEL.
    ///
    /// This crate does not evaluate them: [`validate`](crate::validate) passes a document that
    /// breaks such a rule. Lists and maps on the way show as `[*]`.
    pub fn rules(&self) -> Vec<(Path, &Rule)> {
        let mut rules = Vec::new();
        collect_rules(&self.root, &Trail::ROOT, &mut rules);
        rules
    }
}

fn collect_rules<'s>(node: &'s Node, at: &Trail, rules: &mut Vec<(Path, &'s Rule)>) {
    rules.extend(node.rules.iter().map(|rule| (at.path(), rule)));
    for (name, property) in &node.properties {
        collect_rules(property, &at.missing(name), rules);
    }
    let each = node.items.as_deref().into_iter();
    for child in each.chain(node.additional.schema()) {
        collect_rules(child, &at.each(), rules);
    }
}

/// What a schema says about one value, and about what is inside it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Node {
    /// The type; none when any value will do.
    pub kind: Option<Type>,
    /// Whether `null` is a value here, rather than another way to say "absent".
    pub nullable: bool,
    /// Whether fields that the schema does not name are kept.
    pub preserve_unknown: bool,
    /// Whether this is a whole resource with `apiVersion`, `kind` and `metadata` of its own.
    pub embedded: bool,
    /// The named fields of an object.
    pub properties: BTreeMap<Box<str>, Node>,
    /// What the fields are that are not named.
    pub additional: Additional,
    /// What the items of a list are.
    pub items: Option<Box<Node>>,
    /// The value to fill in when there is none.
    pub default: Option<Value>,
    /// How the items of a list are told apart.
    pub list_type: ListType,
    /// Whether the fields of an object have owners of their own.
    pub map_type: MapType,
    /// Rules in CEL.
    pub rules: Vec<Rule>,
    pub(crate) checks: Option<Box<Checks>>,
}

impl Node {
    /// The schema of a field, named or not.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.additional.schema())
    }

    /// Whether a value stands for "absent" here.
    pub(crate) fn is_absent(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

/// The types of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An object, with named fields or as a map.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number of 64 bits.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A whole number or a string (`x-kubernetes-int-or-string`).
    IntOrString,
}

impl Type {
    /// The type with its article, for messages.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::IntOrString => "an integer or a string",
        }
    }
}

/// What the fields of an object are that the schema does not name.
#[derive(Debug, Default)]
pub enum Additional {
    /// Nothing is said: they are unknown.
    #[default]
    Unknown,
    /// `true`: scalars and lists of them are known, but no fields inside objects are.
    Any,
    /// `false`: they must not be there.
    Nothing,
    /// They are the values of a map, and this is their schema.
    Values(Box<Node>),
}

impl Additional {
    /// The schema of the values of a map.
    pub fn schema(&self) -> Option<&Node> {
        match self {
            Self::Values(node) => Some(node),
            _ => None,
        }
    }
}

/// How the items of a list are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// They are not: the list is one value.
    #[default]
    Atomic,
    /// By their value; none may repeat.
    Set,
    /// By these fields; no combination of their values may repeat.
    Map(Vec<Box<str>>),
}

/// Whether the fields of an object can be owned one by one (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// They can.
    #[default]
    Granular,
    /// They cannot: the object is one value.
    Atomic,
}

/// One of the `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// What to say when it is false.
    pub message: Option<String>,
    /// A CEL expression for what to say.
    pub message_expression: Option<String>,
    /// The reason of the cause, such as `FieldValueInvalid`.
    pub reason: Option<String>,
    /// The field to blame, relative to where the rule stands.
    pub field_path: Option<String>,
    /// Whether `oldSelf` is optional, so that the rule also applies to new values.
    pub optional_old_self: bool,
}

//! The request of an `AdmissionReview`, read from untrusted bytes.

use kubevirt_schema::{Path, Segment, parse_strict_without};
use serde_json::Value;

use super::{API_VERSION, metadata};
use crate::{Operation, Problems, Reason, Request, User};

/// Who wrote which field: long, and no rule asks for it.
const UNREAD: [&str; 2] =
    ["request.object.metadata.managedFields", "request.oldObject.metadata.managedFields"];

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for Kubernetes' core.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// What the object is.
    pub kind: String,
}

impl Resource {
    /// What an object says that it is.
    fn of(object: &Value) -> Self {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = object["kind"].as_str().unwrap_or_default();
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }
}

/// A request that wants an answer.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The request's own id, which the answer repeats.
    pub uid: String,
    /// What kind of object it is about.
    pub resource: Resource,
    /// The parts that rules look at.
    pub request: Request,
    /// The object as it shall be; null for a deletion.
    pub object: Value,
    /// The object as it was; null for a creation.
    pub old_object: Value,
    /// What is wrong with the text itself, such as fields that stand there twice.
    pub problems: Problems,
}

/// The bytes are not a review that could be answered.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotAReview {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    Json(String),
    /// A field is missing or wrong.
    #[error("{field}: {problem}")]
    Field {
        /// Where.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
}

impl Incoming {
    /// Reads an `AdmissionReview` of admission.k8s.io/v1.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAReview> {
        let (review, duplicates) =
            parse_strict_without(bytes, &UNREAD).map_err(|error| NotAReview::Json(error.to_string()))?;
        Self::from_review(review, &duplicates)
    }

    fn from_review(mut review: Value, duplicates: &[Path]) -> Result<Self, NotAReview> {
        expect(&review, "apiVersion", API_VERSION)?;
        expect(&review, "kind", "AdmissionReview")?;
        let mut request = review["request"].take();
        if !request.is_object() {
            return Err(field("request", "is missing or not an object"));
        }
        let uid = text(&request["uid"], "request.uid")?;
        if uid.is_empty() {
            return Err(field("request.uid", "is missing"));
        }
        let resource = resource(&request)?;
        let groups = request["userInfo"]["groups"].as_array().into_iter().flatten();
        let user = User {
            name: text(&request["userInfo"]["username"], "request.userInfo.username")?,
            groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
            extra: serde_json::from_value(request["userInfo"]["extra"].take()).unwrap_or_default(),
        };
        let asked = Request {
            operation: operation(&text(&request["operation"], "request.operation")?)?,
            namespace: text(&request["namespace"], "request.namespace")?,
            name: text(&request["name"], "request.name")?,
            subresource: text(&request["subResource"], "request.subResource")?,
            user,
            dry_run: request["dryRun"].as_bool().unwrap_or_default(),
        };
        Ok(Self {
            uid,
            resource,
            object: request["object"].take(),
            old_object: request["oldObject"].take(),
            problems: duplicated(duplicates),
            request: asked,
        })
    }

    /// The creation of an object by an ordinary user.
    pub fn creation(object: Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = Resource::of(&object);
        let request = Request {
            operation: Operation::Create,
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
            subresource: String::new(),
            user: User {
                name: "kubernetes-admin".into(),
                groups: vec!["system:authenticated".into()],
                ..User::default()
            },
            dry_run: false,
        };
        let problems = metadata::check(&object);
        Self { uid: String::new(), resource, request, object, old_object: Value::Null, problems }
    }
}

/// Fields of the object that stand there twice: one of the values would be lost.
fn duplicated(duplicates: &[Path]) -> Problems {
    let mut problems = Problems::default();
    for path in duplicates {
        let [Segment::Field(request), Segment::Field(object), rest @ ..] = path.segments() else { continue };
        if request == "request" && object == "object" {
            let field = rest.iter().cloned().collect::<Path>().to_string();
            problems.add(Reason::Duplicate, &crate::Path::new(&field), "stands there twice; keep one");
        }
    }
    problems
}

/// What the request says that it is about, or else what its object says.
fn resource(request: &Value) -> Result<Resource, NotAReview> {
    let kind = &request["kind"];
    if kind.is_null() {
        let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
        return Ok(Resource::of(object));
    }
    Ok(Resource {
        group: text(&kind["group"], "request.kind.group")?,
        version: text(&kind["version"], "request.kind.version")?,
        kind: text(&kind["kind"], "request.kind.kind")?,
    })
}

fn operation(name: &str) -> Result<Operation, NotAReview> {
    match name {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        "" => Err(field("request.operation", "is missing")),
        other => Err(field("request.operation", &format!("{other:?} is not CREATE, UPDATE or DELETE"))),
    }
}

fn expect(review: &Value, name: &'static str, value: &str) -> Result<(), NotAReview> {
    match &review[name] {
        found if found == value => Ok(()),
        Value::Null => Err(field(name, &format!("is missing; it must be {value}"))),
        found => Err(field(name, &format!("is {found}; it must be {value}"))),
    }
}

fn text(value: &Value, name: &'static str) -> Result<String, NotAReview> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => Err(field(name, &format!("must be a string, not {other}"))),
    }
}

fn field(name: &'static str, problem: &str) -> NotAReview {
    NotAReview::Field { field: name, problem: problem.to_owned() }
}

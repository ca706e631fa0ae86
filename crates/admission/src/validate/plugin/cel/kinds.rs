//! What parts of an expression yield, and the names that it may use.

use std::fmt;

/// What an expression yields, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A number.
    Number,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A list.
    List,
    /// A map.
    Map,
    /// The description of a guest.
    Domain,
    /// An instance.
    Instance,
    /// The metadata of an instance.
    Metadata,
    /// Something else with fields.
    Object,
    /// Nothing.
    Null,
    /// It cannot be told.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Bytes => "bytes",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Domain => "a Domain",
            Self::Instance | Self::Metadata | Self::Object => "an object",
            Self::Null => "null",
            Self::Unknown => "something",
        })
    }
}

impl Kind {
    /// Whether this may turn out to be of another kind.
    pub fn may_be(self, wanted: Kind) -> bool {
        self == wanted || self == Kind::Unknown || wanted == Kind::Unknown
    }

    /// Whether this is one of the kinds that are never equal to each other.
    pub fn is_simple(self) -> bool {
        matches!(self, Self::Bool | Self::Number | Self::Text | Self::Bytes | Self::List | Self::Map)
    }

    /// What a field of this yields, or nothing if it has no such field.
    pub fn field(self, name: &str) -> Option<Kind> {
        let found = match self {
            Self::Unknown | Self::Map | Self::Object => Kind::Unknown,
            Self::Domain => return domain_field(name),
            Self::Metadata => metadata_field(name),
            Self::Instance if matches!(name, "metadata" | "ObjectMeta") => Kind::Metadata,
            // An instance has the fields of its metadata as its own where it is seen as Go sees it.
            Self::Instance => metadata_field(name),
            _ => return None,
        };
        Some(found)
    }
}

fn metadata_field(name: &str) -> Kind {
    match name {
        "Name" | "Namespace" | "GenerateName" | "UID" | "ResourceVersion" | "name" | "namespace"
        | "generateName" | "uid" | "resourceVersion" => Kind::Text,
        "Labels" | "Annotations" | "labels" | "annotations" => Kind::Map,
        "Generation" | "generation" => Kind::Number,
        _ => Kind::Unknown,
    }
}

/// The fields of a domain, which go by the names of libvirt's elements.
fn domain_field(name: &str) -> Option<Kind> {
    Some(match name {
        "Type" | "Name" | "UUID" | "HWUUID" | "Title" | "Description" | "Bootloader" | "BootloaderArgs"
        | "OnPoweroff" | "OnReboot" | "OnCrash" => Kind::Text,
        "ID" | "IOThreads" => Kind::Number,
        "SysInfo" | "SecLabel" => Kind::List,
        "XMLName"
        | "GenID"
        | "Metadata"
        | "MaximumMemory"
        | "Memory"
        | "CurrentMemory"
        | "BlockIOTune"
        | "MemoryTune"
        | "MemoryBacking"
        | "VCPU"
        | "VCPUs"
        | "IOThreadIDs"
        | "DefaultIOThread"
        | "CPUTune"
        | "NUMATune"
        | "Resource"
        | "OS"
        | "IDMap"
        | "ThrottleGroups"
        | "Features"
        | "CPU"
        | "Clock"
        | "PM"
        | "Perf"
        | "Devices"
        | "KeyWrap"
        | "LaunchSecurity"
        | "QEMUCommandline"
        | "QEMUCapabilities"
        | "QEMUOverride"
        | "QEMUDeprecation"
        | "LXCNamespace"
        | "BHyveCommandline"
        | "VMWareDataCenterPath"
        | "XenCommandline" => Kind::Object,
        _ => return None,
    })
}

/// Which names an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `vmi` and `domainSpec`, with the fields that Go gives them, and the types of a domain.
    OfDomainHooks,
    /// `vmi` with the fields of its manifest, and further functions on texts, numbers and lists.
    OfNodeHooks,
}

impl Names {
    /// What a variable yields.
    pub fn variable(self, name: &str) -> Option<Kind> {
        match (self, name) {
            (_, "vmi") => Some(Kind::Instance),
            (Self::OfDomainHooks, "domainSpec") => Some(Kind::Domain),
            (
                _,
                "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" | "null_type"
                | "type" | "google" | "v1" | "libvirtxml",
            )
            | (Self::OfNodeHooks, "math" | "lists" | "strings") => Some(Kind::Unknown),
            _ => None,
        }
    }

    /// What an object of this type is.
    pub fn object(self, type_name: &str) -> Option<Kind> {
        let own = type_name.strip_prefix("libvirtxml.").unwrap_or(type_name);
        match own.strip_prefix("Domain") {
            Some("") if self == Self::OfDomainHooks => Some(Kind::Domain),
            Some(rest)
                if self == Self::OfDomainHooks
                    && rest.starts_with(|first: char| first.is_ascii_uppercase()) =>
            {
                Some(Kind::Object)
            }
            _ if own == "v1.VirtualMachineInstance" => Some(Kind::Instance),
            _ if own.starts_with("v1.") => Some(Kind::Object),
            _ => None,
        }
    }

    /// What a function yields that is called by its name alone.
    pub fn function(self, name: &str) -> Option<Kind> {
        Some(match name {
            "has" | "bool" | "matches" => Kind::Bool,
            "size" | "int" | "uint" | "double" => Kind::Number,
            "string" => Kind::Text,
            "bytes" => Kind::Bytes,
            "type" | "dyn" | "duration" | "timestamp" => Kind::Unknown,
            _ => return None,
        })
    }

    /// What a function yields that is called on a value.
    pub fn method(self, name: &str) -> Option<Kind> {
        Some(match name {
            "startsWith" | "endsWith" | "contains" | "matches" => Kind::Bool,
            "size" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" | "getFullYear"
            | "getHours" | "getMilliseconds" | "getMinutes" | "getMonth" | "getSeconds" => Kind::Number,
            _ if self == Self::OfDomainHooks => return None,
            "charAt" | "join" | "lowerAscii" | "upperAscii" | "replace" | "substring" | "trim" | "format"
            | "quote" => Kind::Text,
            "indexOf" | "lastIndexOf" => Kind::Number,
            "split" | "distinct" | "flatten" | "sort" | "slice" | "range" => Kind::List,
            "reverse" | "first" | "last" | "greatest" | "least" | "ceil" | "floor" | "round" | "trunc"
            | "abs" | "sign" | "sqrt" | "bitOr" | "bitAnd" | "bitXor" | "bitNot" | "bitShiftLeft"
            | "bitShiftRight" => Kind::Unknown,
            "isNaN" | "isInf" | "isFinite" => Kind::Bool,
            _ => return None,
        })
    }

    /// What a function yields whose first argument names each item of a list or key of a map.
    pub fn comprehension(self, name: &str) -> Option<Kind> {
        Some(match name {
            "all" | "exists" | "exists_one" | "existsOne" => Kind::Bool,
            "map" | "filter" => Kind::List,
            "sortBy" if self == Self::OfNodeHooks => Kind::List,
            _ => return None,
        })
    }
}

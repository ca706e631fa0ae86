//! The root object of a kind: `apiVersion`, `kind`, metadata, spec and, for most, status.

/// Declares the root type of a kind and what `kube` needs to know of it.
///
/// The group is the name of a constant in [`crate::names::groups`]. A missing part decodes as its default: that it
/// is required is the schema's to say, by its path.
macro_rules! kind {
    (@one $status:ty) => { 1 };
    (
        $(#[$meta:meta])*
        $kind:ident: $group:ident, $version:literal, $plural:literal, $scope:ident;
        spec: $spec:ty $(, status: $status:ty)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        pub struct $kind {
            /// Name, namespace, labels, annotations and the rest of the standard metadata.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            pub spec: $spec,
            $(
                /// What is known.
                pub status: Option<$status>,
            )?
        }

        impl $kind {
            /// An object of this name, with everything else left to the specification.
            pub fn new(name: &str, spec: $spec) -> Self {
                let mut object = Self { spec, ..Self::default() };
                object.metadata.name = Some(name.to_owned());
                object
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut object = serializer.serialize_struct(stringify!($kind), 5)?;
                object.serialize_field("apiVersion", &<Self as kube::Resource>::api_version(&()))?;
                object.serialize_field("kind", stringify!($kind))?;
                object.serialize_field("metadata", &self.metadata)?;
                object.serialize_field("spec", &self.spec)?;
                $(
                    if let Some(status) = &self.status {
                        let status: &$status = status;
                        object.serialize_field("status", status)?;
                    }
                )?
                object.end()
            }
        }

        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = kube::core::$scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                crate::names::groups::$group.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }

        impl crate::crd::Documented for $kind {
            fn schema(generator: &mut schemars::SchemaGenerator) -> crate::crd::RootSchema {
                let spec = generator.subschema_for::<$spec>();
                let statuses: [schemars::Schema; 0 $(+ kind!(@one $status))?] =
                    [$(generator.subschema_for::<$status>())?];
                crate::crd::RootSchema { spec, status: statuses.into_iter().next() }
            }

            fn through_types(object: &serde_json::Value) -> serde_json::Result<serde_json::Value> {
                use serde::Deserialize;
                serde_json::to_value(Self::deserialize(object)?)
            }
        }
    };
}

pub(crate) use kind;

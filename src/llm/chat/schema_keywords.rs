//! The keywords of JSON schemas. The parser ignores others, such as misspelt ones.

use crate::error::{Error, Result};
use serde_json::{Map, Value};

/// The kinds of values that keywords have.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// No schema.
    Data,
    /// A schema or a list of schemas.
    Schemas,
    /// Schemas by names.
    Named,
}

/// The keywords of drafts 4 to 2020-12, and annotations of `OpenAPI`. The parser refuses those that it does not support.
const KEYWORDS: &[(Holds, &[&str])] = &[
    (
        Holds::Data,
        &[
            "$anchor",
            "$comment",
            "$dynamicAnchor",
            "$dynamicRef",
            "$id",
            "$ref",
            "$schema",
            "$vocabulary",
            "const",
            "contentEncoding",
            "contentMediaType",
            "default",
            "dependentRequired",
            "deprecated",
            "description",
            "discriminator",
            "enum",
            "example",
            "examples",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "externalDocs",
            "format",
            "id",
            "maxContains",
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
            "minimum",
            "multipleOf",
            "pattern",
            "readOnly",
            "required",
            "title",
            "type",
            "uniqueItems",
            "writeOnly",
        ],
    ),
    (
        Holds::Schemas,
        &[
            "additionalItems",
            "additionalProperties",
            "allOf",
            "anyOf",
            "contains",
            "contentSchema",
            "else",
            "if",
            "items",
            "not",
            "oneOf",
            "prefixItems",
            "propertyNames",
            "then",
            "unevaluatedItems",
            "unevaluatedProperties",
        ],
    ),
    (
        Holds::Named,
        &[
            "$defs",
            "definitions",
            "dependencies",
            "dependentSchemas",
            "patternProperties",
            "properties",
        ],
    ),
];

/// Refuses keywords that do not exist. Keywords that begin with `x-` are for tools.
///
/// # Errors
/// `InvalidArgument` with the keyword.
pub(super) fn check(schema: &Value) -> Result<()> {
    match schema {
        Value::Object(object) => object
            .iter()
            .try_for_each(|(name, value)| match holds(name) {
                None if !name.starts_with("x-") => Err(unknown(name)),
                None | Some(Holds::Data) => Ok(()),
                Some(Holds::Schemas) => check(value),
                Some(Holds::Named) => {
                    let named = value.as_object();
                    named.into_iter().flat_map(Map::values).try_for_each(check)
                }
            }),
        Value::Array(schemas) => schemas.iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// Returns the kind of a keyword's values; none for an unknown keyword.
pub(super) fn holds(name: &str) -> Option<Holds> {
    let has_it = |(_, names): &&(Holds, &[&str])| names.contains(&name);
    KEYWORDS.iter().find(has_it).map(|&(holds, _)| holds)
}

fn unknown(name: &str) -> Error {
    let value = format!("a schema with the keyword `{name}`");
    Error::invalid("json_schema", value, "made of JSON Schema's keywords")
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::json;

    #[test]
    fn keywords_that_do_not_exist_are_refused_wherever_schemas_are() {
        let wrong = json!({ "propertys": {} });
        for schema in [
            wrong.clone(),
            json!({ "properties": { "a": wrong } }),
            json!({ "items": [wrong] }),
            json!({ "anyOf": [{ "type": "null" }, wrong] }),
            json!({ "additionalProperties": wrong }),
            json!({ "$defs": { "a": { "not": wrong } } }),
        ] {
            let error = check(&schema).unwrap_err();
            let wanted = "`json_schema` is a schema with the keyword `propertys`";
            assert!(error.to_string().starts_with(wanted), "{schema}: {error}");
        }
    }

    #[test]
    fn names_and_data_are_no_keywords() {
        let data = json!({ "any": { "thing": 1 } });
        let schema = json!({
            "type": "object",
            "properties": { "thing": true, "items": { "const": data, "x-order": data } },
            "dependencies": { "thing": ["items"] },
            "default": data,
            "examples": [data],
            "enum": [data],
        });
        check(&schema).unwrap();
    }
}

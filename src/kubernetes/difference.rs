//! Would a forced server-side apply change anything? A pure comparison of what would be sent with the live object.
//!
//! The live object's `managedFields` say what this operator applied before, and with it the shape that a schema
//! would tell: which lists are keyed (`k:{…}`), which are sets (`v:…`) and which are replaced as a whole. Fields that
//! others set beside ours are none of our business (decision R23), with one exception: what we no longer send but
//! still own is removed by the next apply, so it is a difference.

use std::fmt;

use serde_json::{Map, Value};

use super::quantity;

/// Where, and how, an object differs from what would be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the field, such as `spec.template.spec.containers[name=environmentd].image`.
    pub path: String,
    /// How it differs. Values are not kept: they may be secret.
    pub kind: DifferenceKind,
}

/// How a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The live object has another value.
    Value,
    /// The live object does not have the field.
    Missing,
    /// We applied the field before and no longer send it.
    NoLongerSent,
    /// The value is the same or larger, but another manager took the field over.
    NotOurs,
}

/// The first difference, in the order of the fields' names, between `desired` (an apply configuration) and `live`,
/// the object as the API server returned it, for the field manager `manager`.
///
/// None means: every field of `desired` has that value already, and nothing that `manager` applied before is missing
/// from `desired`.
pub fn first_difference(desired: &Value, live: &Value, manager: &str) -> Option<Difference> {
    let owned = owned_fields(live, manager);
    let mut path = Path::default();
    let owned = owned.map_or(Owned::Nothing, Owned::Fields);
    compare_objects(desired.as_object()?, live.as_object(), owned, &mut path)
}

/// What the manager owns of the value that is being compared.
#[derive(Clone, Copy)]
enum Owned<'a> {
    /// The parts that this node of `managedFields` names.
    Fields(&'a Map<String, Value>),
    /// All of it: the manager owns the list or map as a whole, and a change by others would have taken it away.
    Whole,
    /// None of it.
    Nothing,
}

/// The path to the value that is being compared.
#[derive(Default)]
struct Path(Vec<String>);

/// Metadata that identifies the object or that only the API server writes.
const IDENTITY: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "managedFields"];

/// The node of `managedFields` that says what `manager` applied.
fn owned_fields<'a>(live: &'a Value, manager: &str) -> Option<&'a Map<String, Value>> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let entry = entries.iter().find(|entry| {
        entry.get("manager").and_then(Value::as_str) == Some(manager)
            && entry.get("operation").and_then(Value::as_str) == Some("Apply")
            && entry
                .get("subresource")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
    })?;
    entry.get("fieldsV1")?.as_object()
}

fn compare(desired: &Value, live: Option<&Value>, owned: Owned<'_>, path: &mut Path) -> Option<Difference> {
    match desired {
        Value::Null => None,
        Value::Array(items) => compare_arrays(items, live, owned, path),
        Value::Object(members) => match live {
            Some(Value::Object(live)) => compare_objects(members, Some(live), owned, path),
            // The API server leaves empty maps out.
            None if members.is_empty() => None,
            None => Some(path.differs(DifferenceKind::Missing)),
            Some(_) => Some(path.differs(DifferenceKind::Value)),
        },
        scalar => match live {
            Some(live) if scalar == live || path.is_quantity() && quantity::equal(scalar, live) => None,
            Some(_) => Some(path.differs(DifferenceKind::Value)),
            None => Some(path.differs(DifferenceKind::Missing)),
        },
    }
}

fn compare_objects(
    desired: &Map<String, Value>,
    live: Option<&Map<String, Value>>,
    owned: Owned<'_>,
    path: &mut Path,
) -> Option<Difference> {
    for (name, value) in desired {
        if path.is_identity(name) {
            continue;
        }
        path.0.push(name.clone());
        let difference = compare(
            value,
            live.and_then(|live| live.get(name)),
            owned.child(&format!("f:{name}")),
            path,
        );
        path.0.pop();
        if difference.is_some() {
            return difference;
        }
    }
    match owned {
        Owned::Whole => None,
        // Nothing was ever applied: send it, unless there is nothing to own but the object's identity, for which the
        // API server keeps no entry.
        Owned::Nothing if path.0.is_empty() => sends_fields(desired).then(|| path.differs(DifferenceKind::NotOurs)),
        // Others took a map over: the members that they put in would go away.
        Owned::Nothing => {
            let members = |map: &Map<String, Value>| map.keys().filter(|name| !path.is_identity(name)).count();
            let sent = members(desired);
            let more = sent > 0 && live.is_some_and(|live| members(live) > sent);
            more.then(|| path.differs(DifferenceKind::NotOurs))
        }
        Owned::Fields(fields) => {
            let gone = fields.keys().filter_map(|key| key.strip_prefix("f:")).find(|name| {
                let sent = desired.get(*name).is_some_and(|value| !value.is_null());
                !sent && !path.is_identity(name) && live.is_some_and(|live| live.contains_key(*name))
            })?;
            path.0.push(gone.to_owned());
            let difference = path.differs(DifferenceKind::NoLongerSent);
            path.0.pop();
            Some(difference)
        }
    }
}

/// Whether an apply configuration holds anything but which object it is.
fn sends_fields(desired: &Map<String, Value>) -> bool {
    desired.iter().any(|(name, value)| match (name.as_str(), value) {
        ("apiVersion" | "kind", _) | (_, Value::Null) => false,
        ("metadata", Value::Object(metadata)) => metadata
            .iter()
            .any(|(name, value)| !IDENTITY.contains(&name.as_str()) && !value.is_null()),
        _ => true,
    })
}

fn compare_arrays(desired: &[Value], live: Option<&Value>, owned: Owned<'_>, path: &mut Path) -> Option<Difference> {
    let live = match live {
        Some(Value::Array(live)) => live.as_slice(),
        Some(Value::Null) | None => &[],
        Some(_) => return Some(path.differs(DifferenceKind::Value)),
    };
    match owned {
        Owned::Fields(fields) if fields.keys().any(|key| key.starts_with("k:")) => {
            compare_keyed(desired, live, fields, path)
        }
        Owned::Fields(fields) if fields.keys().any(|key| key.starts_with("v:")) => {
            compare_set(desired, live, fields, path)
        }
        // A list that is replaced as a whole, or one that is not ours yet.
        _ if desired.len() != live.len() => Some(path.differs(DifferenceKind::Value)),
        _ => desired
            .iter()
            .zip(live)
            .enumerate()
            .find_map(|(index, (desired, live))| {
                path.0.push(format!("[{index}]"));
                let owned = match owned {
                    Owned::Nothing => Owned::Nothing,
                    _ => Owned::Whole,
                };
                let difference = compare(desired, Some(live), owned, path);
                path.0.pop();
                difference
            }),
    }
}

/// A list whose items are told apart by the values of some of their fields.
fn compare_keyed(desired: &[Value], live: &[Value], owned: &Map<String, Value>, path: &mut Path) -> Option<Difference> {
    let keys: Vec<(Map<String, Value>, &Value)> = owned
        .iter()
        .filter_map(|(name, node)| Some((serde_json::from_str(name.strip_prefix("k:")?).ok()?, node)))
        .collect();
    for item in desired {
        let Some((key, node)) = keys.iter().find(|(key, _)| has_key(item, key)) else {
            return Some(path.differs(DifferenceKind::Missing));
        };
        path.0.push(label(key));
        let difference = match live
            .iter()
            .find(|live| key.iter().all(|(name, value)| live.get(name) == Some(value)))
        {
            Some(live) => compare(item, Some(live), Owned::of(node), path),
            None => Some(path.differs(DifferenceKind::Missing)),
        };
        path.0.pop();
        if difference.is_some() {
            return difference;
        }
    }
    let (gone, _) = keys.iter().find(|(key, _)| {
        let is_live = live
            .iter()
            .any(|live| key.iter().all(|(name, value)| live.get(name) == Some(value)));
        is_live && !desired.iter().any(|item| has_key(item, key))
    })?;
    path.0.push(label(gone));
    let difference = path.differs(DifferenceKind::NoLongerSent);
    path.0.pop();
    Some(difference)
}

/// A list of plain values without an order.
fn compare_set(desired: &[Value], live: &[Value], owned: &Map<String, Value>, path: &Path) -> Option<Difference> {
    if desired.iter().any(|item| !live.contains(item)) {
        return Some(path.differs(DifferenceKind::Missing));
    }
    let gone = owned
        .keys()
        .filter_map(|name| serde_json::from_str::<Value>(name.strip_prefix("v:")?).ok())
        .any(|item| live.contains(&item) && !desired.contains(&item));
    gone.then(|| path.differs(DifferenceKind::NoLongerSent))
}

/// Whether an item that would be sent is the one with this key. A field of the key that the item leaves out is one
/// that the API server fills in, such as `protocol: TCP` of a port.
fn has_key(item: &Value, key: &Map<String, Value>) -> bool {
    let mut said = false;
    key.iter().all(|(name, value)| match item.get(name) {
        Some(own) => {
            said = true;
            own == value
        }
        None => true,
    }) && said
}

/// The key of an item as it stands in a path.
fn label(key: &Map<String, Value>) -> String {
    let fields: Vec<_> = key
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    format!("[{}]", fields.join(","))
}

// === impl Owned ===

impl<'a> Owned<'a> {
    /// What a node of `managedFields` stands for.
    fn of(node: &'a Value) -> Self {
        match node.as_object() {
            Some(fields) if fields.keys().any(|key| key != ".") => Self::Fields(fields),
            _ => Self::Whole,
        }
    }

    /// What is owned of a member.
    fn child(self, key: &str) -> Self {
        match self {
            Self::Fields(fields) => fields.get(key).map_or(Self::Nothing, Self::of),
            other => other,
        }
    }
}

// === impl Path ===

impl Path {
    fn differs(&self, kind: DifferenceKind) -> Difference {
        let mut path = String::new();
        for part in &self.0 {
            if !path.is_empty() && !part.starts_with('[') {
                path.push('.');
            }
            path.push_str(part);
        }
        Difference { path, kind }
    }

    /// Whether the member `name` of the value at this path says which object it is, rather than what it holds.
    fn is_identity(&self, name: &str) -> bool {
        match self.0.as_slice() {
            [] => matches!(name, "apiVersion" | "kind"),
            [metadata] => metadata == "metadata" && IDENTITY.contains(&name),
            _ => false,
        }
    }

    /// Whether the value at this path is a quantity, which the API server writes in its own way.
    fn is_quantity(&self) -> bool {
        match self.0.as_slice() {
            [.., field] if field == "sizeLimit" || field == "divisor" => true,
            [.., parent, _] => matches!(parent.as_str(), "limits" | "requests" | "capacity"),
            _ => false,
        }
    }
}

// === impl Difference ===

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the object" } else { &self.path };
        match self.kind {
            DifferenceKind::Value => write!(formatter, "{path} has another value"),
            DifferenceKind::Missing => write!(formatter, "{path} is missing"),
            DifferenceKind::NoLongerSent => write!(formatter, "{path} is no longer wanted"),
            DifferenceKind::NotOurs => write!(formatter, "{path} belongs to another field manager"),
        }
    }
}

#[cfg(test)]
mod tests;

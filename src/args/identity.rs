//! The identity of this replica in the election.

/// Longest identity that is accepted, in bytes: that of a pod's name.
pub const MAX_IDENTITY_LENGTH: usize = 253;

/// Why there is no usable identity.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The flag or its variable is set to the empty text, which every replica would share.
    #[error(
        "--leader-election-identity (or ORCHESTRATORD_LEADER_ELECTION_IDENTITY) is empty: expected a name that is \
         unique per replica, such as the pod's name, or no flag at all"
    )]
    Empty,
    /// Longer than [`MAX_IDENTITY_LENGTH`].
    #[error(
        "the leader election identity from {origin} has {length} bytes, at most {MAX_IDENTITY_LENGTH} are allowed: \
         give a shorter --leader-election-identity"
    )]
    TooLong {
        /// Where it came from: the flag or `$HOSTNAME`.
        origin: &'static str,
        /// Its length in bytes.
        length: usize,
    },
}

/// Chooses the identity: what was given, else the host name unless that is empty, else `orchestratord-<uuid>`.
///
/// # Errors
/// See [`IdentityError`].
pub fn resolve(given: Option<&str>, hostname: Option<&str>) -> Result<String, IdentityError> {
    let (origin, identity) = match (given, hostname) {
        (Some(""), _) => return Err(IdentityError::Empty),
        (Some(given), _) => ("--leader-election-identity", given.to_owned()),
        (None, Some(hostname)) if !hostname.is_empty() => ("$HOSTNAME", hostname.to_owned()),
        (None, _) => ("a random number", format!("orchestratord-{}", uuid::Uuid::new_v4())),
    };
    if identity.len() > MAX_IDENTITY_LENGTH {
        return Err(IdentityError::TooLong {
            origin,
            length: identity.len(),
        });
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_that_says_something_wins() {
        assert_eq!(resolve(Some("pod-a"), Some("host")).as_deref(), Ok("pod-a"));
        assert_eq!(resolve(None, Some("host")).as_deref(), Ok("host"));
        assert_eq!(
            resolve(Some(" "), None).as_deref(),
            Ok(" "),
            "one blank is an identity like any other"
        );
    }

    #[test]
    fn without_any_source_each_call_is_unique() {
        for hostname in [None, Some("")] {
            let (first, second) = (resolve(None, hostname).unwrap(), resolve(None, hostname).unwrap());
            assert_ne!(first, second);
            let uuid = first.strip_prefix("orchestratord-").unwrap();
            assert_eq!(uuid::Uuid::parse_str(uuid).unwrap().get_version_num(), 4);
        }
    }

    #[test]
    fn empty_and_overlong_identities_are_refused() {
        assert_eq!(resolve(Some(""), Some("host")), Err(IdentityError::Empty));
        let (fits, long) = ("x".repeat(253), "x".repeat(254));
        assert_eq!(resolve(Some(&fits), None).as_ref(), Ok(&fits));
        assert!(matches!(
            resolve(Some(&long), None),
            Err(IdentityError::TooLong { length: 254, .. })
        ));
        assert!(matches!(
            resolve(None, Some(&long)),
            Err(IdentityError::TooLong {
                origin: "$HOSTNAME",
                ..
            })
        ));
    }
}

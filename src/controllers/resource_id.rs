//! The resource id: prefix of nearly every generated name, chosen once for each resource.

use rand::Rng as _;

/// What an id is made of. In lower case only: ids end up in DNS names.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// How long an id is.
const LENGTH: usize = 10;

/// A new id: ten random characters of `[a-z0-9]`.
pub(in crate::controllers) fn random() -> String {
    let mut random = rand::rng();
    (0..LENGTH)
        .map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ten_characters_that_dns_allows_and_differ() {
        let ids: Vec<String> = (0..100).map(|_| random()).collect();
        for id in &ids {
            assert!(
                id.len() == 10
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
                "{id}"
            );
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), 100);
    }
}

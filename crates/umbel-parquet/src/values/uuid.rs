//! UUIDs.

use umbel::internals::hex;

/// The number of digits between the hyphens of a UUID.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Reads a UUID such as 123e4567-e89b-12d3-a456-426614174000, with or without its hyphens.
pub fn read(text: &str) -> Result<Vec<u8>, String> {
    let digits = match text.contains('-') {
        true => {
            let groups: Vec<&str> = text.split('-').collect();
            groups.iter().map(|group| group.len()).eq(GROUPS).then(|| groups.concat())
        }
        false => Some(text.to_string()),
    };
    let bytes: Option<[u8; 16]> = digits.and_then(|digits| hex::decode_array(digits.as_bytes()));
    bytes.map(Vec::from).ok_or_else(|| "a UUID such as 123e4567-e89b-12d3-a456-426614174000".to_string())
}

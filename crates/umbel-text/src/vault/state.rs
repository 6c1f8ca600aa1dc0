//! The state of a whole vault, which its owner can remember where the server cannot change it.

use super::inventory::Inventory;
use super::zidx::Prf;
use std::fmt;
use std::str::FromStr;
use umbel::internals::hex;

/// The first word of a state in its text form.
const MARK: &str = "umbel-vault-state";

/// The state of a vault. It reveals nothing without the key of the vault.
///
/// A server can set back a whole vault to an earlier state, which looks like that vault did then. An
/// owner who remembers the last state notices it. The text form is for a file.
///
/// ```
/// use umbel_text::vault::{Cost, Options, Passphrase, State, Vault};
///
/// let folder = tempfile::tempdir()?;
/// let passphrase = Passphrase::new(b"correct horse battery staple".to_vec().into()).ok_or("none")?;
/// let options = Options { cost: Cost::WEAKEST, ..Options::default() };
/// let vault = Vault::create(folder.path().join("vault"), &passphrase, &options)?;
/// let before: State = vault.state()?.to_string().parse()?;
/// vault.add(b"plan.txt", None, &b"We attack at dawn."[..])?;
/// assert!(vault.state()?.follows(&before));
/// assert!(!before.follows(&vault.state()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    vault: [u8; 16],
    counter: u64,
    contents: [u8; 16],
}

/// The error for a text that is not the state of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAState;

impl State {
    /// Returns the state of the vault whose key for states is in `prf`. A vault without an inventory
    /// precedes all that have one.
    pub(super) fn new(prf: &Prf, inventory: Option<&Inventory>) -> State {
        let half = |message: &[&[u8]]| prf.apply(message).first_chunk().copied().unwrap_or_default();
        let bytes = inventory.map(Inventory::to_bytes).unwrap_or_default();
        State {
            vault: half(&[b"vault"]),
            counter: inventory.map_or(0, |inventory| inventory.counter),
            contents: half(&[b"state", &bytes]),
        }
    }

    /// Returns whether the state belongs to the same vault as another one.
    pub fn is_of_same_vault(&self, other: &State) -> bool {
        self.vault == other.vault
    }

    /// Returns whether this state can have followed from an earlier one: it is the same, or it is of
    /// the same vault and was written later.
    pub fn follows(&self, earlier: &State) -> bool {
        self.is_of_same_vault(earlier) && (self.counter > earlier.counter || self == earlier)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { vault, counter, contents } = self;
        write!(f, "{MARK} {} {counter} {}", hex::encode(vault), hex::encode(contents))
    }
}

impl FromStr for State {
    type Err = NotAState;

    fn from_str(text: &str) -> Result<State, NotAState> {
        let tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let [MARK, vault, counter, contents] = tokens[..] else { return Err(NotAState) };
        let decode = |digits: &str| hex::decode_array(digits.as_bytes()).ok_or(NotAState);
        let counter = counter.parse().map_err(|_| NotAState)?;
        Ok(State { vault: decode(vault)?, counter, contents: decode(contents)? })
    }
}

impl fmt::Display for NotAState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not the state of a vault")
    }
}

impl std::error::Error for NotAState {}

//! Pointers as keys: a pointer is the same key as the value it points to.

use super::Key;
use crate::{Digest, Hasher};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

macro_rules! pointer_keys {
    ($($pointer:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $pointer {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(f)
            }

            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                (**self).digest(hasher)
            }
        }
    )*};
}
pointer_keys!(&K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline(always)]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

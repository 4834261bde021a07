//! Setters of option structs that other crates cannot write as literals.

/// Methods named as the fields of a struct of options, each of which returns the struct with another value:
/// `Stop::default().rtol(1e-10).max_iters(500)`. A field may be added to such a struct without breaking a caller.
#[macro_export]
macro_rules! setters {
    ($options:ident { $($field:ident: $value:ty),* $(,)? }) => {
        impl $options {$(
            #[doc = concat!("The same with another [`", stringify!($field), "`](field@", stringify!($options), "::", stringify!($field), ").")]
            #[must_use]
            pub fn $field(mut self, $field: $value) -> Self {
                self.$field = $field.into();
                self
            }
        )*}
    };
}

//! Setters that take and return their value.

/// Defines setters: `NAME(ARGUMENT: TYPE) => FIELD = VALUE;`.
#[macro_export]
macro_rules! setters {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis $name:ident($argument:ident: $type:ty) => $($field:ident).+ = $value:expr;
    )+) => {
        $(
            $(#[$attribute])*
            #[must_use]
            $visibility fn $name(mut self, $argument: $type) -> Self {
                self.$($field).+ = $value;
                self
            }
        )+
    };
}

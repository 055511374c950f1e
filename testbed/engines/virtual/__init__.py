"""The user-mode kernel in which an emulation runs in virtual time, without privileges."""

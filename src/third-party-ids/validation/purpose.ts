/** The purpose of the validation of an address. */
export type Purpose = 'registration' | 'password_reset' | 'add_threepid';

/** The purpose for which an address is validated. */
export type Purpose = 'registration' | 'password_reset' | 'add_threepid';

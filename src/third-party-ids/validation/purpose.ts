/** What an address is validated for. */
export type Purpose = 'registration' | 'password_reset' | 'add_threepid';

import type { JsonObject } from '../../protocol/index.ts';

/** A request to log in, or to confirm an action, with a password. */
export interface LoginAttempt {
  /** The user id for the name that the client sent: `@alice:example.org` for `alice`. */
  readonly userId: string;
  /** Login type: `m.login.password`, or one of the provider's own. */
  readonly type: string;
  /** The `fields` of the login type, all of them texts; for `m.login.password`, `password`. */
  readonly fields: Readonly<Record<string, string>>;
  /** The whole request body. */
  readonly body: JsonObject;
}

/** Authenticates users in place of, or besides, the passwords that Hearth stores. */
export interface PasswordProvider {
  /**
   * The login types that the provider checks, each with the fields of the request that it needs. `m.login.password`
   * needs `password`. Providers are called in the order of the configuration; the stored passwords are checked last.
   */
  readonly loginTypes: Readonly<Record<string, readonly string[]>>;
  /**
   * Authenticates a user. The account must exist when the function returns: `api.users.register` creates one.
   * A failure (or no answer in time) counts as `undefined`.
   * @returns the user id of an account of this server; `undefined` when this provider does not accept the login
   */
  authenticate(attempt: LoginAttempt): string | undefined | Promise<string | undefined>;
  /**
   * Authenticates a user who logs in with a mail address or phone number and a password, before the owner of the address
   * is looked up. A failure counts as `undefined`.
   * @param medium `email` or `msisdn`
   * @returns as `authenticate`
   */
  authenticateAddress?(
    medium: string,
    address: string,
    password: string,
  ): string | undefined | Promise<string | undefined>;
}

import type { Medium } from '../address.ts';
import type { PhoneDelegate } from './phone-delegate.ts';
import type { SessionCredentials, ValidatedSession, ValidationSessions } from './validation-sessions.ts';

/** Finds sessions whose address has been validated, by this server or by the service for phone numbers. */
export class ValidatedSessions {
  readonly #sessions: ValidationSessions;
  readonly #phones: PhoneDelegate | undefined;

  constructor(sessions: ValidationSessions, phones: PhoneDelegate | undefined) {
    this.#sessions = sessions;
    this.#phones = phones;
  }

  /**
   * Returns the session of a client once its address has been validated; `undefined` for a pending session.
   * @throws MatrixError M_THREEPID_AUTH_FAILED when the client has no such session
   */
  async find(medium: Medium, credentials: SessionCredentials): Promise<ValidatedSession | undefined> {
    const session = await this.#sessions.find(medium, credentials);
    const known = this.#sessions.validated(session);
    if (known !== undefined || session.remote_sid === null) return known;
    const found = await this.#phones?.validated(session.remote_sid, credentials.clientSecret);
    // In the service, this session id may belong to a session of another client, for another number.
    if (found?.address !== session.address) return undefined;
    return this.#sessions.confirm(session, found.validatedAt);
  }

  /**
   * Sends the token of a text message to the service for phone numbers.
   * @returns whether the token is right
   * @throws MatrixError
   */
  async submitPhoneToken(credentials: SessionCredentials, token: string): Promise<boolean> {
    const { remote_sid: remote } = await this.#sessions.find('msisdn', credentials);
    if (remote === null || this.#phones === undefined) return false;
    return this.#phones.submit(remote, credentials.clientSecret, token);
  }
}

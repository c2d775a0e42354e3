import { hash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Database, type Writer } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { Medium } from '../address.ts';
import type { ThirdPartyIdTables } from '../tables.ts';
import type { Purpose } from './purpose.ts';
import {
  deleteExpired,
  deleteSurplus,
  findPending,
  findSession,
  findToken,
  insertToken,
  type SessionRow,
  saveSession,
} from './session-store.ts';

/** The address whose validation a client requests, and the purpose. */
export interface ValidationRequest {
  readonly medium: Medium;
  /** In canonical form. */
  readonly address: string;
  readonly purpose: Purpose;
  readonly clientSecret: string;
  /** A message is sent only when this is higher than in earlier requests of the session. */
  readonly sendAttempt: number;
  readonly nextLink: string | undefined;
}

/** The credentials that prove that a session belongs to a client. */
export interface SessionCredentials {
  readonly sid: string;
  readonly clientSecret: string;
}

/** A session whose address has been validated. */
export interface ValidatedSession {
  readonly medium: Medium;
  readonly address: string;
  readonly purpose: Purpose;
  /** Milliseconds since the epoch. */
  readonly validatedAt: number;
}

export interface ValidationSessionsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly jobs: Jobs;
  /** Milliseconds that a token is valid: `email.validation_token_lifetime`. */
  readonly tokenLifetime: number;
  /** Maximum number of stored sessions; by default 10,000. */
  readonly maxSessions?: number;
}

/** Milliseconds that a validated session can be used. */
const validatedLifetime = 24 * 3_600_000;

/** Milliseconds between two deletions of expired sessions. */
const cleanupInterval = 3_600_000;

/** Number of sessions that are begun between two checks of their number. */
const sessionsPerCheck = 50;

/** Maximum number of sessions that one transaction deletes. */
const deletedAtOnce = 500;

const digest = (secret: string) => hash('sha256', secret, 'base64url');

/**
 * Sessions in which clients prove that their user receives messages at an address. A session belongs to the client that
 * knows its secret, is for one address and one purpose, and ends when the address has been used for this purpose.
 */
export class ValidationSessions {
  readonly #deps: ValidationSessionsDeps;
  readonly #maxSessions: number;
  /** Locks by medium and address, so that parallel requests for one address send one message. */
  readonly #mutex = new KeyedMutex();
  #begunSinceCheck = 0;

  constructor(deps: ValidationSessionsDeps) {
    this.#deps = deps;
    this.#maxSessions = deps.maxSessions ?? 10_000;
    deps.jobs.every('third-party-ids/clean', cleanupInterval, { run: () => this.#cleanUp() });
  }

  /**
   * Begins a session, or continues the client's pending session for the address.
   * @param prepare runs before the transaction when a message is to be sent, for example to have another service send
   * it; returns that service's session id
   * @param deliver schedules the message with the token in the transaction that stores it
   * @returns the session id
   */
  begin(
    request: ValidationRequest,
    prepare: () => Promise<string | undefined>,
    deliver: (writer: AnyWriter, sid: string, token: string, expiresAt: number) => Promise<void>,
  ): Promise<string> {
    return this.#mutex.run(`${request.medium} ${request.address}`, async () => {
      const { medium, address, purpose, sendAttempt } = request;
      const identity = { medium, address, purpose, secret_hash: digest(request.clientSecret) };
      const { clock, randomness, tokenLifetime } = this.#deps;
      const stored = await findPending(this.#reader, identity);
      const pending = stored && stored.expires_at > clock.now() ? stored : undefined;
      if (pending && pending.send_attempt >= sendAttempt) return pending.sid;
      const expires_at = clock.now() + tokenLifetime;
      const session = {
        ...identity,
        sid: pending?.sid ?? randomString(randomness, 24),
        send_attempt: sendAttempt,
        remote_sid: (await prepare()) ?? pending?.remote_sid ?? null,
        validated_at: null,
        expires_at,
      };
      const { sid } = session;
      const token = randomString(randomness, 32);
      const next_link = request.nextLink ?? null;
      await this.#write(async (writer) => {
        await this.#boundSessions(writer);
        const current = pending && (await findSession(writer, sid));
        const isValidated = current !== undefined && current.validated_at !== null;
        // The user may have opened the link of an earlier message since `findPending`.
        const { validated_at, expires_at: expires } = isValidated ? current : session;
        await saveSession(writer, { ...session, validated_at, expires_at: expires });
        await insertToken(writer, { token_hash: digest(token), sid, next_link, expires_at });
        await deliver(writer, sid, token, expires_at);
      });
      return sid;
    });
  }

  /**
   * Checks the token of a link without using it.
   * @returns `nextLink`, the URL that the user continues to
   * @throws MatrixError M_THREEPID_AUTH_FAILED, with a message for users
   */
  async check(
    purpose: Purpose,
    credentials: SessionCredentials,
    token: string,
  ): Promise<{ nextLink: string | undefined }> {
    return (await this.#checkToken(purpose, credentials, token)).result;
  }

  /** Validates the address by the token of its link; a link may be opened again. Errors as in `check`. */
  async submit(
    purpose: Purpose,
    credentials: SessionCredentials,
    token: string,
  ): Promise<{ nextLink: string | undefined }> {
    const { session, result } = await this.#checkToken(purpose, credentials, token);
    if (session.validated_at === null) await this.#markValidated(session, this.#deps.clock.now());
    return result;
  }

  /**
   * Returns the session of a client, validated or not.
   * @throws MatrixError M_THREEPID_AUTH_FAILED when there is none, or when the secret is wrong
   */
  async find(medium: Medium, { sid, clientSecret }: SessionCredentials): Promise<SessionRow> {
    const session = isSessionIdOrSecret(sid) ? await findSession(this.#reader, sid) : undefined;
    const isOfClient = session?.medium === medium && session.secret_hash === digest(clientSecret);
    if (!isOfClient || session.expires_at <= this.#deps.clock.now()) throw unknownSession();
    return session;
  }

  /** Records that another service has validated the address. @param at milliseconds since the epoch */
  async confirm(session: SessionRow, at: number): Promise<ValidatedSession> {
    await this.#markValidated(session, at);
    return toValidated({ ...session, validated_at: at })!;
  }

  /** Stores the session id of the service that validates the number of a session. */
  async setRemote(sid: string, remoteSid: string): Promise<void> {
    await this.#write(async (writer) => {
      const session = await findSession(writer, sid);
      if (session !== undefined) await saveSession(writer, { ...session, remote_sid: remoteSid });
    });
  }

  /** Returns a session whose address has been validated; `undefined` for a pending one. */
  validated(session: SessionRow): ValidatedSession | undefined {
    return toValidated(session);
  }

  async #checkToken(purpose: Purpose, credentials: SessionCredentials, token: string) {
    const session = await this.find('email', credentials);
    if (session.purpose !== purpose) throw unknownSession();
    const storedToken = await findToken(this.#reader, session.sid, digest(token));
    if (storedToken === undefined) throw unknownSession();
    const hasExpired = storedToken.expires_at <= this.#deps.clock.now();
    if (hasExpired && session.validated_at === null) throw unknownSession();
    return { session, result: { nextLink: storedToken.next_link ?? undefined } };
  }

  async #markValidated(session: SessionRow, at: number): Promise<void> {
    const expires_at = this.#deps.clock.now() + validatedLifetime;
    await this.#write(async (writer) => {
      const current = await findSession(writer, session.sid);
      if (current?.validated_at === null)
        await saveSession(writer, { ...current, validated_at: at, expires_at });
    });
  }

  /** Deletes surplus sessions, so that clients cannot fill the database. */
  async #boundSessions(writer: Writer<ThirdPartyIdTables>): Promise<void> {
    const begunSessions = this.#begunSinceCheck + 1;
    const isDue = begunSessions >= Math.min(sessionsPerCheck, this.#maxSessions);
    if (isDue) await deleteSurplus(writer, this.#maxSessions, deletedAtOnce);
    afterCommit(writer, () => {
      this.#begunSinceCheck = isDue ? 0 : begunSessions;
    });
  }

  async #cleanUp(): Promise<void> {
    const now = this.#deps.clock.now();
    let deleted = deletedAtOnce;
    while (deleted === deletedAtOnce) {
      deleted = await this.#write((writer) => deleteExpired(writer, now, deletedAtOnce));
    }
  }

  get #reader() {
    return this.#deps.database.reader<ThirdPartyIdTables>();
  }

  #write<T>(work: (writer: Writer<ThirdPartyIdTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<ThirdPartyIdTables, T>(work);
  }
}

function toValidated({ medium, address, purpose, validated_at }: SessionRow): ValidatedSession | undefined {
  if (validated_at === null) return undefined;
  return {
    medium: medium as Medium,
    address,
    purpose: purpose as Purpose,
    validatedAt: validated_at,
  };
}

/** Session ids and secrets of clients. Source: client-server API, `POST /account/3pid/email/requestToken`. */
export const isSessionIdOrSecret = (text: string) => /^[0-9a-zA-Z.=_-]{1,255}$/.test(text);

const unknownSession = () =>
  new MatrixError(400, 'M_THREEPID_AUTH_FAILED', 'This link or validation is not valid, or has expired');

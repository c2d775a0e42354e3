import { hash } from 'node:crypto';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import { addressKey } from '../../kernel/rate-limits/index.ts';
import { forbidden, type JsonObject, type JsonValue, tooLarge } from '../../protocol/index.ts';
import type { AccountLimits } from '../limits.ts';
import { hashToken } from '../sessions/tokens.ts';
import type { AccountTables } from '../tables.ts';
import { digestBody, sealBody } from './sealed-body.ts';
import { SessionBounds, sessionLifetime } from './session-bounds.ts';
import {
  answerInteractiveSession,
  deleteInteractiveSessions,
  deleteInteractiveSessionsBefore,
  deleteInteractiveSessionsOf,
  deleteOldestRegistrations,
  findInteractiveSession,
  type SessionRow,
  saveInteractiveSession,
} from './session-store.ts';
import type { Stage } from './stage.ts';

export interface AuthSessionsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly limits: Pick<AccountLimits, 'challenges'>;
}

/** A session of interactive authentication, and the stages that are completed in it. */
export interface AuthSession {
  /** The session id. */
  readonly session: string;
  /** Hash of the session id. */
  readonly idHash: string;
  /** Whether the session is in the database. */
  readonly isStored: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The parameters of the operation, without `auth`. */
  readonly body: JsonObject;
  /** Maps the completed stages to the results of `Stage.verify`. */
  readonly completed: ReadonlyMap<string, JsonValue>;
}

/** The request that a session belongs to. */
export interface SessionOwner {
  /** The operation and its target, as in `InteractiveAuthRequest`. */
  readonly operation: string;
  /** The logged-in user; `undefined` in a registration. */
  readonly userId: string | undefined;
  /** Address of the client. */
  readonly ip: string;
}

/** Old and surplus sessions are deleted after this number of new sessions. */
const sessionsPerCleanup = 100;

/** Milliseconds from a deletion of old sessions until a new session causes the next deletion. */
const cleanupInterval = 3_600_000;

/** Maximum bytes of the stored parameters of a user's request. */
const maxBodyBytes = 65_536;

/** Maximum bytes of the stored parameters of a registration. */
const maxRegistrationBytes = 4_096;

/** Maximum number of stored sessions of registrations; older ones are deleted. */
const maxRegistrations = 10_000;

/** Stores the sessions of interactive authentication. Clients and pages continue these sessions. */
export class AuthSessions {
  readonly #deps: AuthSessionsDeps;
  readonly #bounds: SessionBounds;
  /** Milliseconds since the epoch. */
  #lastCleanup = 0;
  #begunSinceCleanup = 0;
  /** Does one piece of work at a time on each session, by session id. */
  readonly #perSession = new KeyedMutex();
  /** Stores the results of one type of stage one after the other. Keys are types of stages. */
  readonly #storing = new KeyedMutex();

  constructor(deps: AuthSessionsDeps) {
    this.#deps = deps;
    this.#bounds = new SessionBounds(deps.limits.challenges, deps.caches);
  }

  /** Runs work on a session after the other work on the same session has ended. */
  exclusively<T>(session: string, work: () => Promise<T>): Promise<T> {
    return this.#perSession.run(session, work);
  }

  /** Returns a new session, which is not stored. */
  begin(body: JsonObject): AuthSession {
    const session = randomString(this.#deps.randomness, 24);
    const createdAt = this.#deps.clock.now();
    const idHash = hashToken(session);
    return { session, idHash, isStored: false, createdAt, body, completed: new Map() };
  }

  /** Returns a stored session that has not expired. */
  async find(session: string): Promise<SessionRow | undefined> {
    const row = await findInteractiveSession(this.#deps.database.reader<AccountTables>(), hashToken(session));
    const isExpired = row !== undefined && row.created_at + sessionLifetime < this.#deps.clock.now();
    return isExpired ? undefined : row;
  }

  /**
   * Returns a stored session whose operation can still be carried out.
   * @throws MatrixError M_FORBIDDEN when the session does not exist, has expired, or its operation was carried out
   */
  async findUnanswered(session: string): Promise<SessionRow> {
    const row = await this.find(session);
    if (row === undefined || row.answered === 1) throw unknownSession();
    return row;
  }

  /**
   * Stores a session. A new session counts towards the limits of its user, or towards the limits of the client's
   * address when there is no user.
   * @throws MatrixError M_LIMIT_EXCEEDED, M_TOO_LARGE
   */
  async save(session: AuthSession, owner: SessionOwner): Promise<void> {
    await this.#save(session, owner);
  }

  /**
   * Stores a session with one more completed stage.
   * @throws what `save` and `Stage.store` throw
   */
  async saveCompleted(
    session: AuthSession,
    owner: SessionOwner,
    stage: Stage,
    result: JsonValue,
  ): Promise<void> {
    const { store } = stage;
    if (store === undefined) return this.#save(session, owner);
    // Stages with `store` change rows that sessions share, so their transactions run one after the other.
    await this.#storing.run(stage.type, () =>
      this.#save(session, owner, (writer) => store(writer, session.idHash, result)),
    );
  }

  /**
   * Adds a completed stage to a stored session.
   * @throws MatrixError M_FORBIDDEN for an unknown session; what `Stage.store` throws
   */
  addCompleted(session: string, stage: Stage, result: JsonValue): Promise<void> {
    const idHash = hashToken(session);
    return this.#storing.run(stage.type, () =>
      this.#write(async (writer) => {
        const row = await findInteractiveSession(writer, idHash);
        if (row === undefined) throw unknownSession();
        const completed = { ...(JSON.parse(row.completed) as JsonObject), [stage.type]: result };
        await saveInteractiveSession(writer, { ...row, completed: JSON.stringify(completed) });
        await stage.store?.(writer, idHash, result);
      }),
    );
  }

  /** Stores the result of the operation, for requests that repeat it. */
  async answer({ session, idHash }: AuthSession, result: JsonValue): Promise<void> {
    const sealed = sealBody({ result }, session, this.#deps.randomness);
    await this.#write((writer) => answerInteractiveSession(writer, idHash, sealed));
  }

  async delete({ idHash }: AuthSession): Promise<void> {
    await this.#write((writer) => deleteInteractiveSessions(writer, [idHash]));
  }

  /** Deletes all sessions of a user, inside the caller's transaction. */
  forgetUser(writer: AnyWriter, userId: string): Promise<void> {
    return deleteInteractiveSessionsOf(writerFor<AccountTables>(writer), userId);
  }

  /** Stores a session, as `save` does. @param inTransaction runs in the transaction that stores the session */
  async #save(
    session: AuthSession,
    { userId, ip, operation }: SessionOwner,
    inTransaction?: (writer: AnyWriter) => Promise<void>,
  ): Promise<void> {
    const sealed_body = sealBody(session.body, session.session, this.#deps.randomness);
    const maxBytes = userId === undefined ? maxRegistrationBytes : maxBodyBytes;
    if (sealed_body.length > maxBytes) throw tooLarge('The request is too large');
    const { idHash: id_hash } = session;
    const surplus = session.isStored ? [] : this.#bounds.begin(userId ?? addressKey(ip), id_hash);
    const row = {
      id_hash,
      user_id: userId ?? null,
      created_at: session.createdAt,
      operation: digestOperation(operation),
      body_digest: digestBody(session.body, session.session),
      sealed_body,
      completed: JSON.stringify(Object.fromEntries(session.completed)),
      answered: 0,
    };
    const isCleanupDue = !session.isStored && this.#countTowardsCleanup();
    await this.#write(async (writer) => {
      if (isCleanupDue) await this.#cleanUp(writer);
      if (surplus.length > 0) await deleteInteractiveSessions(writer, surplus);
      await saveInteractiveSession(writer, row);
      await inTransaction?.(writer);
    });
  }

  /** Counts a new session. @returns whether old sessions are to be deleted */
  #countTowardsCleanup(): boolean {
    const now = this.#deps.clock.now();
    this.#begunSinceCleanup += 1;
    const isDue = now - this.#lastCleanup > cleanupInterval || this.#begunSinceCleanup >= sessionsPerCleanup;
    if (isDue) {
      this.#lastCleanup = now;
      this.#begunSinceCleanup = 0;
    }
    return isDue;
  }

  async #cleanUp(writer: Writer<AccountTables>): Promise<void> {
    await deleteInteractiveSessionsBefore(writer, this.#deps.clock.now() - sessionLifetime);
    await deleteOldestRegistrations(writer, maxRegistrations);
  }

  #write<T>(work: (writer: Writer<AccountTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<AccountTables, T>(work);
  }
}

const unknownSession = () => forbidden('Unknown authentication session');

/**
 * Returns the digest that is stored in place of an operation, because an operation may contain the id of a device, and
 * the session of interactive authentication outlives the device.
 */
export const digestOperation = (operation: string) => hash('sha256', operation, 'base64url');
